# SPDX-License-Identifier: Apache-2.0
"""The module seen from the smallest client: tests/vm/kmod, one assertion per line of its TAP."""

import re

LOAD = False
ALONE = True
APPEND = ()


def guest(t):
    result = t.run("/tests/vm/kmod/run.sh", "/opt/stacktap", timeout=700, check=False)
    print(result.stdout, flush=True)
    lines = [line for line in result.stdout.splitlines() if re.match(r" *(not )?ok \d+ - ", line)]
    for line in lines:
        good, text = re.fullmatch(r" *((?:not )?ok) \d+ - (.*)", line).groups()
        t.ok(good == "ok", text)
    t.ok(result.returncode == 0 and len(lines) > 100, f"all of {len(lines)} assertions",
         result.stdout[-2000:] + result.stderr)

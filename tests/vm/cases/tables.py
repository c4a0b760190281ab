# SPDX-License-Identifier: Apache-2.0
"""Unwind tables and mapping lists from the smallest client: tests/vm/kmod, TAP line by line."""

import re

LOAD = False
ALONE = True
CASES = ("tables", "table-limits", "lists", "walk", "signals", "storm")


def guest(t):
    result = t.run("/tests/vm/kmod/run.sh", "/opt/stacktap", *CASES, timeout=700, check=False)
    print(result.stdout, flush=True)
    lines = [line for line in result.stdout.splitlines() if re.match(r" *(not )?ok \d+ - ", line)]
    for line in lines:
        good, text = re.fullmatch(r" *((?:not )?ok) \d+ - (.*)", line).groups()
        t.ok(good == "ok", text)
    t.ok(result.returncode == 0 and len(lines) > 90, f"all of {len(lines)} assertions",
         result.stdout[-2000:] + result.stderr)

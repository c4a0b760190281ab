# SPDX-License-Identifier: Apache-2.0
"""Registers and stack slices from the smallest client: tests/vm/kmod, TAP line by line."""

import os
import re

LOAD = False
LANE = "stacks"     # counts by the tick, which a busy host upsets
ALONE = True
CASES = ("slices", "slice-limits", "slice-every")
SECONDS = 200  # for each, in a guest that has its CPUs for itself
TIMEOUT = 700
BOOT_TIMEOUT = 2400


def guest(t):
    import kit
    result = t.run("/tests/vm/kmod/run.sh", "/opt/stacktap", *CASES, timeout=700, check=False,
                   env=dict(os.environ, CASE_SECONDS=str(SECONDS * kit.PATIENCE)))
    print(result.stdout, flush=True)
    lines = [line for line in result.stdout.splitlines() if re.match(r" *(not )?ok \d+ - ", line)]
    for line in lines:
        good, text = re.fullmatch(r" *((?:not )?ok) \d+ - (.*)", line).groups()
        t.ok(good == "ok", text)
    t.ok(result.returncode == 0 and len(lines) > 70, f"all of {len(lines)} assertions",
         result.stdout[-2000:] + result.stderr)

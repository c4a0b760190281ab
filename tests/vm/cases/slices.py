# SPDX-License-Identifier: Apache-2.0
"""Registers and stack slices from the smallest client: tests/vm/kmod, TAP line by line."""

import os
import re

LOAD = False
LANE = "stacks"     # counts by the tick, which a busy host upsets
ALONE = True
# the last one locks the kernel down, for good
CASES = ("slices", "slice-limits", "slice-every")
LOCKDOWN = "/sys/kernel/security/lockdown"
SECONDS = 200  # for each, in a guest that has its CPUs for itself
TIMEOUT = 700
BOOT_TIMEOUT = 2400


def guest(t):
    import kit
    t.run("mount", "-t", "securityfs", "none", os.path.dirname(LOCKDOWN), check=False)
    cases = CASES
    if os.path.exists(LOCKDOWN):
        cases += ("slice-lockdown",)
    else:
        t.ok(re.search("debug|nmi", os.uname().release), "only kernels of our own know no lockdown")
    result = t.run("/tests/vm/kmod/run.sh", "/opt/stacktap", *cases, timeout=700, check=False,
                   env=dict(os.environ, CASE_SECONDS=str(SECONDS * kit.PATIENCE)))
    print(result.stdout, flush=True)
    lines = [line for line in result.stdout.splitlines() if re.match(r" *(not )?ok \d+ - ", line)]
    for line in lines:
        good, text = re.fullmatch(r" *((?:not )?ok) \d+ - (.*)", line).groups()
        t.ok(good == "ok", text)
    t.ok(result.returncode == 0 and len(lines) > 70, f"all of {len(lines)} assertions",
         result.stdout[-2000:] + result.stderr)

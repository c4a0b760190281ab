# SPDX-License-Identifier: Apache-2.0
"""Recursion without frame pointers is exactly as deep as it is."""

import json
import os

LANE = "stacks"
# An instruction takes a nanosecond of the guest's clock then, several times what a real CPU takes:
# this module's time limit is ten times as long, and nothing else differs.
LOAD = False
SMP = 1
MEM = 2048
BOOT_OPTIONS = ("--icount",)
# where each access is looked at, 1,000 frames take longer than even that
DEPTHS, RATE = ((10, 100), 99) if "debug" in os.uname().release else ((10, 100, 1000), 999)
ENOUGH = 300


def guest(t):
    t.load_module("/opt/stacktap/stacktap-patient.ko")
    t.until(lambda: os.path.exists("/dev/stacktap"), 30, "/dev/stacktap")
    for depth in DEPTHS:
        # descend(0) is the last of them
        program = t.start("/opt/stacktap/workload/deep_frameless", depth - 1, 600)
        record, session = t.record(f"{depth}.otlp", "-p", program.pid, "-F", RATE,
                                   "--call-graph", "table")
        t.until(lambda: sum(c["recorded"] for c in t.counts(session)) > 3 * ENOUGH, 60, "samples")
        out, err = t.stop(record, 2)
        t.ok(record.returncode == 0, f"{depth}: record ends well", out + err)
        t.stop(program)
    with open(t.path("depths.json"), "w", encoding="ascii") as f:
        json.dump(DEPTHS, f)
    t.rmmod()


def host(t):
    import model
    with open(os.path.join(t.dir, "depths.json"), encoding="ascii") as f:
        depths = json.load(f)
    for depth in depths:
        samples = model.of_process(t.load(f"{depth}.otlp"), "deep_frameless")
        user = [s for s in samples if s.stack[0].function == "bottom"]
        total = sum(s.count for s in user)
        t.ok(total >= ENOUGH, f"{depth}: at least {ENOUGH} samples at the bottom ({total})")
        exact = sum(s.count for s in user
                    if s.attribute("stacktap.user_stack.end", "complete") == "complete"
                    and s.names[1:depth + 2] == ("descend",) * depth + ("main",)
                    and s.names.count("descend") == depth)
        t.ok(exact == total, f"{depth}: bottom(), {depth} of descend(), main() and a whole stack "
                             f"in {exact} of {total}")

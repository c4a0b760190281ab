# SPDX-License-Identifier: Apache-2.0
"""A stack whose pages are absent is marked, and whole as soon as the daemon has had them read."""

import json
import re

WORKLOAD = "/opt/stacktap/workload/absent_stack"
CPU_MS = 8000
DEPTH = 60


def guest(t):
    record, session = t.record("absent.otlp", "-a", "-F", 199, "-v")
    # it has its own list by the time that it drops its pages
    program = t.start(WORKLOAD, CPU_MS)
    with open(t.path("pid"), "w", encoding="ascii") as f:
        json.dump(program.pid, f)
    t.ok(program.wait(120 * 3) == 0, "the program ran")
    t.stacktap("stop", session)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    told = re.search(r"(\d+) stacks cut by an absent page; (\d+) pages brought in", err)
    t.ok(told and int(told[1]) > 0 and int(told[2]) > 0,
         f"record tells of it: {told[0] if told else err}")


def host(t):
    with open(f"{t.dir}/pid", encoding="ascii") as f:
        pid = json.load(f)
    samples = [s for s in t.load("absent.otlp") if s.process.pid == pid
               and s.stack and any(f.function == "bottom" for f in s.stack)]
    found = []
    for sample in samples:
        depth = sum(frame.function == "descend" for frame in sample.stack)
        end = sample.attribute("stacktap.user_stack.end", "complete")
        found += [(when, end, depth) for when in sample.timestamps]
    found.sort()
    cut = [entry for entry in found if entry[1] == "unreadable"]
    whole = [entry for entry in found if entry[1] == "complete"]
    t.ok(cut, f"{len(cut)} of {len(found)} stacks were cut by an absent page, and say so")
    t.ok(all(depth < DEPTH for _, _, depth in cut), "they have fewer frames than there are")
    t.ok(whole and all(depth == DEPTH for _, _, depth in whole),
         f"{len(whole)} are whole, {DEPTH} deep")
    # on a busy host a walk runs out of time now and then, whatever is there
    t.ok(cut and whole and whole[-1][0] > cut[-1][0] and
         {end for when, end, _ in found if when > cut[-1][0]} <= {"complete", "time"},
         "once the pages are in, they stay whole")

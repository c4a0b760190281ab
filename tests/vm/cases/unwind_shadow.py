# SPDX-License-Identifier: Apache-2.0
"""Stacks of the module are those that libdwfl finds from the same registers and memory."""

import json
import os

LANE = "stacks"
TIMEOUT = 600
ENOUGH = 2000
# of whole ones where most walks reach their time limit
LEAST = 100 if "debug" in os.uname().release else ENOUGH
PROGRAMS = ("python3", "sqlite3", "openssl", "perl", "git", "redis", "xz")


def guest(t):
    """The programs run until there are enough samples, however slow the guest is."""
    work = t.start("python3", "/tests/vm/workload/programs.py", TIMEOUT, *PROGRAMS,
                   start_new_session=True)
    known = t.start("/opt/stacktap/workload/no_frame_pointers", "burn", TIMEOUT * 1000)
    with open(t.path("differences.txt"), "w", encoding="utf-8") as f:
        shadow = t.start("/opt/stacktap/shadow", ENOUGH, TIMEOUT, 4, 199, stderr=f)
        out, _ = shadow.communicate()
    t.run("sh", "-c", f"kill -9 -{work.pid}", check=False)
    t.stop(known)
    t.note(out)
    counts = json.loads(out)
    compared, cut, blind = counts["compared"], counts["cut"], counts["blind"]
    t.ok(compared >= LEAST and compared + cut >= ENOUGH,
         f"{compared} stacks compared as a whole, {cut} as far as their slices or the time limit "
         f"went; {counts['frames']} frames, {counts['deepest']} at most")
    t.ok(blind <= 0.1 * (compared + cut), f"{blind} lead through code that libdwfl knows nothing about, "
                                  "and are the same up to there")
    t.ok(counts["equal"] >= 0.999 * compared,
         f"{counts['equal']} of {compared} are libdwfl's frame by frame; {counts['wrong']} differ, "
         f"we ended {counts['we_ended']} sooner, libdwfl {counts['they_ended']}")
    t.ok(counts["wrong"] <= 0.001 * compared, f"{counts['wrong']} are wrong")
    t.equal(counts["wrong_root"], 0, "no stack is said to be whole that is not")

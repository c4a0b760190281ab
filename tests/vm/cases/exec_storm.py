# SPDX-License-Identifier: Apache-2.0
"""1,000 programs that live for some milliseconds each lose under 1 % of their samples' stacks: what
ran before their tables were in the module is deferred."""

import json
import os
import re

# unmodified ones without frame pointers, with some work for each and several libraries
PROGRAMS = {
    "sqlite3": "sqlite3 :memory: 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
               "WHERE i < 2000) SELECT sum(i * length(hex(i))) FROM n;'",
    "openssl": "openssl dgst -sha256 /tmp/storm",
    "sort": "sort -n /tmp/storm",
    "xz": "xz -0 -k -c /tmp/storm",
    "mawk": "mawk '{ n += $1 * length($1) } END { print n }' /tmp/storm",
}
ROUND = 200
ROUNDS = 5          # 1,000 programs
ENOUGH = 1000       # samples, so that a single one is well below 1 %
MOST_ROUNDS = 40
ALONE = True
LANE = "stacks"     # it takes its time
TIMEOUT = 1500
BOOT_TIMEOUT = 5400


def recorded(t, session):
    return sum(c["recorded"] for c in t.counts(session))


def guest(t):
    with open("/tmp/storm", "w", encoding="ascii") as f:
        f.writelines(f"{i * i % 1000003}\n" for i in range(4000))
    script = "\n".join(f"for i in $(seq {ROUND // len(PROGRAMS)}); do {command} >/dev/null; done"
                       for command in PROGRAMS.values())
    record, session = t.record("storm.otlp", "-a", "-v", "-F", 99, "--sideband-bytes", 1 << 20)
    before = recorded(t, session)
    rounds = 0
    while rounds < ROUNDS or (recorded(t, session) - before < 2 * ENOUGH and rounds < MOST_ROUNDS):
        t.run("bash", "-c", script, timeout=300)
        rounds += 1
    t.note(f"{rounds * ROUND} programs ran")
    status = t.json("status")
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    for line in err.splitlines():
        if "stacktap record:" in line:
            t.note(line)
    late = re.search(r"deferred unwinding: (\d+) stacks, (\d+) of them complete; (\d+) refused, (\d+) expired, "
                     r"(\d+) failed; (\d+) by frame pointers alone", err)
    t.ok(late, "record tells of stacks whose unwinding was deferred", err)
    cpus = [cpu for s in status["sessions"] if s["id"] == session for cpu in s["cpus"]]
    t.note(f"slices {sum(c['slices'] for c in cpus)}, refused {sum(c['slices_refused'] for c in cpus)}; "
           f"walked with a list {sum(c['table_hits'] for c in cpus)}, without "
           f"{sum(c['table_misses'] for c in cpus)}")
    with open(t.path("late.json"), "w", encoding="ascii") as f:
        json.dump([int(n) for n in late.groups()] if late else [], f)
    os.unlink("/tmp/storm")


def user_part(sample):
    return [frame.function for frame in sample.stack if frame.frame_type != "kernel"]


def host(t):
    with open(f"{t.dir}/late.json", encoding="ascii") as f:
        unwound, complete, refused, expired, failed, alone = json.load(f)
    ends, programs = {}, {}
    for sample in t.load("storm.otlp"):
        if sample.process.executable not in PROGRAMS or not user_part(sample):
            continue
        end = sample.attribute("stacktap.user_stack.end", "complete")
        ends[end] = ends.get(end, 0) + sample.count
        of = programs.setdefault(sample.process.executable, {})
        of[end] = of.get(end, 0) + sample.count
    total = sum(ends.values())
    # an emulated CPU that its host takes away in the middle of a walk
    judged = total - ends.get("time", 0)
    whole = ends.get("complete", 0)
    told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    t.ok(judged >= ENOUGH / 4, f"enough samples of short programs ({judged})")
    t.ok(judged - whole <= 0.01 * judged, f"{whole} of {judged} stacks are whole ({told}; {programs})")
    t.ok(unwound > 0 and complete > 0.9 * unwound,
         f"{complete} of {unwound} deferred stacks are whole; {refused} refused, {expired} expired, {failed} "
         f"failed; {alone} by frame pointers alone")

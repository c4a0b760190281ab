# SPDX-License-Identifier: Apache-2.0
"""A PMU that loses an overflow interrupt, as the emulated one does under load, leaves no CPU out for
long: the counter is re-armed, and that is counted and announced."""

import json
import os
import time

ARCHES = ("arm64",)
SMP = 3
TIMEOUT = 900
ROUNDS = 8
# by far more than the module takes, which looks every two seconds, also where the guest's host is busy
PATIENCE = 30
# in cycles of an emulated PMU, nanoseconds. Where each lock is looked at, a sample takes most of a
# millisecond: 4,000 a second and CPU leave no time for a program to begin.
PERIOD = 250000 * (8 if "stacktap" in os.uname().release else 1)


def interrupts():
    with open("/proc/interrupts", encoding="ascii") as f:
        line = next(line for line in f if "arm-pmu" in line)
    return [int(number) for number in line.split()[1:1 + SMP]]


class Watch:
    """How long each CPU had no overflow interrupt, though it was busy."""

    def __init__(self):
        self.last, self.since = interrupts(), [time.monotonic()] * SMP
        self.longest = 0

    def look(self):
        now, fresh = time.monotonic(), interrupts()
        for cpu in range(SMP):
            if fresh[cpu] != self.last[cpu]:
                self.since[cpu] = now
            self.longest = max(self.longest, now - self.since[cpu])
        self.last = fresh

    def watch(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.5)


def guest(t):
    burners = [t.start("/opt/stacktap/workload/deep", 5, 900) for _ in range(SMP)]
    events = t.listen("/tmp/events", "--json")
    record = t.record("stall.otlp", "-a", "-e", "cycles", "-c", PERIOD, "--call-graph", "fp")

    def stalled():
        return sum(counts["stalled"] for counts in t.counts(record[1]))

    for _ in range(ROUNDS):
        # interrupts at a high rate are what the emulation loses; they show when their source has gone
        other = t.record("other.otlp", "-a", "-e", "cycles", "-c", PERIOD // 2, "--kernel-only")
        time.sleep(5)
        t.accounts(*other)
        watch = Watch()
        # what it is slower to find, the next round sees
        watch.watch(6)
        if stalled():
            break
    watch.watch(PATIENCE)
    mended = stalled()
    t.note(f"{mended} counters stalled; the longest time without an interrupt was {watch.longest:.1f} s")
    t.ok(watch.longest < PATIENCE, "no CPU is left out for long", watch.longest)
    t.accounts(*record)
    for burner in burners:
        t.stop(burner)
    told = [e for e in map(json.loads, t.heard(events, "/tmp/events"))
            if e["session"] == record[1] and e["event"] == "stall"]
    t.ok(sum(e["count"] for e in told) == mended and all(e["source"] == 0 for e in told),
         "a counter re-armed is announced", told)
    with open(t.path("mended.json"), "w", encoding="ascii") as f:
        json.dump(mended, f)


def host(t):
    samples = t.load("stall.otlp")
    t.equal(sorted({s.cpu for s in samples}), list(range(SMP)), "all CPUs were sampled")
    with open(f"{t.dir}/mended.json", encoding="ascii") as f:
        mended = json.load(f)
    told = {s.profile.profile_id: dict(s.profile.attributes).get("stacktap.stalled", 0) for s in samples}
    t.equal(sum(told.values()), mended, "and so does the stream tell of each counter re-armed")

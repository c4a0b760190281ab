# SPDX-License-Identifier: Apache-2.0
"""cpu-clock overflows as often as running time over period says, and every overflow is accounted for:
in a normal run, with a filter, and with a reader that is stopped.

Under -icount virtual timers are never late, so that the count is exact; elsewhere an emulated CPU
skips ticks while this machine takes it away. But Linux before 6.7 keeps thousands of freed pages for each CPU and gives
them back at once, with IRQs off for 1.5 ms or more, so here it keeps as few as it can.
"""

import os
import signal
import time

from kit import write

ALONE = "rates"
SMP = 1
BOOT_OPTIONS = ("--icount",)
# since 5.14, with which those lists began to grow
PAGES = "/proc/sys/vm/percpu_pagelist_high_fraction"


def guest(t):
    if os.path.exists(PAGES):
        write(PAGES, 1_000_000)
    program = t.start("/opt/stacktap/workload/deep", 5, 12)
    everything = t.record("all.otlp", "-a", "-e", "cpu-clock", "-F", 199)
    busy = t.record("busy.otlp", "-a", "-e", "cpu-clock", "-F", 97, "--exclude-idle")
    user = t.record("user.otlp", "-a", "-e", "cpu-clock", "-F", 61, "--user-only")
    t.wait(program)
    # now there is nothing but idle time
    time.sleep(3)
    counts = exact(t, t.accounts(*everything))
    t.equal((counts["filtered"], sum(counts["lost"].values())), (0, 0),
            "without a filter everything is recorded")
    for what, session, rate in (("idle", busy, 97), ("kernel", user, 61)):
        counts = exact(t, t.accounts(*session))
        t.ok(counts["recorded"] and counts["filtered"] >= 2 * rate,
             f"{what} time is turned away ({counts['filtered']} of {counts['calls']})")
    stalled(t)


def exact(t, counts):
    """Of the one CPU."""
    expected = counts[0]["running_ns"] / counts[0]["period"]
    t.near(counts[0]["calls"], expected, max(2, 0.01 * expected),
           "handler calls are running time over period")
    t.equal(counts[0]["missed"], 0, "no timer is late")
    return counts[0]


def stalled(t):
    """Twice a reader that does not read for a while."""
    child, session = t.record("stalled.otlp", "-a", "-e", "cpu-clock", "-F", 1999)

    def lost():
        return sum(t.counts(session)[0]["lost"].values())

    for number in (1, 2):
        before = lost()
        child.send_signal(signal.SIGSTOP)
        t.until(lambda: lost() >= before + 100, 60, f"losses of the reader's pause {number}")
        child.send_signal(signal.SIGCONT)
        time.sleep(1)
    counts = exact(t, t.accounts(child, session))
    t.equal(counts["lost"]["ring-full"], sum(counts["lost"].values()), "for want of room alone")


def host(t):
    def idle(filename):
        return sum(s.count for s in t.load(filename) if s.thread_name.startswith("swapper"))
    t.ok(idle("all.otlp") >= 2 * 199, f"idle time is sampled ({idle('all.otlp')})")
    t.equal(idle("busy.otlp"), 0, "and not where it is excluded")
    t.ok(all(s.stack[0].frame_type == "native" for s in t.load("user.otlp")),
         "with user mode alone no leaf is the kernel's")

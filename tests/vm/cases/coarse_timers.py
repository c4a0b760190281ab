# SPDX-License-Identifier: Apache-2.0
"""Without high resolution (highres=off) timers expire with the tick, and go on by a tick at least. cpu-clock then has
at most one sample a tick, and the periods without one are counted as missed, also where only user mode counts.

Under -icount no tick is late.
"""

import time

ALONE = True
SMP = 1
BOOT_OPTIONS = ("--icount",)
APPEND = ("highres=off",)
CLOCK = ("-a", "-e", "cpu-clock", "-F")
USER = ("-a", "-e", "cpu-clock:u", "-F")
FIXED = "--no-jitter"
COUNTS = ("calls", "recorded", "missed", "running_ns")


def guest(t):
    tick_ns = time.clock_getres(time.CLOCK_MONOTONIC) * 1e9
    t.ok(tick_ns >= 1e6, f"timers are as coarse as {tick_ns / 1e6:g} ms")
    sessions = [t.record(f"{number}.otlp", *options) for number, options in enumerate((
        (*CLOCK, 19), (*CLOCK, 97, FIXED), (*CLOCK, 97), (*CLOCK, 997, FIXED), (*CLOCK, 997), (*CLOCK, 997, "--user-only"),
        (*USER, 199), (*USER, 997, FIXED), (*USER, 997)))]
    before = counted(t)
    t.run("/opt/stacktap/workload/deep", 5, 3)
    after = counted(t)
    modes, *user = [{name: after[session][name] - before[session][name] for name in COUNTS} | {"period": after[session]["period"]}
                    for _, session in sessions[5:]]
    # now there is nothing but idle time
    time.sleep(1)
    counts = [t.accounts(*session)[0] for session in sessions[:6]]
    for count in counts:
        accounted(t, count, count["running_ns"])
        t.ok(count["calls"] <= count["running_ns"] / tick_ns + 2, f"{count['calls']} calls, at most one a tick")
    # an interval that is drawn below a tick begins near the end of a period, and a tick behind that is still in the next
    for count in counts[:3]:
        t.ok(count["missed"] <= 1, f"{1e9 / count['period']:.0f} Hz: {count['missed']} periods are missed, each has its sample")
    for count in user:
        accounted(t, count, modes["running_ns"] * modes["recorded"] / modes["calls"], 0.02)


def counted(t):
    """By session, of the one CPU and source."""
    return {session["id"]: session["cpus"][0]["counts"][0] for session in t.json("status")["sessions"]}


def accounted(t, count, ns, error=0.01):
    periods = ns / count["period"]
    t.near(count["calls"] + count["missed"], periods, max(3, error * periods),
           f"{1e9 / count['period']:.0f} Hz: calls and missed periods are all of the time")

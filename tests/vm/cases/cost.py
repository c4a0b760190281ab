# SPDX-License-Identifier: Apache-2.0
"""What the module says of the time that it takes: once per handler call, on every CPU, and as much as
the same work takes longer.

Under -icount a guest's nanosecond is one instruction, so that the two can be compared.
"""

import re

import kmodtest

LOAD = False
ALONE = "shares"
SMP = 1
BOOT_OPTIONS = ("--icount",)


def mean(cpus):
    return sum(cpu["handler"]["ns"] for cpu in cpus) / sum(cpu["handler"]["count"] for cpu in cpus)


def filtered(t, sampled):
    """A filter is asked before any stack is walked."""
    record, session = t.record("filtered.otlp", "-a", "--comm", "nobody", "-F", 499, "-e", "cpu-clock")
    t.until(lambda: min(c["calls"] for c in t.counts(session)) > 500, 60, "calls")
    cpus = next(s for s in t.json("status")["sessions"] if s["id"] == session)["cpus"]
    counts = t.accounts(record, session)
    t.equal([c["filtered"] for c in counts], [c["calls"] for c in counts], "a filter drops every call")
    t.ok(mean(cpus) < sampled / 2, "which costs a fraction of what a stack does: "
         f"{mean(cpus):.0f} and {sampled:.0f} ns")


def guest(t):
    kmodtest.run(t, "cost")
    t.insmod()
    program = t.start("/opt/stacktap/workload/deep", 20, 600)
    record, session = t.record("cost.otlp", "-a", "-F", 499, "-e", "cpu-clock", "-e", "cycles")
    t.until(lambda: min(c["calls"] for c in t.counts(session)) > 500, 60, "calls")
    shown = t.stacktap("status").stdout
    t.stacktap("stop", session)
    cpus = next(s for s in t.json("status")["sessions"] if s["id"] == session)["cpus"]
    for cpu in cpus:
        calls = sum(c["calls"] for c in cpu["counts"])
        for name in ("handler", "drain"):
            times = cpu[name]
            t.equal(times["count"], sum(times["times_below_ns"].values()) + times["more"],
                    f"CPU {cpu['cpu']}: {name}: the times add up")
        t.equal(cpu["handler"]["count"], calls, f"CPU {cpu['cpu']}: as many times as handler calls")
        interrupts = sum(c["calls"] - c["in_place"] for c in cpu["counts"] if c["type"] == 0)
        t.ok(bool(cpu["drain"]["count"]) == bool(interrupts) and cpu["drain"]["count"] <= interrupts,
             f"CPU {cpu['cpu']}: phase 2 ran for the PMU's samples alone", cpu["drain"])
    t.stop(record)
    filtered(t, mean(cpus))
    t.stop(program)
    said = re.search(r"time in the overflow handler: mean (\d+) ns, 99 % below (\d+) ns", shown)
    t.ok(said and 0 < int(said[1]), "status says how long the handler takes", shown)
    t.rmmod()

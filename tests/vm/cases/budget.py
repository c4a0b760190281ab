# SPDX-License-Identifier: Apache-2.0
"""The overflow handler stays within perf's budget: no sysctl moves, even with 200-frame stacks.

A PMU's interrupt walks user stacks itself as long as the mean of that leaves perf's alone.
perf lowers kernel.perf_event_max_sample_rate for everybody when PMU interrupts take 2,500 ns on
average. Under -icount a guest's nanosecond is one instruction, so the budget is 2,500 instructions
and the verdict does not depend on this machine.
"""

ARCHES = ("arm64",)
LOAD = False
ALONE = True
SMP = 1
BOOT_OPTIONS = ("--icount",)
SYSCTLS = ("perf_event_max_sample_rate", "perf_cpu_time_max_percent", "perf_event_paranoid")


def sysctls():
    values = {}
    for name in SYSCTLS:
        with open(f"/proc/sys/kernel/{name}", encoding="ascii") as f:
            values[name] = f.read().strip()
    return values


def sampled(t, depth):
    """Counts of what a program at that depth gives in some seconds."""
    program = t.start("/opt/stacktap/workload/deep", depth, 600)
    record, session = t.record(f"deep{depth}.otlp", "-p", program.pid, "-F", 997, "-e", "cycles")
    t.until(lambda: sum(c["calls"] for c in t.counts(session)) > 4000, 120, "calls")
    counts = t.accounts(record, session)
    t.stop(program)
    return {name: sum(c[name] for c in counts) for name in ("recorded", "in_place", "put_off")}


def guest(t):
    # an instruction is a nanosecond here
    t.insmod("in_place_ns=1400")
    with open("/proc/sys/kernel/perf_cpu_time_max_percent", "w", encoding="ascii") as f:
        f.write("25")
    before = sysctls()
    t.ok(before["perf_event_max_sample_rate"] == "100000", f"perf's defaults hold ({before})")
    counts = sampled(t, 5)
    t.ok(counts["in_place"] >= 0.9 * counts["recorded"], "interrupts finish samples of few frames", counts)
    t.equal(sysctls(), before, "no sysctl has moved after 4 s at 997 Hz with 5 user frames")
    counts = sampled(t, 200)
    t.ok(0 < counts["in_place"] < 0.5 * counts["recorded"], "and some of those of 200, as many as perf allows for",
         counts)
    t.equal(sysctls(), before, "no sysctl has moved after 4 s at 997 Hz with 200 user frames")
    # what it was put to in between counts first: it goes by the mean
    counts = sampled(t, 5)
    t.ok(counts["in_place"] >= 0.8 * counts["recorded"], "those of few frames again", counts)
    t.rmmod()

# SPDX-License-Identifier: Apache-2.0
"""The overflow handler stays within perf's budget: no sysctl moves, even with 200-frame stacks.

perf lowers kernel.perf_event_max_sample_rate for everybody when PMU interrupts take 2,500 ns on
average. Under -icount a guest's nanosecond is one instruction, so the budget is 2,500 instructions
and the verdict does not depend on this machine.
"""

ARCHES = ("arm64",)
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


def guest(t):
    with open("/proc/sys/kernel/perf_cpu_time_max_percent", "w", encoding="ascii") as f:
        f.write("25")
    before = sysctls()
    t.ok(before["perf_event_max_sample_rate"] == "100000", f"perf's defaults hold ({before})")
    program = t.start("/opt/stacktap/workload/deep", 200, 6)
    result = t.stacktap("record", "-p", program.pid, "-F", 997, "--duration", 4,
                        "-o", t.path("deep.otlp"))
    t.note(result.stderr.strip().splitlines()[-1])
    t.wait(program)
    t.equal(sysctls(), before, "no sysctl has moved after 4 s at 997 Hz with 200 user frames")

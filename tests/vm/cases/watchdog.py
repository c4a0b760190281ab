# SPDX-License-Identifier: Apache-2.0
"""The hard-lockup watchdog beside us: it does not cry wolf while two sessions sample, one by
its own means, it finds a CPU that is stuck, and we have samples of what that was stuck in."""

import re

from kit import COMPLAINT, dmesg, write

from cases import images

# of the kernel of test-nmi: the only one here that has this watchdog
ARCHES = ("arm64",)
LANE = "watchdog"
ALONE = True
KERNEL = "/proc/sys/kernel"
# A look at each CPU takes 5 * 10^9 cycles here, as of a CPU whose frequency nobody tells; the second
# look without a timer interrupt in between is an alarm.
LOOK_SECONDS = 5
CALM_SECONDS = 3 * LOOK_SECONDS
STUCK_SECONDS = 3 * LOOK_SECONDS
STUCK_CPU = 1
ALARM = re.compile(r"hard LOCKUP on cpu (\d+)")


def complaints(since):
    return [line for line in dmesg()[since:].splitlines() if COMPLAINT.search(line)]


def guest(t):
    begin = len(dmesg())
    write(f"{KERNEL}/soft_watchdog", 0)
    write(f"{KERNEL}/watchdog_thresh", 1)
    write(f"{KERNEL}/nmi_watchdog", 1)
    burner = t.start(images.IMAGES, "after_exec", 10000000)
    child, session = t.record("ours.otlp", "-a", "-F", 199, "-e", "cycles")
    # not of cycles: with two beside the watchdog's QEMU's PMU brings false alarms, perf record's do, too
    second, other = t.record("second.otlp", "-a", "-F", 97, "-e", "cpu-clock")
    checks = {check["name"]: check for check in t.json("doctor")["checks"]}
    t.ok(checks["nmi-watchdog"]["state"] == "warning" and "one counter" in checks["nmi-watchdog"]["text"],
         "doctor tells that it takes a counter", checks["nmi-watchdog"])

    t.run("sleep", CALM_SECONDS)
    said = complaints(begin)
    t.ok(not said, f"{CALM_SECONDS} s of sampling are no lockup", said)
    calm = len(dmesg())
    t.run("modprobe", "preemptirq_delay_test", "test_mode=irq", "burst_size=1",
          f"cpu_affinity={STUCK_CPU}", f"delay={STUCK_SECONDS * 1000000}")
    said = dmesg()[calm:]
    # QEMU's PMU may raise one of the other CPU, too, beside perf record as beside us
    t.ok(str(STUCK_CPU) in ALARM.findall(said), "a CPU that takes no interrupts is found", said)
    recorded = {c["cpu"]: c["recorded"] for c in t.counts(session)}
    t.ok(t.comes_to(lambda: all(c["recorded"] > recorded[c["cpu"]] + 20 for c in t.counts(session)), 60),
         "both CPUs are sampled on afterwards")
    counts = t.accounts(child, session)
    t.accounts(second, other)
    t.equal([c["cpu"] for c in counts if c["multiplexed"]], [], "and neither had to wait for a counter")
    t.stop(burner)
    said = [line for line in complaints(begin) if not re.search(r"hard LOCKUP|Call trace:", line)]
    t.ok(not said, "that alarm is all the kernel complains of", said)
    # or the lab would complain of it
    t.run("dmesg", "--clear")


def host(t):
    # the module came after its names were read; it waits by looking at a clock of the kernel's
    stuck = [s for s in t.load("ours.otlp") if s.thread_name == "irq_test"
             and {"trace_clock_local", "kthread"} <= set(s.names)]
    t.ok(stuck and {s.cpu for s in stuck} == {STUCK_CPU},
         f"{sum(s.count for s in stuck)} samples show what it was stuck in, where NMIs alone come through")

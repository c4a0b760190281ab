# SPDX-License-Identifier: Apache-2.0
"""The hard-lockup watchdog beside us: it does not cry wolf while two sessions sample, one by
its own means, it finds a CPU that is stuck, and we have samples of what that was stuck in."""

import json
import os
import re

from kit import COMPLAINT, dmesg, read, write

from cases import images

# of the kernel of test-nmi: the only one here that has this watchdog
ARCHES = ("arm64",)
LANE = "nmi"
ALONE = True
# the lockup that is wanted would be one too many
BOOT_OPTIONS = ("--allow-splat",)
KERNEL = "/proc/sys/kernel"
# A look at each CPU takes 5 * 10^9 cycles here, as of a CPU whose frequency nobody tells; the second
# look without a timer interrupt in between is an alarm.
LOOK_SECONDS = 5
CALM_SECONDS = 3 * LOOK_SECONDS
STUCK_SECONDS = 3 * LOOK_SECONDS
STUCK_CPU = 1
# Without the timer's tick perf throttles a counter at sysctl_perf_event_sample_rate / HZ overflows.
CALLS = 100000 // 250


def alarms(since):
    return re.findall(r"hard LOCKUP on cpu (\d+)", dmesg()[since:])


def on(t, session, cpu):
    return [c for c in t.counts(session) if c["cpu"] == cpu][0]


def guest(t):
    write(f"{KERNEL}/soft_watchdog", 0)
    write(f"{KERNEL}/watchdog_thresh", 1)
    write(f"{KERNEL}/nmi_watchdog", 1)
    t.equal(read(f"{KERNEL}/nmi_watchdog"), "1", "the watchdog is on")
    begin = len(dmesg())
    burner = t.start(images.IMAGES, "after_exec", 10000000)
    child, session = t.record("ours.otlp", "-a", "-F", 199, "-e", "cycles")
    # not of cycles: with two beside the watchdog's QEMU's PMU brings false alarms, perf record's do, too
    second, other = t.record("second.otlp", "-a", "-F", 97, "-e", "cpu-clock")
    checks = {check["name"]: check for check in t.json("doctor")["checks"]}
    t.ok(checks["nmi-watchdog"]["state"] == "warning" and "one counter" in checks["nmi-watchdog"]["text"],
         "doctor tells that it takes a counter", checks["nmi-watchdog"])

    t.run("sleep", CALM_SECONDS)
    said = [line for line in dmesg()[begin:].splitlines() if COMPLAINT.search(line)]
    t.ok(not said, f"{CALM_SECONDS} s of sampling are no lockup", said)
    before = on(t, session, STUCK_CPU)
    t.run("modprobe", "preemptirq_delay_test", "test_mode=irq", "burst_size=1",
          f"cpu_affinity={STUCK_CPU}", f"delay={STUCK_SECONDS * 1000000}")
    after = on(t, session, STUCK_CPU)
    # QEMU's PMU may raise one of the other CPU, too, beside perf record as beside us
    t.ok(str(STUCK_CPU) in alarms(begin), "a CPU that takes no interrupts is found", alarms(begin))
    calls = after["calls"] - before["calls"]
    t.ok(calls >= CALLS, f"our counter interrupts it all the same, {calls} times")
    t.ok(after["throttled"] > before["throttled"], "until perf throttles it, which is counted", after)
    t.until(lambda: on(t, session, STUCK_CPU)["recorded"] > after["recorded"] + 20, 60, "samples")
    t.ok(True, "it is sampled on afterwards")
    counts = t.accounts(child, session)
    t.accounts(second, other)
    t.equal([c["cpu"] for c in counts if c["is_multiplexed"]], [], "and neither had to wait for a counter")
    t.stop(burner)
    # what was provoked is judged; what comes after it is the lab's to judge
    t.run("dmesg", "--clear")


def host(t):
    # the module came after its names were read; it waits by looking at a clock of the kernel's
    stuck = [s for s in t.load("ours.otlp") if s.thread_name == "irq_test"
             and {"trace_clock_local", "kthread"} <= set(s.names)]
    t.ok(stuck and {s.cpu for s in stuck} == {STUCK_CPU},
         f"{sum(s.count for s in stuck)} samples show what it was stuck in")

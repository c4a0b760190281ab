# SPDX-License-Identifier: Apache-2.0
"""CPUs go and come while the daemon's pipeline samples: nothing hangs, samples go on on all CPUs."""

import os
import time

SMP = 3
ROUNDS = 12


def cpu_online(cpu, value):
    with open(f"/sys/devices/system/cpu/cpu{cpu}/online", "w", encoding="ascii") as f:
        f.write(str(value))


def guest(t):
    burners = [t.start("/opt/stacktap/workload/deep", 5, 60) for _ in range(3)]
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 199, "-e", "cycles",
                     "-e", "page-faults", "-c", 100, "-o", t.path("hotplug.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30,
            "sampling")
    for number in range(ROUNDS):
        cpu = 1 + number % 2
        cpu_online(cpu, 0)
        time.sleep(0.1)
        cpu_online(cpu, 1)
        time.sleep(0.3)
    time.sleep(2)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    t.note(err.strip().splitlines()[-1])
    for burner in burners:
        t.stop(burner)
    with open("/proc/sys/kernel/tainted", encoding="ascii") as f:
        t.ok(int(f.read()) & 0x80 == 0, "the kernel has not died")
    t.ok(os.path.getsize(t.path("hotplug.otlp")) > 1000, "there is a profile")


def host(t):
    samples = t.load("hotplug.otlp")
    latest = max(time_ns for s in samples for time_ns in s.timestamps)
    for cpu in range(SMP):
        mine = [time_ns for s in samples if s.cpu == cpu for time_ns in s.timestamps]
        t.ok(mine and latest - max(mine) < 2e9, f"CPU {cpu} is sampled to the end ({len(mine)})")

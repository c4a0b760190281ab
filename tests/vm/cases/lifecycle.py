# SPDX-License-Identifier: Apache-2.0
"""kill -9, rmmod while in use and while a CPU is away, fifty loads (FULL=1: 1,000, or LOADS=n):
the host stays clean."""

import os
import signal
import time

import kmodtest
from cases import hotplug

# not unloaded after a failure: a module with living counters must not go
LOAD = False
# CPU 1 goes; should rmmod spin for it, there is another for the case
SMP = 3
SESSIONS_MAX = 64
BOOT_TIMEOUT = 21600 if kmodtest.FULL else 1800
TIMEOUT = 3000 if kmodtest.FULL else 300


def before(t):
    kmodtest.before(t, LOADS=1000)


def running(t):
    return [s for s in t.json("status")["sessions"] if s["state"] == "running"]


def comes(t, condition, seconds, text):
    """An assertion that may take a while to hold."""
    try:
        return t.ok(t.until(condition, seconds, text), text)
    except AssertionError as e:
        return t.ok(False, text, e)


def rings():
    """What the module's rings hold of the kernel's address space."""
    with open("/proc/vmallocinfo", encoding="ascii") as f:
        return [line for line in f if "ring_create" in line]


def busy(t):
    """The owner of a session that has samples of CPU 1."""
    owner = t.start("/opt/stacktap/kmodtest", "busy")
    t.equal(owner.stdout.readline(), "sampled\n", "CPU 1 is sampled")
    return owner


def away(t):
    """CPU 1 leaves while it is sampled, and is back when owner and module have gone."""
    for _ in range(3):
        t.insmod()
        owner = busy(t)
        hotplug.cpu_online(1, 0)
        t.stop(owner, signal.SIGKILL)
        rmmod = t.start("rmmod", "stacktap")
        ended = t.comes_to(lambda: rmmod.poll() is not None, 5)
        hotplug.cpu_online(1, 1)
        said = t.end_of(rmmod)
        t.ok(ended and not rmmod.returncode, "the module unloads while CPU 1 is away", said)
    t.insmod()
    t.stop(busy(t), signal.SIGKILL)
    t.rmmod()


def guest(t):
    away(t)
    t.insmod()
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 199, "-o", "/tmp/x.otlp")
    t.until(lambda: running(t), 30, "sampling")
    t.ok(rings(), "a session's rings show in vmallocinfo")
    result = t.run("rmmod", "stacktap", check=False)
    t.ok(result.returncode != 0 and "in use" in result.stderr, "rmmod is refused while in use",
         result.stderr)
    record.send_signal(signal.SIGKILL)
    t.wait(record, 30)
    if not comes(t, lambda: not t.json("status")["sessions"], 10,
                 "kill -9 of the owner ends its session"):
        return
    t.run("rmmod", "stacktap")
    refused = []
    loads = int(kmodtest.settings(t).get("LOADS", 50))
    for _ in range(loads):
        result = t.run("insmod", "/opt/stacktap/stacktap.ko", check=False)
        refused += [result.stderr] * bool(result.returncode)
        t.run("rmmod", "stacktap", check=False)
    t.ok(not refused and not os.path.exists("/dev/stacktap"),
         f"{loads} loads and unloads leave nothing behind", refused[:1])
    t.insmod()
    for number in range(10):
        record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 499, "-o",
                         "/tmp/x.otlp")
        time.sleep(0.2 + 0.07 * number)
        record.send_signal(signal.SIGKILL)
        t.wait(record, 30)
    if not comes(t, lambda: not t.json("status")["sessions"], 10,
                 "ten owners killed at various points leave no session"):
        return
    # freed after a grace period
    comes(t, lambda: not rings(), 10, "and none of their rings' memory")
    refused = 0
    for _ in range(2 * SESSIONS_MAX):
        try:
            os.close(os.open("/dev/stacktap", os.O_RDWR))
        except OSError:
            refused += 1
    t.equal(refused, 0, "sessions one after the other do not use up their number")
    t.rmmod()

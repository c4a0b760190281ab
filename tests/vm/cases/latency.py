# SPDX-License-Identifier: Apache-2.0
"""The kernel's own tracers of what keeps interrupts off say that ours is no longer than its limit, on a kernel with
PREEMPT_RT, too. irqsoff names the longest stretch of all, of whomever: an interrupt with the kernel's part of it. timerlat
says how late its timer's interrupt came, and osnoise how long interrupts took from those that they hit. So what they say
while the module samples is held against what they say of the same programs without.

Under -icount a nanosecond is one instruction.
"""

import os
import re
import time

from kit import read, write

LANE = "latency"
LOAD = False
ALONE = "latency"
SMP = 1
BOOT_OPTIONS = ("--icount",)
TIMEOUT = 3600

TRACING = "/sys/kernel/tracing"
SECONDS = 4
IS_RT = "latency-rt" in os.uname().release
# of phase 2 and of handlers that walk, and what a sample takes beside its walk (case ceiling: below 2^17 ns)
LIMIT_US = (25 if IS_RT else 100) + 31
# of osnoise's records of interrupts, so that few are written
LONG_NS = 1000


def traced(tracer):
    """What @tracer has written while programs run."""
    write(f"{TRACING}/trace", "")
    write(f"{TRACING}/tracing_max_latency", 0)
    write(f"{TRACING}/current_tracer", tracer)
    time.sleep(SECONDS)
    write(f"{TRACING}/tracing_on", 0)
    with open(f"{TRACING}/trace", encoding="ascii") as f:
        said = f.read()
    us = int(read(f"{TRACING}/tracing_max_latency"))
    write(f"{TRACING}/current_tracer", "nop")
    write(f"{TRACING}/tracing_on", 1)
    return said, us


def longest(t, what):
    """While programs run, in us: the longest stretch with IRQs off, the latest timer, the longest interrupt."""
    said, off = traced("irqsoff")
    ends = re.findall(r"=> (?:started at|ended at): +(\S+)", said)
    said, _ = traced("timerlat")
    late = [int(ns) for ns in re.findall(r"context +irq timer_latency +(\d+) ns", said)]
    took = [(int(ns), which) for which, ns in re.findall(r"irq_noise: (\S+):\d+ start \S+ duration (\d+) ns", said)]
    took, which = max(took, default=(0, "none"))
    t.note(f"{what}: {off} us with IRQs off, from {' to '.join(ends)}; {len(late)} timers, {max(late)} ns late at most; "
           f"{took} ns in an interrupt at most, {which}")
    return {"IRQs off": off, "a timer is late": max(late) / 1000, "an interrupt": took / 1000}


def sampled(t, what, bare, sessions, *options):
    children = [t.record(f"{i}.otlp", "-a", "--budget-ns", 0, *options) for i in range(sessions)]
    have = longest(t, what)
    ids = [session for _, session in children]
    cpus = [cpu for s in t.json("status")["sessions"] if s["id"] in ids for cpu in s["cpus"]]
    calls = sum(c["calls"] for cpu in cpus for c in cpu["counts"])
    below = max(int(ns) for cpu in cpus for ns, count in cpu["handler"]["times_below_ns"].items() if count)
    t.note(f"{what}: of that an overflow handler, by its own histogram: less than {below} ns")
    for child, _ in children:
        t.stop(child)
    t.ok(calls > 200 * SECONDS, f"{what}: {calls} calls")
    # the longest stretch of all delays a timer, too, but in some seconds hardly one comes just then
    bare = {**bare, "a timer is late": max(bare["a timer is late"], bare["IRQs off"])}
    for of, us in have.items():
        t.ok(us <= bare[of] + LIMIT_US, f"{what}: {of}: {us:g} us at most, {bare[of]:g} without us and {LIMIT_US}")


def guest(t):
    if not os.path.exists(f"{TRACING}/trace"):
        t.run("mount", "-t", "tracefs", "tracefs", TRACING)
    write(f"{TRACING}/events/osnoise/irq_noise/filter", f"duration > {LONG_NS}")
    write(f"{TRACING}/events/osnoise/irq_noise/enable", 1)
    t.run("insmod", "/opt/stacktap/stacktap.ko", "ceiling_permille=0")
    deep = t.start("/opt/stacktap/workload/deep", 1000, 3600)
    frameless = t.start("/opt/stacktap/workload/deep_frameless", 1000, 3600)
    time.sleep(2)
    bare = longest(t, "without us")
    sampled(t, "frame pointers, 1,000 frames", bare, 1, "-e", "cpu-clock", "-F", 4999, "--call-graph", "fp")
    sampled(t, "tables, 1,000 frames", bare, 1, "-e", "cpu-clock", "-F", 4999)
    # their timers expire in one interrupt
    sampled(t, "eight sessions", bare, 8, "-e", "cpu-clock", "-F", 997)
    sampled(t, "every page fault and switch", bare, 1, "-e", "page-faults", "-c", 1, "-e", "context-switches", "-c", 1,
            "-e", "cpu-clock", "-F", 997)
    t.stop(deep)
    t.stop(frameless)
    t.run("rmmod", "stacktap")

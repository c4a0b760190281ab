# SPDX-License-Identifier: Apache-2.0
"""The kernel's own tracer of what keeps interrupts off says that ours is no longer than its limit. It names the longest stretch of all, of whomever: an interrupt with the kernel's part of it. So what
it says while the module samples is held against what it says of the same programs without.

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
TIMEOUT = 1800

TRACING = "/sys/kernel/tracing"
SECONDS = 4
# of phase 2 and of handlers that walk, and what a sample takes beside its walk (case ceiling: below 2^17 ns)
LIMIT_US = 100 + 31


def longest(t, what):
    """While programs run: of all stretches with IRQs off, in us."""
    write(f"{TRACING}/tracing_max_latency", 0)
    write(f"{TRACING}/current_tracer", "irqsoff")
    time.sleep(SECONDS)
    write(f"{TRACING}/tracing_on", 0)
    us = int(read(f"{TRACING}/tracing_max_latency"))
    with open(f"{TRACING}/trace", encoding="ascii") as f:
        ends = re.findall(r"=> (?:started at|ended at): +(\S+)", f.read())
    write(f"{TRACING}/current_tracer", "nop")
    write(f"{TRACING}/tracing_on", 1)
    t.note(f"{what}: {us} us, from {' to '.join(ends)}")
    return us


def sampled(t, what, limit, sessions, *options):
    children = [t.record(f"{i}.otlp", "-a", "--budget-ns", 0, *options) for i in range(sessions)]
    us = longest(t, what)
    calls = sum(c["calls"] for _, session in children for c in t.counts(session))
    for child, _ in children:
        t.stop(child)
    t.ok(calls > 100 * SECONDS and us <= limit, f"{what}: {us} us at most, of {limit}, {calls} calls")


def guest(t):
    if not os.path.exists(TRACING):
        t.run("mount", "-t", "tracefs", "tracefs", TRACING)
    t.run("insmod", "/opt/stacktap/stacktap.ko", "ceiling_permille=0")
    deep = t.start("/opt/stacktap/workload/deep", 1000, 3600)
    frameless = t.start("/opt/stacktap/workload/deep_frameless", 1000, 3600)
    time.sleep(2)
    bare = longest(t, "without us")
    limit = bare + LIMIT_US
    sampled(t, "frame pointers, 1,000 frames", limit, 1, "-e", "cpu-clock", "-F", 4999, "--call-graph", "fp")
    sampled(t, "tables, 1,000 frames", limit, 1, "-e", "cpu-clock", "-F", 4999)
    # their timers expire in one interrupt
    sampled(t, "eight sessions", limit, 8, "-e", "cpu-clock", "-F", 997)
    sampled(t, "every page fault and switch", limit, 1, "-e", "page-faults", "-c", 1, "-e", "context-switches", "-c", 1,
            "-e", "cpu-clock", "-F", 997)
    t.stop(deep)
    t.stop(frameless)
    t.run("rmmod", "stacktap")

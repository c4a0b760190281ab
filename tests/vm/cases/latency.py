# SPDX-License-Identifier: Apache-2.0
"""The kernel's own tracers of what keeps interrupts off say that ours is no longer than its limit, on a kernel with
PREEMPT_RT, too. irqsoff names the longest stretch, an interrupt with the kernel's part of it, or a switch of tasks; of
those that are the kernel's alone this case tells, and does not judge them. timerlat says how late its timer's interrupt
came, and osnoise how long interrupts took from those that they hit. So what they say while the module samples is held
against what they say of the same programs without.

Under -icount a nanosecond is one instruction.
"""

import os
import re
import signal
import time

from kit import read, write

LANE = "latency"
LOAD = False
ALONE = "latency"
SMP = 1
BOOT_OPTIONS = ("--icount",)
TIMEOUT = 3600
BOOT_TIMEOUT = 7200

TRACING = "/sys/kernel/tracing"
FUNCTIONS = f"{TRACING}/options/function-trace"
TIMERLAT_SECONDS = 4
# each may have one that is the kernel's alone, and longer than ours
LOOKS, LOOK_SECONDS = 20, 0.1
KINDS = ("IRQs off", "a switch", "the kernel alone")
INTERRUPTS = ("local_timer_entry", "irq_work_entry")
IS_RT = "latency-rt" in os.uname().release
# of phase 2 and of handlers that walk, and what a sample takes beside its walk (case ceiling: below 2^17 ns); on PREEMPT_RT
# it was 38 at most in three runs, 51 with eight sessions, and 58 and 63 where each of their timers had a deadline of its own
LIMIT_US = 25 + 17 if IS_RT else 100 + 31
# the same of each further session whose timer expires in that interrupt, with lockdep: 1.1 on 6.1, 2 on PREEMPT_RT
BESIDE_US = 2
# of osnoise's records of interrupts, so that few are written
LONG_NS = 1000


def traced(seconds):
    """What the tracer that runs has written in that time."""
    write(f"{TRACING}/trace", "")
    write(f"{TRACING}/tracing_on", 1)
    time.sleep(seconds)
    write(f"{TRACING}/tracing_on", 0)
    with open(f"{TRACING}/trace", encoding="ascii") as f:
        return f.read()


def kind_of(said, names):
    """Of the stretch that irqsoff shows. The module, whose functions have these @names, can have run in an interrupt or a
    switch of tasks; the rest is the kernel's, as when it frees many pages."""
    if "sched_switch:" in said:
        return "a switch"
    if any(f"{event}:" in said for event in INTERRUPTS) or \
            any(name in names for name in re.findall(r"=> (?:started at: +|ended at: +)?(\S+)", said)):
        return "IRQs off"
    return "the kernel alone"


def longest_off(t, what):
    """In us, with IRQs off, while programs run, by kind."""
    events = [f"{TRACING}/events/{event}/enable"
              for event in ("sched/sched_switch", *(f"irq_vectors/{event}" for event in INTERRUPTS))]
    with open("/proc/kallsyms", encoding="ascii") as f:
        names = {line.split()[2] for line in f if line.endswith("[stacktap]\n")}
    found = {}
    write(f"{TRACING}/current_tracer", "irqsoff")
    for event in events:
        write(event, 1)
    for _ in range(LOOKS):
        write(f"{TRACING}/tracing_max_latency", 0)
        said = traced(LOOK_SECONDS)
        found.setdefault(kind_of(said, names), []).append((int(read(f"{TRACING}/tracing_max_latency")), said))
    for event in events:
        write(event, 0)
    write(f"{TRACING}/current_tracer", "nop")
    for kind, looks in found.items():
        us, said = max(looks)
        callers = re.findall(r"^ => (\S+)", said, re.MULTILINE)
        ends = re.findall(r"=> (?:started at|ended at): +(\S+)", said)
        t.note(f"{what}: {kind}: {us} us at most in {len(looks)} looks, from {' to '.join(ends)} in "
               f"{' < '.join(callers)}")
    return {kind: max(looks)[0] for kind, looks in found.items()}


def longest(t, what):
    """While programs run, in us: the longest stretch with IRQs off, the latest timer, the longest interrupt."""
    off = longest_off(t, what)
    write(f"{TRACING}/current_tracer", "timerlat")
    said = traced(TIMERLAT_SECONDS)
    write(f"{TRACING}/current_tracer", "nop")
    write(f"{TRACING}/tracing_on", 1)
    late = [int(ns) for ns in re.findall(r"context +irq timer_latency +(\d+) ns", said)]
    took = [(int(ns), which) for which, ns in re.findall(r"irq_noise: (\S+):\d+ start \S+ duration (\d+) ns", said)]
    took, which = max(took, default=(0, "none"))
    t.note(f"{what}: {len(late)} timers, {max(late)} ns late at most; {took} ns in an interrupt at most, {which}")
    return {**off, "a timer is late": max(late) / 1000, "an interrupt": took / 1000}


def sampled(t, what, bare, sessions, *options):
    children = [t.record(f"{i}.otlp", "-a", "--budget-ns", 0, *options) for i in range(sessions)]
    have = longest(t, what)
    ids = [session for _, session in children]
    cpus = [cpu for s in t.json("status")["sessions"] if s["id"] in ids for cpu in s["cpus"]]
    calls = sum(c["calls"] for cpu in cpus for c in cpu["counts"])
    below = max(int(ns) for cpu in cpus for ns, count in cpu["handler"]["times_below_ns"].items() if count)
    t.note(f"{what}: of that an overflow handler, by its own histogram: less than {below} ns")
    for child, _ in children:
        # nobody reads what it has recorded, and counted instructions are slow at naming it
        t.stop(child, signal.SIGKILL)
    t.ok(calls > 200 * (TIMERLAT_SECONDS + LOOKS * LOOK_SECONDS), f"{what}: {calls} calls")
    # the longest stretch of all delays a timer, too, but in some seconds hardly one comes just then
    bare = {**bare, "a timer is late": max(bare["a timer is late"], *(bare.get(kind, 0) for kind in KINDS))}
    limit = LIMIT_US + BESIDE_US * (sessions - 1)
    judged = ["IRQs off", "a timer is late", "an interrupt"] + (["a switch"] if "context-switches" in options else [])
    for of in judged:
        # of what no look was the longest, an interrupt by osnoise is
        us, without = (who.get(of, who["an interrupt"]) for who in (have, bare))
        t.ok(us <= without + limit, f"{what}: {of}: {us:g} us at most, {without:g} without us and {limit}")


def guest(t):
    if not os.path.exists(f"{TRACING}/trace"):
        t.run("mount", "-t", "tracefs", "tracefs", TRACING)
    if os.path.exists(FUNCTIONS):
        # irqsoff would trace each function with IRQs off, which makes every stretch longer
        write(FUNCTIONS, 0)
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

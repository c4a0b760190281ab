# SPDX-License-Identifier: Apache-2.0
"""Return hooks of kprobes, ftrace and uprobes: no stack has a trampoline for a caller, and a stack that
lacks a caller for one says so."""

import os
import re
import signal

import kit
from cases import kernel_time, unwind

TRACING = "/sys/kernel/tracing"
WORKLOADS = "/opt/stacktap/workload"
# called by read() of /dev/zero, and calls what takes the time
KERNEL = "vfs_read"
CHAIN = ("leaf", "hooked", "caller", "main")
TRAMPOLINE = re.compile(r"trampoline|return_to_handler")
ENOUGH = 30


def sample(t, name, *command):
    record, _ = t.record(f"{name}.otlp", "-a", "-F", 299, "--call-graph", name.partition("-")[2])
    t.run(*command)
    out, err = t.stop(record, signal.SIGINT)
    t.ok(record.returncode == 0, f"{name}: record ends well", out + err)


def guest(t):
    if not os.path.exists(f"{TRACING}/trace"):
        t.run("mount", "-t", "tracefs", "none", TRACING)
    kit.write(f"{TRACING}/kprobe_events", f"r:hooks/kernel {KERNEL}")
    kit.write(f"{TRACING}/events/hooks/kernel/enable", 1)
    sample(t, "kretprobe-fp", f"{WORKLOADS}/zero_reader", 3)
    kit.write(f"{TRACING}/events/hooks/kernel/enable", 0)
    kit.write(f"{TRACING}/kprobe_events", "")

    kit.write(f"{TRACING}/set_ftrace_filter", KERNEL)
    kit.write(f"{TRACING}/current_tracer", "function_graph")
    sample(t, "graph-fp", f"{WORKLOADS}/zero_reader", 3)
    kit.write(f"{TRACING}/current_tracer", "nop")
    kit.write(f"{TRACING}/set_ftrace_filter", "")

    offset = t.run(f"{WORKLOADS}/hooks").stdout.strip()
    kit.write(f"{TRACING}/uprobe_events", f"r:hooks/user {WORKLOADS}/hooks:{offset}")
    kit.write(f"{TRACING}/events/hooks/user/enable", 1)
    for way in ("fp", "table"):
        sample(t, f"uretprobe-{way}", f"{WORKLOADS}/hooks", 4)
    kit.write(f"{TRACING}/events/hooks/user/enable", 0)
    kit.write(f"{TRACING}/uprobe_events", "")

    # new programs, whose first samples the daemon unwinds
    offset = t.run(f"{WORKLOADS}/hooks_frameless").stdout.strip()
    kit.write(f"{TRACING}/uprobe_events", f"r:hooks/user {WORKLOADS}/hooks_frameless:{offset}")
    kit.write(f"{TRACING}/events/hooks/user/enable", 1)
    sample(t, "deferred-table", "sh", "-c",
           f"for i in 1 2 3 4; do {WORKLOADS}/hooks_frameless 1; done")
    kit.write(f"{TRACING}/events/hooks/user/enable", 0)
    kit.write(f"{TRACING}/uprobe_events", "")
    sample(t, "none-table", f"{WORKLOADS}/hooks", 2)


def callers(s, function):
    """The names of the frames above it."""
    names = [frame.function for frame in s.stack]
    return names[names.index(function) + 1:]


def is_kernel_wrong(s):
    return any(TRAMPOLINE.search(name) for name in callers(s, KERNEL))


def is_user_wrong(s):
    """The page of uprobes has no name."""
    return callers(s, "hooked")[:1] not in ([], ["caller"])


def judge(t, name, samples, kind, is_right, is_wrong):
    """But for what an emulated CPU cut, which its host took away in the walk."""
    samples = [s for s in samples if s.attribute(f"stacktap.{kind}_stack.end") != "time"]
    ends = {}
    for s in samples:
        end = s.attribute(f"stacktap.{kind}_stack.end", "complete")
        ends[end] = ends.get(end, 0) + s.count
    total = sum(s.count for s in samples)
    wrong = sum(s.count for s in samples if is_wrong(s))
    right = sum(s.count for s in samples if is_right(s))
    t.ok(total >= ENOUGH, f"{name}: at least {ENOUGH} samples under the hook ({total})")
    t.equal(wrong, 0, f"{name}: no trampoline is a caller")
    t.ok(right >= 0.97 * total, f"{name}: {right} of {total} stacks are whole or end at the hook ({ends})")
    return ends


def is_kernel_right(s):
    names = [frame.function for frame in s.stack if frame.frame_type == "kernel"]
    if s.attribute("stacktap.kernel_stack.end") == "hook":
        return names[-1] == KERNEL
    return s.attribute("stacktap.kernel_stack.end") is None and names[-1] != KERNEL \
        and kernel_time.is_whole(s)


def is_user_right(s):
    names = tuple(unwind.user_part(s))
    cut = s.attribute("stacktap.user_stack.end") == "hook"
    return names == CHAIN[:2] if cut else unwind.is_whole(s) and names[:4] == CHAIN


def host(t):
    import model
    for name in ("kretprobe-fp", "graph-fp"):
        ends = judge(t, name, [s for s in model.of_process(t.load(f"{name}.otlp"), "zero_reader")
                               if KERNEL in s.names[1:] and s.stack[0].frame_type == "kernel"],
                     "kernel", is_kernel_right, is_kernel_wrong)
        # x86's unwinder, the kernel's own, knows the caller; before the hook is there so does ours
        wanted = "hook" if t.arch == "arm64" else "complete"
        t.ok(ends.get(wanted, 0) >= 0.9 * sum(ends.values()), f"{name}: they end as {wanted} ({ends})")
    for name, program in (("uretprobe-fp", "hooks"), ("uretprobe-table", "hooks"),
                          ("deferred-table", "hooks_frameless")):
        samples = [s for s in model.of_process(t.load(f"{name}.otlp"), program)
                   if unwind.user_part(s)[:2] == list(CHAIN[:2])]
        ends = judge(t, name, samples, "user", is_user_right, is_user_wrong)
        t.ok(ends.get("hook"), f"{name}: stacks end at the hook ({ends})")
    deferred = sum(dict(p.attributes).get("stacktap.deferred_unwound", 0)
                   for p in {s.profile for s in samples})
    t.ok(deferred, f"{deferred} of all stacks were unwound by the daemon")
    samples = [s for s in model.of_process(t.load("none-table.otlp"), "hooks")
               if unwind.user_part(s)[:2] == list(CHAIN[:2])
               and s.attribute("stacktap.user_stack.end") != "no_mappings"]
    ends = judge(t, "none-table", samples, "user", is_user_right, is_user_wrong)
    t.ok("hook" not in ends, f"without a hook none ends at one ({ends})")

# SPDX-License-Identifier: Apache-2.0
"""Stacks are whole and exact where return addresses are signed, the programs' and the kernel's own."""

import re
import signal

import kit
from cases import kernel_time, unwind

ARCHES = ("arm64",)
# QEMU's own algorithm: the architecture's takes most of an emulated CPU
BOOT_OPTIONS = ("--cpu", "max,pauth-impdef=on")
PACIASP = bytes.fromhex("3f2303d5")
SIGNED = "/opt/stacktap/workload/pac"
PROGRAMS = {"deep": (100, 2), "zero_reader": (3,), "no_frame_pointers": ("exec", 12, 150)}
WAYS = ("fp", "table")
DEPTH = 101     # descend(0) is the last of them
ENOUGH = 30


def guest(t):
    features = re.findall(r"^Features\s*: (.*)", kit.read("/proc/cpuinfo"), re.MULTILINE)
    t.ok(features and all("paca" in line.split() for line in features), "the CPUs sign", features)
    for name in PROGRAMS:
        with open(f"{SIGNED}/{name}", "rb") as f:
            count = f.read().count(PACIASP)
        t.ok(count >= 3, f"{name} has return addresses signed ({count} paciasp)")
    for way in WAYS:
        record, _ = t.record(f"{way}.otlp", "-a", "-v", "-F", 299, "--call-graph", way)
        for name, arguments in PROGRAMS.items():
            if way == "table" or name != "no_frame_pointers":
                t.run(f"{SIGNED}/{name}", *arguments)
        out, err = t.stop(record, signal.SIGINT)
        t.ok(record.returncode == 0, f"{way}: record ends well", out + err)
        t.note(err.strip())


def judge(t, samples, is_right, what):
    """But for what an emulated CPU cut, which its host took away in the walk, and for samples from
    before there were tables of which no slice was had."""
    walked = [s for s in samples
              if s.attribute("stacktap.user_stack.end") not in ("time", "no_mappings")]
    total = sum(s.count for s in walked)
    right = sum(s.count for s in walked if unwind.is_whole(s) and is_right(s))
    t.ok(total >= ENOUGH, f"{what}: at least {ENOUGH} samples ({total})")
    t.ok(total - right <= max(1, 0.02 * total), f"{what}: {right} of {total} stacks ({unwind.ends(samples)})")


def is_deep(sample):
    return sample.names[1:DEPTH + 2] == ("descend",) * DEPTH + ("main",)


def is_chain(sample):
    names = tuple(unwind.user_part(sample))
    chain = unwind.CHAIN[unwind.CHAIN.index(names[0]):]
    return names[:len(chain)] == chain


def is_named(sample):
    """From the kernel's entry on, and nothing of it without a name."""
    return (kernel_time.is_whole(sample) and sample.attribute("stacktap.kernel_stack.end") is None
            and all(frame.function for frame in sample.stack if frame.frame_type == "kernel"))


def host(t):
    import model
    for way in WAYS:
        samples = t.load(f"{way}.otlp")
        judge(t, [s for s in model.of_process(samples, "deep") if s.names[0] == "bottom"], is_deep,
              f"{way}: {DEPTH} frames of descend() and main()")
        judge(t, [s for s in model.of_process(samples, "zero_reader")
                  if s.stack[0].frame_type == "kernel" and kernel_time.USER[0] in s.names], is_named,
              f"{way}: named kernel frames, then {', '.join(kernel_time.USER)}")
    short = [s for s in model.of_process(samples, "no_frame_pointers")
             if (unwind.user_part(s) or [""])[0] in unwind.CHAIN]
    judge(t, short, is_chain, f"without frame pointers: {' <- '.join(unwind.CHAIN)}")
    late = sum(dict(p.attributes).get("stacktap.deferred_unwound", 0) for p in {s.profile for s in short})
    t.ok(late >= ENOUGH, f"without frame pointers: at least {ENOUGH} were deferred ({late})")

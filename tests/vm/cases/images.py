# SPDX-License-Identifier: Apache-2.0
"""exec, fork, vfork, pid reuse, dlopen, mremap, code made at run time: samples go where they belong or are marked."""

import json
import os
import time

IMAGES = "/opt/stacktap/workload/images"
PLUGIN = "/opt/stacktap/workload/plugin.so"
JIT = "/opt/stacktap/workload/jit"
MS = 1500
RANDOM_ADDRESSES = True
# of some 750 where no tick is missed: an emulated CPU may lose most of them to its host
ENOUGH = 30
# leaf function -> the only phases whose processes may show it
OWNERS = {"parent_work": {"fork", "vfork"}, "child_work": {"fork-child"}, "before_exec": {"exec"},
          "after_exec": {"exec", "vfork-child"}, "churn_work": {"churn"},
          "plugin_work": {"dlopen"}, "plugin_spin": {"mremap"}}


def guest(t):
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 499, "-o",
                     t.path("images.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30,
            "sampling")
    pids = {}
    parent, child = t.run(IMAGES, "fork", MS).stdout.split()
    pids[parent], pids[child] = "fork", "fork-child"
    parent, child = t.run(IMAGES, "vfork", IMAGES, MS).stdout.split()
    pids[parent], pids[child] = "vfork", "vfork-child"
    for phase, arguments in (("exec", ("exec", MS)), ("dlopen", ("dlopen", PLUGIN, 2 * MS // 5)),
                             ("mremap", ("mremap", PLUGIN, MS))):
        process = t.start(IMAGES, *arguments)
        pids[str(process.pid)] = phase
        t.ok(t.wait(process) == 0, f"images {phase} ran")
    t.ok(t.wait(t.start(JIT, "/tmp", MS)) == 0, "jit ran")
    # The pid of a program that has gone is given to another one, on purpose.
    reused = reuse_pid(t)
    process = t.start(IMAGES, "churn", 20, 100)
    t.wait(process)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    with open(t.path("pids.json"), "w", encoding="ascii") as f:
        json.dump({"pids": pids, "reused": reused}, f)


def reuse_pid(t):
    first = t.start(IMAGES, "after_exec", 700)
    t.wait(first)
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as f:
        f.write(str(first.pid - 1))
    second = t.start("/opt/stacktap/workload/deep", 3, 1)
    t.wait(second)
    t.ok(second.pid == first.pid, f"the pid was reused ({first.pid}, {second.pid})")
    time.sleep(0.1)
    return first.pid


def is_marked(sample):
    """Does the sample itself say that its mappings cannot be trusted, or that it has no stack?"""
    return (sample.attribute("stacktap.doubtful") or sample.attribute("stacktap.stale")
            or sample.attribute("stacktap.user_stack.end") == "stale")


def host(t):
    with open(os.path.join(t.dir, "pids.json"), encoding="ascii") as f:
        truth = json.load(f)
    samples = t.load("images.otlp")
    seen, wrong, marked = {}, [], 0
    for sample in samples:
        phase = truth["pids"].get(str(sample.process.pid))
        leaf = sample.stack[0].function
        if sample.stack[0].frame_type != "native" or leaf not in OWNERS:
            continue
        if is_marked(sample):
            marked += sample.count
            continue
        if phase:
            seen.setdefault(phase, {}).setdefault(leaf, 0)
            seen[phase][leaf] += sample.count
            if phase not in OWNERS[leaf]:
                wrong.append((phase, leaf, sample.count))
    t.equal(wrong, [], f"no sample shows another phase's function ({marked} marked)")
    total = sum(sum(leaves.values()) for leaves in seen.values())
    # the ring is read five times a second: as much may lie before each mapping that replaces another
    t.ok(marked <= 0.1 * (total + marked), f"few samples are marked: {marked} of {total + marked}")
    for phase, leaf in (("fork", "parent_work"), ("fork-child", "child_work"),
                        ("vfork", "parent_work"), ("vfork-child", "after_exec"),
                        ("exec", "before_exec"), ("exec", "after_exec"),
                        ("dlopen", "plugin_work")):
        count = seen.get(phase, {}).get(leaf, 0)
        t.ok(count >= ENOUGH, f"{phase}: at least {ENOUGH} samples in {leaf} ({count})")
    # After mremap the side band says nothing: the address is unknown and marked, or named rightly.
    mremap = [s for s in samples if truth["pids"].get(str(s.process.pid)) == "mremap"
              and s.stack[0].frame_type == "native"]
    # what the linker puts into the library runs before that
    lies = sum(s.count for s in mremap if s.stack[0].function not in
               ("", "_init", "frame_dummy", "register_tm_clones", "plugin_spin", "do_mremap")
               and not is_marked(s) and "plugin_spin" not in s.names
               and s.stack[0].mapping.endswith("plugin.so"))
    t.equal(lies, 0, f"mremap: no wrong name among {sum(s.count for s in mremap)} samples")
    churn = [s for s in samples if s.stack[0].function == "churn_work"]
    count = sum(s.count for s in churn)
    t.ok(count >= 2 * ENOUGH and len({s.process.pid for s in churn}) >= 10,
         f"churn: {count} samples in {len({s.process.pid for s in churn})} of 20 children")
    reused = [s for s in samples if s.process.pid == truth["reused"]
              and s.stack[0].frame_type == "native"]
    by_program = {}
    for sample in reused:
        by_program.setdefault(sample.process.executable, set()).add(sample.stack[0].function)
    t.ok("after_exec" in by_program.get("images", ()) and "bottom" in by_program.get("deep", ()),
         f"both owners of the reused pid are told apart ({sorted(by_program)})")
    t.ok("bottom" not in by_program.get("images", ()) and
         "after_exec" not in by_program.get("deep", ()), "and neither has the other's function")
    check_jit(t, [s for s in samples if s.process.executable == "jit"])


def check_jit(t, samples):
    """Of two functions in memory without a file; the process has exited by the end of the window."""
    code = [s for s in samples if s.stack[0].frame_type == "native" and s.stack[0].mapping.startswith("[")
            and s.stack[0].mapping not in ("[kernel]", "[vdso]")]
    count = {name: sum(s.count for s in code if s.stack[0].function == name)
             for name in ("mapped_work", "dumped_work", "stale_work", "")}
    t.ok(count["mapped_work"] >= ENOUGH, f"a perf map names code made at run time: {count}")
    t.ok(count["dumped_work"] >= ENOUGH, f"a jitdump names code made at run time: {count}")
    t.ok(count["stale_work"] == 0, "the later line of two for one address counts")
    # by frame pointers alone: in the first instructions of a function its caller is not to be seen
    walked = [s for s in code if s.stack[0].function in ("mapped_work", "dumped_work") and len(s.stack) > 1
              and not is_marked(s)]
    without = sum(s.count for s in walked if "run" not in s.names)
    t.ok(without <= 0.02 * sum(s.count for s in walked), f"its callers have names, too, but for {without}")

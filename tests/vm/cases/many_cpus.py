# SPDX-License-Identifier: Apache-2.0
"""16 CPUs (FULL=1: 64) in two memory nodes: each is sampled, each account is exact, each ring is near its CPU."""

import collections
import json
import os
import re

# an emulated arm64 spends all its time on the timers of 64 PMUs
ARCHES = ("x86_64",)
ALONE = True
# two CPUs of a host take minutes to boot 64
SMP = 64 if os.environ.get("FULL") else 16
MEM = 2048
NODES = 2
# without it an x86 kernel measures the speed of each CPU by polling, minutes in all
APPEND = ("lpj=5000000",)
BOOT_OPTIONS = tuple(f"--qemu=-object memory-backend-ram,id=node{node},size={MEM // NODES}M "
                     f"-numa node,nodeid={node},memdev=node{node},"
                     f"cpus={node * SMP // NODES}-{(node + 1) * SMP // NODES - 1}"
                     for node in range(NODES)) + (f"--qemu=-smp {SMP},sockets={NODES}",)
TIMEOUT = 900
BOOT_TIMEOUT = 1800 if os.environ.get("FULL") else 600
RATE = 19


def sampled(t, session):
    return [c["cpu"] for c in t.counts(session) if c["recorded"]]


def ring_nodes(pid):
    """CPU -> {node: pages} of the rings that @pid has mapped; the kernel's own account."""
    cpus, found = {}, collections.defaultdict(collections.Counter)
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        for line in f:
            if "/dev/stacktap" in line:
                fields = line.split()
                cpus[fields[0].split("-")[0].lstrip("0")] = int(fields[2], 16) >> 40
    with open(f"/proc/{pid}/numa_maps", encoding="ascii") as f:
        for line in f:
            if "/dev/stacktap" in line:
                for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                    found[cpus[line.split()[0].lstrip("0")]][int(node)] += int(pages)
    return found


def before(t):
    with open(os.path.join(t.dir, "wanted"), "w", encoding="ascii") as f:
        f.write(str(SMP))


def guest(t):
    # the host's environment is not here
    with open(t.path("wanted"), encoding="ascii") as f:
        smp = int(f.read())
    everywhere = set(range(smp))
    with open("/sys/devices/system/cpu/kernel_max", encoding="ascii") as f:
        room = int(f.read()) + 1
    if room < smp:
        t.skip(f"{smp} CPUs", f"this kernel has room for {room}")
        return
    t.equal(os.sched_getaffinity(0), everywhere, f"{smp} CPUs are online")
    child, session = t.record("all.otlp", "-a", "-F", RATE)
    [status] = t.json("status")["sessions"]
    t.equal([cpu["cpu"] for cpu in status["cpus"]], sorted(everywhere), "each has a ring")
    nodes = ring_nodes(child.pid)
    t.equal(set(nodes), everywhere, "all rings are mapped")
    far = {cpu: dict(pages) for cpu, pages in nodes.items() if set(pages) != {cpu * NODES // smp}}
    t.ok(nodes and not far, "all pages of each ring are in its CPU's node", far)

    t.until(lambda: len(sampled(t, session)) == smp, 60, "samples of all CPUs")
    t.ok(True, "each CPU is sampled, idle as it may be")
    counts = t.accounts(child, session)
    with open(t.path("recorded.json"), "w", encoding="ascii") as f:
        json.dump({c["cpu"]: c["recorded"] for c in counts}, f)

    few = [1, smp // NODES + 4, smp - 1]
    child, session = t.record("few.otlp", "-a", "-F", RATE, "-C", ",".join(map(str, few)))
    t.until(lambda: set(few) <= set(sampled(t, session)), 60, "samples of these")
    counts = t.accounts(child, session)
    t.equal([c["cpu"] for c in counts if c["calls"]], few, "a session of three CPUs samples these")


def host(t):
    if not os.path.exists(os.path.join(t.dir, "recorded.json")):
        return
    with open(os.path.join(t.dir, "recorded.json"), encoding="ascii") as f:
        recorded = {int(cpu): count for cpu, count in json.load(f).items()}
    have = collections.Counter()
    for sample in t.load("all.otlp"):
        have[sample.cpu] += sample.count
    wrong = {cpu: (have[cpu], count) for cpu, count in recorded.items() if have[cpu] != count}
    t.ok(len(recorded) == SMP and not wrong,
         f"the profile has of each CPU what was recorded there: {sum(have.values())} {wrong or ''}")

# SPDX-License-Identifier: Apache-2.0
"""What a sample costs in the kernel, in instructions that a guest under QEMU's icount executes.

The same work runs bare and under each sampler in one guest, with the same period; what it takes
longer is the sampler's.
"""

import os
import statistics
import subprocess

from row import row

ROUNDS = 3		# medians count: whether a tick finds work for RCU differs from run to run
UNITS = 10000		# of work: 6,000 samples
PERIOD = 100271		# ns and cycles alike; 9,973 Hz, so that the tick's part in a sample is small
WITHOUT_FRAME_POINTERS = ("tables", "perf-dwarf")  # the same work, compiled so
EVENTS = {"x86_64": ("cpu-clock",), "arm64": ("cycles", "cpu-clock")}
MANY_CPUS = 64		# possible, one of them online
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Failed(Exception):
    pass


def boot(output, arch, *options, log="guest.log"):
    """[(name, event, instructions, {what bench_session counted})]"""
    command = [os.path.join(TOP, "tests/vm/lab/boot"), "--arch", arch, "--smp", "1", "--icount",
               "--quiet", "--timeout", "1200", "--ro", f"{output}/bench-{arch}:/opt/bench",
               "--ro", f"{TOP}/tests/bench:/bench", *options, "--",
               "/bench/guest", str(ROUNDS), str(UNITS), str(PERIOD), *EVENTS[arch]]
    done = subprocess.run(command, env=dict(os.environ, LAB=os.path.join(output, "vm")),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    with open(os.path.join(output, f"bench-{arch}", log), "w", encoding="utf-8") as f:
        f.write(done.stdout + done.stderr)
    if done.returncode:
        raise Failed(f"the guest failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    runs = []
    for line in done.stdout.splitlines():
        name, event, instructions, *counted = line.split()
        counted = {key: float(value) for key, value in (pair.split("=") for pair in counted)}
        runs.append((name, event, int(instructions), counted))
    return runs


def costs(runs):
    """({(event, sampler): (instructions a sample, what was counted)}, spread of bare runs)"""
    took = {}
    for name, event, instructions, counted in runs:
        if name == "perf-record":
            # its kernel half ran just before it
            counted = took[event, "perf"][-1][1]
        samples = counted.get("samples", instructions / PERIOD)
        # the PMU does not count while its interrupt is handled
        if not 0.93 <= samples * PERIOD / instructions <= 1.01:
            raise Failed(f"{name} {event}: {samples:.0f} samples in {instructions} instructions")
        took.setdefault((event, name), []).append((instructions, counted))
    bases, spread = {}, 0
    for name in ("bare", "bare-nofp"):
        bare = [instructions for instructions, _ in took.pop(("none", name))]
        bases[name] = statistics.median(bare)
        spread = max(spread, (max(bare) - min(bare)) * PERIOD / bases[name])
    if spread > 100:
        raise Failed(f"bare runs differ by {spread:.0f} instructions a sample")
    cost = {}
    for key, found in took.items():
        base = bases["bare-nofp" if key[1] in WITHOUT_FRAME_POINTERS else "bare"]
        extra = statistics.median((instructions - base) / counted["samples"]
                                  for instructions, counted in found)
        cost[key] = (extra, found[0][1])
    return cost, spread


def measure_many_cpus(output, arch, rows):
    """The same in a guest with room for many CPUs, beside @rows, which are of one with room for one."""
    wide, _ = costs(boot(output, arch, f"--qemu=-smp 1,maxcpus={MANY_CPUS}", log="guest-many-cpus.log"))
    one = {found["name"]: found["value"] for found in rows}
    for event in EVENTS[arch]:
        for how in ("one-phase", "two-phase"):
            name = f"kernel {arch} {event} {how} net of no-op"
            yield row(f"{name}, {MANY_CPUS} possible CPUs", wide[event, how][0] - wide[event, "noop"][0],
                      "instructions/sample", "1 possible CPU", one[name])


def measure(output, arch):
    cost, spread = costs(boot(output, arch))
    unit = "instructions/sample"
    rows = []
    for event in EVENTS[arch]:
        def name(what):
            return f"kernel {arch} {event} {what}"  # pylint: disable=cell-var-from-loop

        noop = cost[event, "noop"][0]
        perf, counted = cost[event, "perf"]
        rows.append(row(name("no-op handler"), noop, unit, "perf record -a", cost[event, "perf-no-stacks"][0],
                        note=f"the bare interrupt; bare runs differ by {spread:.0f}"))
        rows.append(row(name("perf record -a -g, whole"), cost[event, "perf-record"][0], unit,
                        "its kernel half alone", perf,
                        note=f"{counted['frames']:.1f} user frames, {counted['bytes']:.0f} bytes a "
                             "sample; the whole writes a file on tmpfs"))
        dwarf, counted = cost[event, "perf-dwarf"]
        rows.append(row(name("perf record -a --call-graph dwarf, kernel half"), dwarf, unit,
                        "perf record -a -g, kernel half", perf,
                        note=f"{counted['bytes']:.0f} bytes a sample, nothing unwound yet"))
        ours, counted = cost[event, "tables"]
        note = (f"{counted['frames']:.1f} user frames without frame pointers, "
                f"{counted['bytes']:.0f} bytes a sample")
        rows.append(row(name("by tables, gross"), ours, unit, "perf record -a -g, kernel half", perf,
                        note=note))
        rows.append(row(name("by tables, net of no-op"), ours - noop, unit,
                        "perf record -a -g, kernel half", perf - noop))
        rows.append(row(name("by tables, net of no-op, a frame"),
                        (ours - noop) / counted["frames"], "instructions/frame"))
        few, many = (cost[event, f"filter-{count}"][0] - noop for count in (10, 10000))
        rows.append(row(name("filter of 10,000 pids, net of no-op"), many, "instructions/call",
                        "of 10 pids", few, note="the call of a process that is not among them"))
        for how in ("in-place", "one-phase", "two-phase"):
            if (event, how) not in cost:
                continue
            ours, counted = cost[event, how]
            note = f"{counted['frames']:.1f} user frames, {counted['bytes']:.0f} bytes a sample"
            rows.append(row(name(f"{how} gross"), ours, unit, "perf record -a -g, kernel half", perf,
                            note=note))
            rows.append(row(name(f"{how} net of no-op"), ours - noop, unit,
                            "perf record -a -g, kernel half", perf - noop))
        rows.append(row(name("two-phase, jitter's part"),
                        cost[event, "two-phase"][0] - cost[event, "two-phase-fixed"][0], unit,
                        note="beside the same with --no-jitter"))
    return rows

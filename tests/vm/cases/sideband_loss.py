# SPDX-License-Identifier: Apache-2.0
"""A side band far too small, and a storm of mappings: losses are told, doubtful samples are marked,
nothing gets another program's name, and once the storm is over samples are sound again."""

import json
import os
import re
import signal
import subprocess
import sys
import time

from cases import images

STORM = """
import mmap, os, sys, time
os.sched_setaffinity(0, {int(sys.argv[2])})
fd = os.open(sys.argv[1], os.O_RDONLY)
while True:
    for _ in range(mmap.PAGESIZE // 100):
        mmap.mmap(fd, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    time.sleep(0.02)
"""
MS = 600


def long_path(t):
    """Each of its mappings takes a good part of a side band of one page."""
    os.makedirs("/tmp/sideband", exist_ok=True)
    path = "/tmp/sideband/" + "/".join(letter * 200 for letter in "abcdef")
    os.makedirs(path, exist_ok=True)
    t.run("cp", images.PLUGIN, f"{path}/plugin.so")
    return f"{path}/plugin.so"


def start_storm(t):
    path = long_path(t)
    return [t.start(sys.executable, "-c", STORM, path, cpu, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL) for cpu in range(os.cpu_count())]


def pause(reader):
    """However fast it reads: half a second of the storm is many times what its side band takes."""
    reader.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    reader.send_signal(signal.SIGCONT)


def guest(t):
    # it never changes; only what others cause to be lost can make its samples doubtful
    bystander = t.start(images.IMAGES, "after_exec", 3600000)
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 499,
                     "--sideband-bytes", 4096, "-o", t.path("loss.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 60,
            "sampling")
    time.sleep(3)
    storming = time.time_ns()
    storm = start_storm(t)
    pids = {}
    for _ in range(3):
        parent, child = t.run(images.IMAGES, "fork", MS).stdout.split()
        pids[parent], pids[child] = "fork", "fork-child"
        parent, child = t.run(images.IMAGES, "vfork", images.IMAGES, MS).stdout.split()
        pids[parent], pids[child] = "vfork", "vfork-child"
        for phase, arguments in (("exec", ("exec", MS)),
                                 ("dlopen", ("dlopen", images.PLUGIN, MS // 5))):
            process = t.start(images.IMAGES, *arguments)
            pids[str(process.pid)] = phase
            pause(record)
            t.ok(t.wait(process) == 0, f"images {phase} runs in the storm")
    t.run(images.IMAGES, "churn", 10, 60)
    # started in the storm, runs on behind it
    survivor = t.start(images.IMAGES, "after_exec", 12000)
    time.sleep(2)
    for process in storm:
        t.stop(process)
    calm = time.time_ns()
    t.stop(bystander)
    t.ok(t.wait(survivor, 100) == 0, "what was started in the storm runs on")
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    told = re.search(r"dropped (\d+) side-band records", err)
    is_told = t.ok(told and int(told[1]) > 0,
                   f"record's closing lines tell of it ({told and told[0]})", err)
    with open(t.path("truth.json"), "w", encoding="ascii") as f:
        json.dump({"pids": pids, "survivor": survivor.pid, "bystander": bystander.pid,
                   "storming": storming, "calm": calm}, f)
    if is_told:
        daemon_tells(t)


def daemon_tells(t):
    with open("/tmp/sideband.conf", "w", encoding="ascii") as f:
        f.write("[capture]\nsideband_bytes = 4096\n[store]\ndirectory = /tmp/sideband-store\n"
                "[daemon]\nstatus_seconds = 1\n")
    daemon = t.start("/opt/stacktap/bin/stacktapd", "--no-load-module", "--config",
                     "/tmp/sideband.conf")
    t.until(lambda: (t.json("status")["daemon"] or {}).get("session"), 60, "the daemon's session")
    storm = start_storm(t)

    def count():
        pause(daemon)
        return t.json("status")["daemon"]["capture"]["sideband_lost"]

    lost = t.until(count, 60, "the daemon to count what the side band lost")
    t.ok(lost > 0, f"status --json tells of {lost} lost side-band records")
    t.ok(re.search(r"[1-9]\d* side-band records lost", t.stacktap("status").stdout),
         "status tells of them")
    for process in storm:
        t.stop(process)
    t.stop(daemon)
    t.ok(daemon.returncode == 0, "the daemon ends well")


def host(t):
    with open(os.path.join(t.dir, "truth.json"), encoding="ascii") as f:
        truth = json.load(f)
    samples = t.load("loss.otlp")
    wrong, named, marked = [], 0, 0
    for sample in samples:
        leaf = sample.stack[0].function
        if sample.stack[0].frame_type != "native":
            continue
        phase = truth["pids"].get(str(sample.process.pid))
        if images.is_marked(sample):
            marked += sample.count if phase else 0
            continue
        if leaf not in images.OWNERS:
            continue
        # a forked child has its parent's program until it says otherwise; pids tell them apart
        if phase and phase not in images.OWNERS[leaf]:
            wrong.append((phase, leaf, sample.count))
        if not phase and sample.process.executable != "images":
            wrong.append((sample.process.executable, leaf, sample.count))
        named += sample.count
    t.equal(wrong, [], f"no unmarked sample shows another program's function ({named} named)")
    t.ok(marked >= 20, f"samples that the losses may concern are marked ({marked})")
    bystander = [(sample, sum(truth["storming"] < time_ns < truth["calm"]
                              for time_ns in sample.timestamps))
                 for sample in samples if sample.process.pid == truth["bystander"]]
    total = sum(count for _, count in bystander)
    marked = sum(count for sample, count in bystander if images.is_marked(sample))
    t.ok(total >= 20 and marked >= 0.1 * total,
         f"so are those of a program that the losses were not about ({marked} of {total})")
    # /proc is read again every two seconds at most; then samples can be trusted again
    late = [(sample, sum(1 for time_ns in sample.timestamps if time_ns > truth["calm"] + 6 * 10**9))
            for sample in samples if sample.process.pid == truth["survivor"]
            and sample.stack[0].frame_type == "native"]
    # the clock that it asks may be the leaf, in the vDSO
    sound = sum(count for sample, count in late
                if not images.is_marked(sample) and sample.stack[0].function)
    total = sum(count for _, count in late)
    own = sum(count for sample, count in late if sample.stack[0].function == "after_exec")
    t.ok(own >= 50 and sound >= 0.95 * total,
         f"after the storm samples are named and unmarked again ({sound} of {total})")

# SPDX-License-Identifier: Apache-2.0
"""CPUs go and come, one for the first time, while the daemon's pipeline samples and other sessions come
and go: nothing hangs, samples go on on all CPUs, none is unaccounted for, and what starts afterwards is
named wherever it runs."""

import json
import os
import re
import subprocess
import time

from cases import images

SMP = 3
ROUNDS = 12
COMERS = 5           # sessions that come and go meanwhile, at least
MOST_ROUNDS = 72     # until an overflow comes on a CPU's way down, which every other dozen has


def cpu_online(cpu, value):
    with open(f"/sys/devices/system/cpu/cpu{cpu}/online", "w", encoding="ascii") as f:
        f.write(str(value))


def lost_offline(t, session):
    return sum(c["lost"]["offline"] for c in t.counts(session))


def comers_end(t, comers, kept):
    """End the short sessions; those of @kept are all that is left."""
    out, err = t.end_of(comers)
    for line in out.splitlines():
        match = re.fullmatch(r"((?:not )?ok) \d+ - (.*)", line)
        if match:
            t.ok(match[1] == "ok", f"meanwhile: {match[2]}", out + err)
    came = re.search(r"of (\d+) sessions", out)
    t.ok(comers.returncode == 0 and came and int(came[1]) >= COMERS, f"at least {COMERS} of them", out + err)
    t.equal(sorted(s["id"] for s in t.json("status")["sessions"]), sorted(kept), "and none is left")


def announced(t, told, downs, counts):
    for kind in ("cpu-offline", "cpu-online"):
        t.equal(sum(event["count"] for event in told if event["event"] == kind), downs,
                f"{kind} is announced each time")
    t.equal({reason: sum(event["lost"][reason] for event in told if event["event"] == "loss")
             for reason in counts[0]["lost"]},
            {reason: sum(c["lost"][reason] for c in counts) for reason in counts[0]["lost"]},
            "and so is each loss with its reason")


def guest(t):
    burners = [t.start("/opt/stacktap/workload/deep", 5, 60) for _ in range(3)]
    cpu_online(SMP - 1, 0)
    events = t.listen("/tmp/events", "--json")
    record = t.record("hotplug.otlp", "-a", "-F", 199, "-e", "cycles", "-e", "page-faults", "-c", 100)
    cpu_online(SMP - 1, 1)
    # often enough that some overflows come on a CPU's way down; what it records is of no interest
    frequent = t.record("frequent.otlp", "-a", "-F", 2999, "--kernel-only", "--exclude-idle")
    comers = t.start("/opt/stacktap/kmodtest", "comers", stdin=subprocess.PIPE)
    downs = dict.fromkeys(range(SMP), 0)
    for number in range(MOST_ROUNDS):
        if number >= ROUNDS and lost_offline(t, frequent[1]):
            break
        cpu = 1 + number % 2
        cpu_online(cpu, 0)
        downs[cpu] += 1
        time.sleep(0.1)
        cpu_online(cpu, 1)
        time.sleep(0.3)
    comers_end(t, comers, [record[1], frequent[1]])
    status = next(s for s in t.json("status")["sessions"] if s["id"] == frequent[1])
    t.equal({cpu["cpu"]: cpu["offlines"] for cpu in status["cpus"]}, downs,
            "status tells of each CPU how often it left")
    counts = t.accounts(*frequent)
    told = map(json.loads, t.heard(events, "/tmp/events"))
    announced(t, [e for e in told if e["session"] == frequent[1]], sum(downs.values()), counts)
    t.note(f"{sum(c['lost']['offline'] for c in counts)} of {sum(c['calls'] for c in counts)} "
           "overflows came on a CPU's way down")
    time.sleep(4)
    started = [t.start(images.IMAGES, "after_exec", 300,
                       preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu}))
               for _ in range(4) for cpu in range(SMP)]
    for program in started:
        t.wait(program)
    # an emulated PMU may lose an overflow right then, which the module finds out a little later
    time.sleep(6)
    stalled = [cpu["cpu"] for s in t.json("status")["sessions"] if s["id"] == record[1]
               for cpu in s["cpus"] if any(counts["stalled"] for counts in cpu["counts"])]
    with open(t.path("started.json"), "w", encoding="ascii") as f:
        json.dump({"pids": [program.pid for program in started], "stalled": stalled}, f)
    t.accounts(*record)
    for burner in burners:
        t.stop(burner)
    with open("/proc/sys/kernel/tainted", encoding="ascii") as f:
        t.ok(int(f.read()) & 0x80 == 0, "the kernel has not died")
    t.ok(os.path.getsize(t.path("hotplug.otlp")) > 1000, "there is a profile")


def host(t):
    samples = t.load("hotplug.otlp")
    latest = max(time_ns for s in samples for time_ns in s.timestamps)
    for cpu in range(SMP):
        mine = [time_ns for s in samples if s.cpu == cpu for time_ns in s.timestamps]
        # less than since CPUs came and went, more than until a counter that stalled is re-armed
        t.ok(mine and latest - max(mine) < 8e9, f"CPU {cpu} is sampled to the end ({len(mine)})")
    with open(os.path.join(t.dir, "started.json"), encoding="ascii") as f:
        started = json.load(f)
    for cpu in range(SMP):
        # not the loader, nor what a fork has of its parent
        mine = [s for s in samples if s.process.pid in started["pids"][cpu::SMP]
                and s.stack[0].frame_type == "native"
                and (not s.stack[0].mapping or s.stack[0].mapping == images.IMAGES)]
        total = sum(s.count for s in mine)
        sound = sum(s.count for s in mine if "after_exec" in s.names and not images.is_marked(s))
        t.ok((total or cpu in started["stalled"]) and sound >= 0.9 * total,
             f"programs that start on CPU {cpu} afterwards are named: {sound} of {total}")

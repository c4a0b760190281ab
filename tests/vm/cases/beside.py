# SPDX-License-Identifier: Apache-2.0
"""perf stat, perf record, perf top and a second session beside ours: all stay sane; what they take
of the PMU from ours shows as time that its counter did not run, and is announced, in status and in the
stream while it lasts."""

import collections
import json
import os
import re
import signal
import statistics
import subprocess
import time

from cases import images

FAULTS = 4096
TOUCH = f"""import contextlib, mmap
size = mmap.PAGESIZE
m = mmap.mmap(-1, {FAULTS} * size)
with contextlib.suppress(OSError): # a kernel without huge pages
    m.madvise(mmap.MADV_NOHUGEPAGE)
for i in range({FAULTS}): m[i * size] = 1"""
# in nanoseconds or, at the emulated PMU's 1 GHz, cycles
PERIOD = 5000011
RATE = 199
ENOUGH = 100
# more than any PMU that QEMU has can count at a time
CROWD = 16


def stat(t, event):
    """perf stat of a program whose page faults are known: (page faults, events per ns of its time)."""
    result = t.run("perf", "stat", "-x", ";", "-o", "/tmp/stat", "-e",
                   f"page-faults,task-clock,{event}", "python3", "-c", TOUCH)
    with open("/tmp/stat", encoding="ascii") as f:
        fields = {line.split(";")[2].split(":")[0]: line.split(";")[0]
                  for line in f if line.count(";") > 2}
    t.ok(result.returncode == 0, "perf stat ends well", result.stderr)
    return int(fields["page-faults"]), float(fields[event]) / float(fields["task-clock"]) / 1e6


def stats(t, event):
    """Some of stat(), for an emulated counter is off at times: (page faults, rates), each in order."""
    return [sorted(numbers) for numbers in zip(*(stat(t, event) for _ in range(3)))]


def start_perf(t, data, *options):
    perf = t.start("perf", "record", "-q", "-a", "-B", "-N", *options, "-o", data, cwd="/tmp")
    t.until(lambda: os.path.exists(data) and os.path.getsize(data), 60, "perf")
    return perf


def disturbed(t, event):
    """The rates that perf stat finds while perf record samples as we are going to: where overflows are
    NMIs, QEMU's counters run up to four times as fast beside another's."""
    perf = start_perf(t, "/tmp/reference.data", "-g", "-e", event, "-F", RATE)
    rates = stats(t, event)[1]
    t.stop(perf, signal.SIGINT)
    return rates


def script(t, data):
    """(perf record's samples, those of the program that burns in one function, by symbol, lost), in one go: it takes long."""
    lines = t.run("perf", "script", "-i", data, "--show-lost-events", "-F", "comm,ip,sym", timeout=300).stdout.splitlines()
    samples = [line.split() for line in lines if line and "PERF_RECORD_" not in line]
    names = collections.Counter(line[2] for line in samples if len(line) > 2 and line[0] == "images")
    # what no later sample announces is a record of its own, which script does not show
    stats = t.run("perf", "report", "--stats", "-i", data, timeout=300).stdout
    lost = sum(int(count) for count in re.findall(r"LOST_SAMPLES events: +(\d+)", stats))
    return len(samples), names, lost + sum("PERF_RECORD_LOST" in line for line in lines)


def converted(t, data, samples, names):
    """What perf has recorded, as OTLP: all of its samples, and the program's by function as perf has them."""
    said = json.loads(t.stacktap("convert", "--json", "-o", "/tmp/perf.otlp", data, timeout=300).stdout)
    t.ok(said["samples"] == samples > 0 and said["from"] == "linux_perf", f"convert takes all {samples} samples of perf.data",
         said)
    event, = json.loads(t.stacktap("report", "--json", "--limit", 0, "--process", "images", "/tmp/perf.otlp").stdout)["events"]
    found = collections.Counter()
    for process in event["processes"]:
        for function in process["functions"]:
            found[function["name"]] += function["self_samples"]
    known = {name: count for name, count in names.items() if not name.startswith("[")}
    t.equal({name: found[name] for name in known}, known, "and the program's functions have perf's counts")
    t.equal(sum(found.values()), sum(names.values()), "with what has no name")


def top_shows():
    with open("/tmp/top", encoding="utf-8", errors="replace") as f:
        return f.read()


def time_counted(t, session):
    """(enabled, running) of the first source, all CPUs."""
    counts = [c for c in t.counts(session) if c["source"] == 0]
    return [sum(c[name] for c in counts) for name in ("enabled_ns", "running_ns")]


def multiplexed(t, session):
    """The CPUs on which our counter is, and how much was recorded there."""
    return {c["cpu"]: c["recorded"] for c in t.counts(session) if c["source"] == 0 and c["is_multiplexed"]}


def sampled(t, session, before):
    now = multiplexed(t, session)
    return all(now.get(cpu, 0) >= recorded + ENOUGH // 5 for cpu, recorded in before.items())


def in_words(t, session):
    """Whether status names as many counters as there are, while no CPU's turn begins or ends."""
    before = set(multiplexed(t, session))
    said = t.stacktap("status").stdout
    return (before and before == set(multiplexed(t, session)) and
            re.search(rf"MULTIPLEXED: {len(before)} of these counters share the PMU", said))


def crowd(t, session, event):
    """More counters than the PMU has: they take turns, ours too, and status tells how long it ran."""
    enabled, running = time_counted(t, session)
    t.ok(running >= 0.98 * enabled, "a counter that need not share runs all the time: "
         f"{running} of {enabled} ns")
    t.equal(multiplexed(t, session), {}, "and is not called multiplexed")
    began = time.time_ns()
    perf = t.start("perf", "stat", "-a", "-x", ";", "-o", "/tmp/crowd",
                   *(["-e", f"{event}:u"] * CROWD))
    t.ok(t.comes_to(lambda: multiplexed(t, session)), "one that has to share is called multiplexed")
    before = multiplexed(t, session)
    t.ok(before and t.comes_to(lambda: sampled(t, session, before)), "samples, meanwhile, by its turns")
    t.ok(t.comes_to(lambda: in_words(t, session)), "status says so in words", t.stacktap("status").stdout)
    after = time_counted(t, session)
    t.stop(perf, signal.SIGINT)
    t.ok(t.comes_to(lambda: not multiplexed(t, session)), "until it need not share any more")
    pinned(t, session, event)
    with open(t.path("multiplexed.json"), "w", encoding="ascii") as f:
        json.dump({"began": began, "ended": time.time_ns(), "cpus": sorted(before)}, f)
    share = (after[1] - running) / (after[0] - enabled)
    t.ok(0 < share < 0.95, f"status tells that our counter ran {share:.0%} of the time")
    with open("/tmp/crowd", encoding="ascii") as f:
        theirs = [float(line.split(";")[4]) for line in f if line.count(";") > 4]
    t.ok(len(theirs) == CROWD and all(0 < percent < 100 for percent in theirs),
         f"and perf's had their turns ({min(theirs, default=0):g} to {max(theirs, default=0):g} %)")
    recorded = sum(c["recorded"] for c in t.counts(session))
    t.until(lambda: sum(c["recorded"] for c in t.counts(session)) > recorded + ENOUGH, 60, "samples")
    t.ok(True, "ours samples on afterwards")


def pinned(t, session, event):
    """Others that never give up their place leave ours none; it comes back when they are gone."""
    perf = t.start("perf", "stat", "-a", "-o", "/dev/null", *(["-e", f"{event}:uD"] * CROWD))
    t.ok(t.comes_to(lambda: any(c["share_percent"] == 0 and c["is_multiplexed"]
                                for c in t.counts(session) if c["source"] == 0)),
         "one whose place pinned counters have is told to run 0 % of the time", t.counts(session))
    t.stop(perf, signal.SIGINT)
    t.ok(t.comes_to(lambda: not multiplexed(t, session)), "until they are gone")


def announced(t, events, counts):
    total = sum(c["multiplexed"] for c in counts)
    for kind in ("multiplex", "multiplex-end"):
        told = [e for e in events if e["event"] == kind]
        t.ok(sum(e["count"] for e in told) == total and all(e["source"] == 0 and e["cpu"] >= 0 for e in told),
             f"{kind} is announced each time ({total})", told)


def guest(t):
    event = "cycles" if t.arch == "arm64" else "cpu-clock"
    alone = stats(t, event)
    burner = t.start(images.IMAGES, "after_exec", 10000000)
    events = t.listen("/tmp/events", "--json")
    rates = [statistics.median(alone[1])] + (disturbed(t, event) if "nmi" in os.uname().release else [])
    child, session = t.record("ours.otlp", "-a", "-F", RATE, "-e", event, "-e", "page-faults", "-c", 100)

    # an emulated counter is off for seconds where its host is busy; one that ours disturbs is off each time
    for _ in range(4):
        beside = stats(t, event)
        rate = statistics.median(beside[1])
        if near := rates[0] and 0.9 * rates[0] <= rate <= 1.1 * max(rates):
            break
    faults, usual = statistics.median(beside[0]), statistics.median(alone[0])
    t.near(faults, usual, 0.01 * usual, "perf stat counts the page faults that it counts alone")
    t.ok(near, f"and as many {event} per ns of the program as alone, or beside perf record: "
         f"{rate:.3g}, {rates[0]:.3g} to {max(rates):.3g}")

    perf = start_perf(t, "/tmp/perf.data", "-e", event, "-c", PERIOD)
    second, other = t.record("second.otlp", "-p", burner.pid, "-F", 97, "-e", event)
    # by the clock: an emulated PMU's counter, opened for a moment, may stay silent
    with open("/tmp/top", "w", encoding="utf-8") as f:
        top = t.start("perf", "top", "--stdio", "-d", 1, "-e", "cpu-clock", "-c", PERIOD,
                      stdin=subprocess.PIPE, stdout=f)
    t.until(lambda: sum(c["recorded"] for c in t.counts(other)) >= 3 * ENOUGH, 100, "a second session")
    t.until(lambda: "after_exec" in top_shows(), 120, "perf top to show what burns")
    t.ok(top.poll() is None, "perf top shows what burns")
    t.stop(top, signal.SIGINT)
    t.accounts(second, other)
    out, err = t.stop(perf, signal.SIGINT)
    # it ends itself as it was ended
    t.ok(perf.returncode in (0, -signal.SIGINT), "perf record ends well", out + err)
    samples, names, lost = script(t, "/tmp/perf.data")
    t.ok(sum(names.values()) >= ENOUGH, f"perf record samples the program ({sum(names.values())})")
    with open(t.path("perf.json"), "w", encoding="ascii") as f:
        json.dump({"pid": burner.pid, "leaves": names}, f)
    t.equal(lost, 0, "and lost none")
    converted(t, "/tmp/perf.data", samples, names)
    if event == "cycles":
        crowd(t, session, event)
    counts = t.accounts(child, session)
    told = map(json.loads, t.heard(events, "/tmp/events"))
    announced(t, [e for e in told if e["session"] == session], counts)
    t.stop(burner)


def host(t):
    with open(os.path.join(t.dir, "perf.json"), encoding="ascii") as f:
        perf = json.load(f)
    ours = collections.Counter()
    for sample in t.load("ours.otlp"):
        # one whose task had left when its stack was to be walked has none
        if sample.process.pid == perf["pid"] and sample.names:
            ours[sample.names[0]] += sample.count
    theirs = collections.Counter(perf["leaves"])
    shares = [names["after_exec"] / sum(names.values()) for names in (ours, theirs)]
    # perf began later, when others worked beside the program
    t.ok(abs(shares[0] - shares[1]) <= 0.25 and min(shares) >= 0.25,
         f"both find the same share of it in its function: {shares[0]:.1%} and {shares[1]:.1%}; "
         f"{ours.most_common(5)}, {theirs.most_common(5)}")
    strangers = {s.process.pid for s in t.load("second.otlp")} - {perf["pid"]}
    t.ok(not strangers, f"and the second session has its program alone ({strangers or 'no other'})")
    if os.path.exists(os.path.join(t.dir, "multiplexed.json")):
        in_turns(t)


def in_turns(t):
    with open(os.path.join(t.dir, "multiplexed.json"), encoding="ascii") as f:
        at = json.load(f)
    marked, rest = {}, {}
    for sample in t.load("ours.otlp"):
        attributes = dict(sample.profile.attributes)
        if attributes["stacktap.source"] == "cycles":
            marks = marked if attributes.get("stacktap.multiplexed") else rest
            marks.setdefault(sample.cpu, []).extend(sample.timestamps)
    t.ok(set(at["cpus"]) <= set(marked) and
         all(at["began"] < stamp < at["ended"] for stamps in marked.values() for stamp in stamps),
         f"what was sampled by turns has Profiles of its own, on CPUs {sorted(marked)}")
    # not CPU by CPU: one may have nothing to do afterwards
    turns, alone = (sorted(sum(stamps.values(), [])) for stamps in (marked, rest))
    t.ok(alone[0] < turns[0] and turns[-1] < alone[-1], "before and afterwards it is in others")

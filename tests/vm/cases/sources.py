# SPDX-License-Identifier: Apache-2.0
"""Every kind of counter as a source: taken with its own rate or period, or refused with the reason and
the nearest that works. What QEMU's CPUs can count is asked of the kernel first, not assumed."""

import glob
import json
import os

# (option, perf_event_attr's type and config)
SOFTWARE = (("page-faults", 1, 2), ("context-switches", 1, 3), ("cpu-migrations", 1, 4),
            ("minor-faults", 1, 5), ("alignment-faults", 1, 7), ("task-clock", 1, 1),
            ("software/config=2/u", 1, 2))
HARDWARE = (("instructions", 0, 1), ("cache-misses", 0, 3), ("branch-misses", 0, 5),
            ("L1-dcache-load-misses", 3, 0x10000), ("LLC-loads", 3, 2), ("dTLB-load-misses", 3, 0x10003),
            ("r11", 4, 0x11))


def guest(t):
    # the one guest with a PMU; the kernel's events and the command are the same on both
    if t.arch == "arm64":
        busy = t.start("/opt/stacktap/workload/deep", 5, 600)
        several(t)
        frequency(t)
        t.stop(busy)
    else:
        stand_in(t)
        t.ok(taken(t, SOFTWARE), "every software event is a source")
        wrong(t)
    by_pmu(t, [event[0] for event in HARDWARE if taken(t, [event])])


def several(t):
    """Four of them in one session, each with a rate or a period of its own."""
    child, session = t.record("several.otlp", "-a", "-F", 197, "-e", "cpu-clock", "-e", "page-faults",
                              "-c", 50, "-e", "context-switches/period=3/", "-e", "cycles/freq=49/u")
    sources = sources_of(t, session)
    t.equal([s["name"] for s in sources], ["cpu-clock", "page-faults", "context-switches", "cycles:u"],
            "four sources in one session")
    t.equal([(s["rate_hz"], s["mode"]) for s in sources[:1] + sources[3:]],
            [(197, "period"), (49, "period")], "the first and the last have each its rate")
    t.equal([(s["period"], s["rate_hz"]) for s in sources[1:3]], [(50, 0), (3, 0)],
            "the others a period each")
    t.until(lambda: all(recorded(t, session, source) >= 5 for source in (0, 1, 2)), 60,
            "samples of three sources")
    t.stacktap("set", session, "--source", 1, "--period", 20)
    t.equal([s["period"] for s in sources_of(t, session)[1:3]], [20, 3],
            "one period changes live, the other stays")
    t.stacktap("set", session, "--source", 3, "-F", 29)
    t.equal([s["rate_hz"] for s in sources_of(t, session)], [197, 0, 0, 29], "so does a rate")
    t.accounts(child, session)


def frequency(t):
    """The kernel looks for the period that gives the rate."""
    child, session = t.record("frequency.otlp", "-a", "-F", 97, "--freq-mode", "-e", "page-faults", "-e",
                              "cycles/freq=197/")
    t.equal([(s["mode"], s["rate_hz"]) for s in sources_of(t, session)],
            [("frequency", 97), ("frequency", 197)], "frequency mode")
    t.until(lambda: recorded(t, session, 1) >= 1000, 60, "samples")
    counts = t.accounts(child, session)
    # of the CPU that is busy all the time; how long a counter ran is exact once it is stopped
    rate = max(c["calls"] / c["running_ns"] for c in counts if c["source"] == 1) * 1e9
    # an emulated counter's interrupts come late, which the kernel takes for too many
    t.ok(20 < rate < 197 * 1.5, f"it does for cycles: {rate:.0f} samples a second of 197")


def stand_in(t):
    """Where there is no PMU cpu-clock stands in for cycles: announced, and status tells the reason."""
    events = t.listen("/tmp/events", "--json")
    child, session = t.record("fallback.otlp", "-a", "-F", 97, "-e", "page-faults", "-c", 50, "-e", "cycles")
    source = sources_of(t, session)[1]
    counts = {c["cpu"]: (c["event"], c["fallback_errno"]) for c in t.counts(session) if c["source"] == 1}
    said = t.stacktap("status").stdout
    t.accounts(child, session)
    told = [(e["source"], e.get("errno_name")) for e in map(json.loads, t.heard(events, "/tmp/events"))
            if e["session"] == session and e["event"] == "fallback" and e["cpu"] in counts]
    t.equal((source["fallback_errno"], source["fallback_errno_name"], source["fallback_cpus"]),
            (2, "ENOENT", len(counts)), "status tells why cpu-clock stands in, and on how many CPUs")
    t.equal(set(counts.values()), {("cpu-clock", 2)}, "and of each CPU what counts there")
    t.ok(f"using cpu-clock on {len(counts)} CPUs (fallback): " in said and "(ENOENT)" in said,
         "and says it in words", said)
    t.ok(told and set(told) == {(1, "ENOENT")}, "it is announced with CPU, source and reason", told)


def sources_of(t, session):
    return next(s["sources"] for s in t.json("status")["sessions"] if s["id"] == session)


def recorded(t, session, source):
    # whoever waits for faults and switches makes some
    return sum(c["recorded"] for c in t.counts(session) if c["source"] == source)


def taken(t, events):
    """Are they, in one session? Each has to be as it was asked for; a refusal has to say why and what works."""
    options = [option for name, *_ in events for option in ("-e", name, "-c", 1000003)]
    child = t.start("/opt/stacktap/bin/stacktap", "record", "-a", *options, "--call-graph", "fp", "-o",
                    t.path("taken.otlp"))
    running = t.until(lambda: child.poll() is not None or
                      [s["id"] for s in t.json("status")["sessions"] if s["state"] == "running"],
                      30, "sampling or a refusal")
    if running is True:
        _, err = t.stop(child)
        t.ok(child.returncode and "cannot be counted here: " in err and " works" in err,
             f"refused: {err.strip()}")
        return False
    session = running[0]
    for source, (name, kind, config) in zip(sources_of(t, session), events, strict=True):
        t.equal((source["type"], source["config"], source["fallback_errno"], source["period"]),
                (kind, config, 0, 1000003), f"{name} is a source and is what counts")
        t.equal(source["exclude_kernel"], name.endswith("u"), f"{name} as it was asked for")
    t.accounts(child, session)
    return True


def by_pmu(t, known):
    """By the name that sysfs has, with a term and with one of its events."""
    pmus = [p for p in glob.glob("/sys/bus/event_source/devices/*") if os.path.basename(p) == "cpu" or
            os.path.basename(p).startswith("armv8")]
    if not pmus:
        said = t.stacktap("record", "-a", "-e", "cpu/event=0x3c,umask=0/", "--duration", "0.1", "-o",
                          "/dev/null", check=False)
        t.ok(said.returncode and "there are: " in said.stderr, f"no PMU: {said.stderr.strip()}")
        return
    pmu = os.path.basename(pmus[0])
    with open(f"{pmus[0]}/type", encoding="ascii") as f:
        kind = int(f.read())
    term = "0x11" if pmu.startswith("armv8") else "0x3c"
    for event in (f"{pmu}/config={term}/", f"{pmu}/event={term}/u"):
        t.ok(taken(t, [(event, kind, int(term, 16))]), f"{event} can be counted")
    t.ok("r11" in known or not pmu.startswith("armv8"), "the same as a raw event")


def wrong(t):
    for event, word in (("software/nonsense=1/", "nonsense"), ("nosuch/config=1/", "there are: "),
                        ("cpu-clock:q", "cpu-clock:q"), ("L1-dcache-load-mises", "L1-dcache-load-misses"),
                        ("cycles:p", "remove the modifier: cycles"),
                        ("cycles:upp", "remove the modifier: cycles:u")):
        said = t.stacktap("record", "-e", event, "-o", "/dev/null", check=False)
        t.ok(said.returncode and word in said.stderr, f"refused: {said.stderr.strip()}")

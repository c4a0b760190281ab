# SPDX-License-Identifier: Apache-2.0
"""Live control: a new rate starts a new Profile, filters change at once, events are announced."""

import json
import time


def guest(t):
    events = t.listen("/tmp/events", "--json")
    # its first thread, the one with the process' number, does nothing
    program = t.start("/opt/stacktap/workload/deep", 5, 3600, "thread")
    other = t.start("/opt/stacktap/workload/zero_reader", 3600)
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 97, "--slice-bytes", 8192,
                     "--slice-max-bytes", 32768, "-o", t.path("control.otlp"))
    session = t.until(lambda: t.json("status")["sessions"], 30, "a session")[0]["id"]
    t.until(lambda: t.json("status")["sessions"][0]["state"] == "running", 30, "sampling")
    time.sleep(4)
    changing = time.time_ns()
    t.stacktap("set", session, "--rate", 499)
    changed = time.time_ns()
    time.sleep(4)
    t.stacktap("set", session, "--pid", program.pid)
    filtered = time.time_ns()
    time.sleep(3)
    t.stacktap("stop", session)
    stopped = time.time_ns()
    time.sleep(2)
    starting = time.time_ns()
    t.stacktap("start", session)
    started = time.time_ns()
    time.sleep(2)
    status = t.json("status")["sessions"][0]
    t.equal(status["sources"][0]["rate_hz"], 499, "status shows the new rate")
    t.equal((status["slice_bytes"], status["slice_max_bytes"]), (8192, 32768),
            "status shows how much of a stack samples take along")
    refused = t.stacktap("set", session, "--rate", 1000000000, check=False)
    t.ok(refused.returncode != 0 and "10000" in refused.stderr.replace(",", ""),
         "a rate of 10^9 is refused with the limit", refused.stderr)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    told = map(json.loads, t.heard(events, "/tmp/events"))
    kinds = [event["event"] for event in told if event["session"] == session]
    for kind in ("session-created", "session-started", "session-changed", "session-stopped",
                 "session-destroyed"):
        t.ok(kind in kinds, f"the event {kind} was announced ({kinds})")
    with open(t.path("times.json"), "w", encoding="ascii") as f:
        json.dump({"pid": program.pid, "changing": changing, "changed": changed, "filtered": filtered,
                   "stopped": stopped, "starting": starting, "started": started}, f)
    t.stop(program)
    t.stop(other)


def host(t):
    with open(f"{t.dir}/times.json", encoding="ascii") as f:
        at = json.load(f)
    samples = t.load("control.otlp")
    slack = 500_000_000
    rates = {}
    for sample in samples:
        for stamp in sample.timestamps:
            side = ("before" if stamp < at["changing"] else
                    "after" if stamp > at["changed"] + slack else None)
            if side:
                rates.setdefault(side, set()).add(sample.profile.period)
    t.equal(rates, {"before": {1000000000 // 97}, "after": {1000000000 // 499}},
            "each Profile has one rate, the old before the change and the new after it")
    apart = short_gap(samples, at["changed"] + slack, at["filtered"])
    t.ok(apart < 0.5 / 97, f"the counters follow the new rate: samples {apart * 1000:.1f} ms apart")
    late = {s.process.pid for s in samples for stamp in s.timestamps
            if stamp > at["filtered"] + slack}
    t.equal(late, {at["pid"]}, "after the filter was set only its process is sampled")
    gap = sum(1 for s in samples for stamp in s.timestamps
              if at["stopped"] < stamp < at["starting"])
    t.equal(gap, 0, "nothing was sampled between stop and start")
    t.ok(any(stamp > at["started"] for s in samples for stamp in s.timestamps),
         "and it goes on after start")


def short_gap(samples, start, end):
    """Seconds from one sample to the next on a CPU, of which a quarter of them is not longer: a
    guest that is kept from running has long gaps, but the others are the period."""
    stamps = {}
    for sample in samples:
        stamps.setdefault(sample.cpu, []).extend(
            stamp for stamp in sample.timestamps if start < stamp < end)
    gaps = sorted(b - a for times in map(sorted, stamps.values()) for a, b in zip(times, times[1:]))
    return gaps[len(gaps) // 4] / 1e9 if gaps else float("inf")

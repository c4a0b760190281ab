# SPDX-License-Identifier: Apache-2.0
"""perf stops a counter that overflows more often than kernel.perf_event_max_sample_rate allows, until
the next tick. Each time is counted on its CPU, announced, and in the stream while it lasts."""

import json

from kit import read, write

LOAD = False
SMP = 2
TIMEOUT = 600
RATE = 997
CALLS = 200
MAX_RATE = "/proc/sys/kernel/perf_event_max_sample_rate"
# while this is 0 perf takes no other rate
PERCENT = "/proc/sys/kernel/perf_cpu_time_max_percent"


def per_cpu(t, session, name):
    return {c["cpu"]: c[name] for c in t.counts(session)}


def sample(t, session):
    """Until each CPU has had a number of calls more."""
    before = per_cpu(t, session, "calls")
    t.until(lambda: all(calls >= before[cpu] + CALLS
                        for cpu, calls in per_cpu(t, session, "calls").items()), 60, "calls")


def in_stream():
    """What stacktapd learned from the rings."""
    try:
        with open("/run/stacktap/status.json", encoding="utf-8") as f:
            return json.load(f)["windows"]["throttled"]
    except (OSError, ValueError, KeyError, TypeError):
        return -1


def guest(t):
    t.insmod()
    # one window for all of it: the stream tells of what no window has taken as well
    with open("/tmp/throttle.conf", "w", encoding="ascii") as f:
        f.write(f"[profile]\nrate = {RATE}\nwindow_seconds = 300\nwindow_max_seconds = 300\n"
                f"[unwind]\ntables = no\n[store]\ndirectory = {t.path('store')}\n")
    burners = [t.start("taskset", "-c", cpu, "/opt/stacktap/workload/deep", 5, 600)
               for cpu in range(SMP)]
    events = t.listen("/tmp/events", "--json")
    daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/throttle.conf")
    session = t.until(lambda: [s["id"] for s in t.json("status")["sessions"]
                               if s["state"] == "running"], 60, "a session")[0]
    sample(t, session)
    t.equal(per_cpu(t, session, "throttled"), dict.fromkeys(range(SMP), 0),
            "a counter that keeps to the limit is never throttled")
    was, percent = read(MAX_RATE), read(PERCENT)
    write(PERCENT, 25)
    # which is one overflow a tick
    write(MAX_RATE, 1)
    sample(t, session)
    counted = per_cpu(t, session, "throttled")
    # with the second call in a tick; some ticks of an emulated CPU have but one
    t.ok(all(count >= CALLS // 20 for count in counted.values()),
         f"beyond the limit status counts on each CPU how often it was ({counted})")
    t.ok(t.comes_to(lambda: in_stream() >= sum(counted.values())),
         f"and the stream tells meanwhile ({in_stream()})")
    t.stacktap("stop", session)
    write(MAX_RATE, was)
    write(PERCENT, percent)
    counted = sum(per_cpu(t, session, "throttled").values())
    t.ok(t.comes_to(lambda: in_stream() == counted),
         f"in the end the stream has told of all {counted} times ({in_stream()})")
    t.stop(daemon)
    told = [e for e in map(json.loads, t.heard(events, "/tmp/events"))
            if e["session"] == session and e["event"] == "throttle"]
    t.ok(told and all(0 <= e["cpu"] < SMP and e["source"] == 0 for e in told),
         "it is announced with CPU and source", told)
    t.equal(sum(e.get("count", 0) for e in told), counted, "and announcements leave out none")
    for burner in burners:
        t.stop(burner)
    t.rmmod()

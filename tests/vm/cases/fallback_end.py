# SPDX-License-Identifier: Apache-2.0
"""A counter that could not be had takes the place of cpu-clock when it can be had again: told in the stream,
by an event and in status, with every call accounted for. A test's module has perf refuse counters."""

import errno
import json
import re
import signal
import time

import kmodtest
from kit import write

ARCHES = ("arm64",)
LOAD = False
REFUSE = "/opt/stacktap/test/stacktap_refuse.ko"
SHARE = "% of the samples of PMU interrupts finished in the interrupt"


def told(t, objects, words):
    """What `stacktap events` says, in JSON and in words."""
    ends = [event for event in map(json.loads, objects) if event["event"] == "fallback-end"]
    t.ok(ends and all(event["errno_name"] == "EBUSY" and event["count"] and "cpu" in event
                      and "source" in event for event in ends), "events tell CPU, source and reason", ends)
    lines = [line for line in words if " fallback-end " in line]
    t.ok(lines and "it was cpu-clock since" in lines[0] and "(EBUSY)" in lines[0], "and in words", lines)


def refuse(error):
    write("/sys/module/stacktap_refuse/parameters/error", error)


def share(t):
    """`status` tells the share of the PMU's samples alone, once a fallback is over."""
    refuse(errno.EBUSY)
    busy = t.start("/opt/stacktap/workload/deep", 5, 600)
    record, session = t.record("share.otlp", "-p", busy.pid, "-F", 997, "-e", "cycles")
    t.until(lambda: sum(c["recorded"] for c in t.counts(session)) > 500, 60, "samples of cpu-clock")
    t.ok(SHARE not in t.stacktap("status").stdout, "no share while cpu-clock stands in")
    refuse(0)
    t.until(lambda: sum(c["recorded"] - c["fallback_recorded"] for c in t.counts(session)) > 100,
            60, "samples of the PMU")
    busy.send_signal(signal.SIGSTOP)
    time.sleep(1)
    counts = t.counts(session)
    in_place, recorded, by_clock = (sum(c[name] for c in counts)
                                    for name in ("in_place", "recorded", "fallback_recorded"))
    t.ok(by_clock > 500, f"{by_clock} of {recorded} samples are cpu-clock's afterwards, too", counts)
    said = re.search(rf"[\d.]+ {SHARE}", t.stacktap("status").stdout)
    t.equal(said and said[0], f"{100 * in_place / (recorded - by_clock):.1f} {SHARE}", "the share is of the others")
    t.stop(record)
    t.stop(busy, signal.SIGKILL)


def guest(t):
    t.load_module("/opt/stacktap/stacktap.ko")
    t.run("insmod", REFUSE)
    events = t.listen("/tmp/events", "--json")
    words = t.listen("/tmp/text")
    kmodtest.run_loaded(t, "fallback")
    told(t, t.heard(events, "/tmp/events"), t.heard(words, "/tmp/text"))
    share(t)
    t.run("rmmod", "stacktap_refuse")
    t.run("rmmod", "stacktap")

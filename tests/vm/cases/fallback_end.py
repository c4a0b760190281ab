# SPDX-License-Identifier: Apache-2.0
"""A counter that could not be had takes the place of cpu-clock when it can be had again: told in the stream,
by an event and in status, with every call accounted for. A test's module has perf refuse counters."""

import json

import kmodtest

ARCHES = ("arm64",)
LOAD = False
REFUSE = "/opt/stacktap/test/stacktap_refuse.ko"


def told(t, objects, words):
    """What `stacktap events` says, in JSON and in words."""
    ends = [event for event in map(json.loads, objects) if event["event"] == "fallback-end"]
    t.ok(ends and all(event["errno_name"] == "EBUSY" and event["count"] and "cpu" in event
                      and "source" in event for event in ends), "events tell CPU, source and reason", ends)
    lines = [line for line in words if " fallback-end " in line]
    t.ok(lines and "it was cpu-clock since" in lines[0] and "(EBUSY)" in lines[0], "and in words", lines)


def guest(t):
    t.load_module("/opt/stacktap/stacktap.ko")
    t.run("insmod", REFUSE)
    events = t.listen("/tmp/events", "--json")
    words = t.listen("/tmp/text")
    kmodtest.run_loaded(t, "fallback")
    told(t, t.heard(events, "/tmp/events"), t.heard(words, "/tmp/text"))
    t.run("rmmod", "stacktap_refuse")
    t.run("rmmod", "stacktap")

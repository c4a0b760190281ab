# SPDX-License-Identifier: Apache-2.0
"""A counter that could not be had takes the place of cpu-clock when it can be had again: told in the stream,
by an event and in status, with every call accounted for. A test's module has perf refuse counters."""

import json

import kmodtest

ARCHES = ("arm64",)
LOAD = False
REFUSE = "/opt/stacktap/test/stacktap_refuse.ko"


def told(t):
    """What `stacktap events` says, in JSON and in words."""
    with open("/tmp/events", encoding="ascii") as f:
        ends = [event for event in map(json.loads, f) if event["event"] == "fallback-end"]
    t.ok(ends and all(event["errno_name"] == "EBUSY" and event["count"] and "cpu" in event
                      and "source" in event for event in ends), "events tell CPU, source and reason", ends)
    with open("/tmp/text", encoding="ascii") as f:
        lines = [line for line in f if " fallback-end " in line]
    t.ok(lines and "it was cpu-clock since" in lines[0] and "(EBUSY)" in lines[0], "and in words", lines)


def guest(t):
    t.load_module("/opt/stacktap/stacktap.ko")
    t.run("insmod", REFUSE)
    # in files: while nobody reads a pipe it takes no more than it has room for
    with open("/tmp/events", "w", encoding="ascii") as f, open("/tmp/text", "w", encoding="ascii") as g:
        listeners = [t.start("/opt/stacktap/bin/stacktap", "events", "--json", stdout=f),
                     t.start("/opt/stacktap/bin/stacktap", "events", stdout=g)]
    kmodtest.run_loaded(t, "fallback")
    for listener in listeners:
        t.stop(listener)
    told(t)
    t.run("rmmod", "stacktap_refuse")
    t.run("rmmod", "stacktap")

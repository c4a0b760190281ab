# SPDX-License-Identifier: Apache-2.0
"""The capture path in NMIs that a test's module sends; none of 10^5 is unaccounted for. And those that walk
user stacks themselves."""

import json
import os
import re

import kmodtest

ARCHES = ("x86_64",)
LANE = "nmi"
LOAD = False
ALONE = True
BOOT_TIMEOUT = 3600
TIMEOUT = 900
FOLDER = "/opt/stacktap/test"


def before(t):
    kmodtest.before(t)


def announced(t, events):
    """Of the session that had a burst in the end: what it lost, by reason, and before it stopped."""
    told = {}
    for event in events:
        told.setdefault(event["session"], []).append(event)
    burst = next((own for own in told.values() if any(e["event"] == "loss" and e["lost"]["stash-full"] for e in own)), [])
    lost = {reason: [i for i, e in enumerate(burst) if e["event"] == "loss" and e["lost"][reason]]
            for reason in ("stash-full", "reentry", "offline")}
    stopped = [i for i, e in enumerate(burst) if e["event"] == "session-stopped"]
    for reason, places in lost.items():
        t.ok(places, f"it is announced what was lost to {reason}", burst[-5:])
    # while CPUs come and go, then in the burst; offline losses are told with the next ones, or at the end
    t.ok(lost["offline"] and lost["stash-full"] and lost["offline"][0] <= lost["stash-full"][-1] and stopped and
         lost["stash-full"][-1] < stopped[-1], "in the order in which it happened, and before the session stops",
         (lost, stopped))


def guest(t):
    t.load_module(f"{FOLDER}/stacktap.ko")
    t.run("insmod", f"{FOLDER}/stacktap_nmi.ko")
    events = t.listen("/tmp/events", "--json")
    result = t.run("/opt/stacktap/kmodtest", "nmi", timeout=800, check=False,
                   env={**os.environ, **kmodtest.settings(t)})
    print(result.stdout, flush=True)
    for line in result.stdout.splitlines():
        match = re.fullmatch(r"((?:not )?ok) \d+ - (.*)", line)
        if match:
            t.ok(match[1] == "ok", match[2], result.stdout)
        elif line.startswith("# "):
            t.note(line)
    t.ok(result.returncode == 0, "kmodtest ends well", result.stdout[-2000:] + result.stderr)
    announced(t, [json.loads(line) for line in t.heard(events, "/tmp/events")])
    kmodtest.run_loaded(t, "in-place")
    t.run("rmmod", "stacktap_nmi")
    t.run("rmmod", "stacktap")

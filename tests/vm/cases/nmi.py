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


def guest(t):
    t.load_module(f"{FOLDER}/stacktap.ko")
    t.run("insmod", f"{FOLDER}/stacktap_nmi.ko")
    # in a file: while nobody reads a pipe it takes no more than it has room for
    with open("/tmp/events", "w", encoding="ascii") as f:
        events = t.start("/opt/stacktap/bin/stacktap", "events", "--json", stdout=f)
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
    t.stop(events)
    with open("/tmp/events", encoding="ascii") as f:
        losses = [event["lost"] for event in map(json.loads, f) if event["event"] == "loss"]
    for reason in ("stash-full", "reentry", "offline"):
        t.ok(any(lost[reason] for lost in losses), f"it is announced what was lost to {reason}", losses[-3:])
    kmodtest.run_loaded(t, "in-place")
    t.run("rmmod", "stacktap_nmi")
    t.run("rmmod", "stacktap")

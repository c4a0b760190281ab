# SPDX-License-Identifier: Apache-2.0
"""stacktap top: a known load is first, by each group; the window forgets; the ways to end."""

import json
import os
import signal
import time

ARCHES = ("x86_64",)


def top(t, *options):
    result = t.stacktap("top", "-b", "--json", "-e", "cpu-clock", "-F", 199, *options)
    return [json.loads(line) for line in result.stdout.splitlines()]


def guest(t):
    busy = t.start("/opt/stacktap/workload/deep", 5, 600)
    seen = top(t, "-p", busy.pid, "-n", 3, "-d", 2)
    t.equal(len(seen), 3, "one object for each iteration")
    last = seen[-1]
    first = last["rows"][0]
    t.ok(first["id"] == busy.pid and first["owner"] == "deep" and first["name"] == "bottom",
         "the function that burns is first", first)
    t.ok(first["self"] > 0.8 * last["weight"], "nearly all is its own", last)
    t.ok(last["user"] > 0.8 * last["weight"] and not last["idle"], "user mode", last)
    # 199 a second of at most one CPU, for the six seconds less the first windows
    t.ok(300 < last["samples"] < 1400, "so many samples", last["samples"])
    t.ok(seen[0]["samples"] < last["samples"], "the window fills", [s["samples"] for s in seen])
    short = top(t, "-p", busy.pid, "-n", 3, "-d", 2, "--window", 2)[-1]
    t.ok(short["samples"] < 0.7 * last["samples"], "a shorter window forgets", short["samples"])
    for group, key in (("process", "owner"), ("thread", "owner"), ("object", "file")):
        row = top(t, "-p", busy.pid, "-n", 1, "-d", 3, "--group", group)[0]["rows"][0]
        t.equal(os.path.basename(row[key]), "deep", f"by {group}")
    rows = top(t, "-p", busy.pid, "-n", 1, "-d", 3, "--filter", "^main$")[0]["rows"]
    t.equal([row["name"] for row in rows], ["main"], "the filter leaves what matches")
    text = t.stacktap("top", "-b", "-n", 1, "-d", 3, "-p", busy.pid, "-e", "cpu-clock").stdout
    t.ok("[u] bottom  /opt/stacktap/workload/deep" in text and "SELF" in text, "as text", text)
    ends(t, busy)


def ends(t, busy):
    for how in (signal.SIGINT, signal.SIGTERM):
        child = t.start("/opt/stacktap/bin/stacktap", "top", "-b")
        t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30,
                "sampling")
        time.sleep(1)
        out, err = t.stop(child, how)
        t.ok(child.returncode == 0 and not err, f"{how.name} ends it with 0", out + err)
    child = t.start("/opt/stacktap/bin/stacktap", "top", "-d", 1, "-p", busy.pid)
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30, "sampling")
    t.stop(busy)
    t.equal(t.wait(child, 30), 0, "it ends with its last target")
    t.equal(t.json("status")["sessions"], [], "no session is left")

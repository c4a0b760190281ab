# SPDX-License-Identifier: Apache-2.0
"""Memory for unwind tables runs out: what no walk has used for longest goes, sampling goes on."""

import json
import os
import re

LOAD = False
LIMIT = 1 << 20
TIMEOUT = 900
STATUS = "/run/stacktap/status.json"
WORKLOAD = "/opt/stacktap/workload/no_frame_pointers"
# each brings tables of its own, and all of them are more than a session may have
PROGRAMS = (
    ("openssl", "speed", "-seconds", "1", "-bytes", "16384", "sha256"),
    ("python3", "-c", "import json, ssl, sqlite3, decimal; sum(i * i for i in range(2000000))"),
    ("sqlite3", ":memory:", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
     "WHERE i < 300000) SELECT sum(i) FROM n;"),
    ("perf", "list"),
    ("perf", "bench", "mem", "memcpy"),
)


def daemon_status():
    try:
        with open(STATUS, encoding="utf-8") as f:
            return json.load(f)["unwind"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def guest(t):
    t.insmod("table_limit_mib=1")
    with open("/tmp/limit.conf", "w", encoding="ascii") as f:
        f.write("[profile]\nrate = 199\nwindow_seconds = 2\nwindow_max_seconds = 3\n"
                "[store]\ndirectory = /tmp/limit\n")
    burner = t.start(WORKLOAD, "burn", 100000000)
    if os.path.exists(STATUS):
        os.unlink(STATUS)
    with open(t.path("stacktapd.log"), "w", encoding="utf-8") as log:
        daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/limit.conf", stderr=log,
                         stdout=log)
    t.until(lambda: daemon_status().get("tables", 0) > 1, 60, "tables")
    above = []

    def is_evicted():
        for program in PROGRAMS:
            t.run(*program, check=False)
            unwind = t.json("status")["module"]["unwind"]
            if unwind["table_bytes"] > unwind["limit_bytes"]:
                above.append(unwind)
        return daemon_status().get("evicted", 0) > 0

    t.until(is_evicted, 200, "a table that goes")
    t.ok(not above, "tables never take more than the module's limit", above)
    module = t.json("status")["module"]["unwind"]
    t.equal(module["limit_bytes"], LIMIT, "the limit is the module's parameter")
    unwind = daemon_status()
    t.ok(unwind["tables"] > 0 and unwind["bytes"] <= LIMIT // 2,
         f"the session keeps to its half: {unwind['bytes']} bytes in {unwind['tables']} tables, "
         f"{unwind['evicted']} evicted, {unwind['refused']} refused", unwind)
    # in use all the time, so not the one that goes
    before = ends(t)
    t.until(lambda: sum(ends(t).values()) > sum(before.values()) + 100, 60, "samples")
    after = ends(t)
    seen = {end: after[end] - before.get(end, 0) for end in after}
    # but for new programs, and what an emulated CPU cut
    walked = sum(count for end, count in seen.items()
                 if end not in ("none", "time", "stale", "no-mappings"))
    t.ok(walked and seen["complete"] >= 0.5 * walked,
         f"what runs all the time keeps its tables: {seen}")
    text = t.stacktap("status").stdout
    t.ok(re.search(r", [1-9]\d* evicted, ", text), "status tells of it", text)
    t.ok(burner.poll() is None and daemon.poll() is None, "sampling goes on")
    t.stop(daemon)
    t.ok(daemon.returncode == 0, "the daemon ends well")
    t.stop(burner)
    t.rmmod()


def ends(t):
    """How user stacks ended so far, over all CPUs."""
    counts = {}
    for session in t.json("status")["sessions"]:
        for cpu in session["cpus"]:
            for source in cpu["counts"]:
                for end, count in source["user_end"].items():
                    counts[end] = counts.get(end, 0) + count
    return counts

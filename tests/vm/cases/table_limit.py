# SPDX-License-Identifier: Apache-2.0
"""Memory for unwind tables runs out: what no walk has used for longest goes, sampling goes on."""

import json
import os
import re
import time

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
                f"[store]\ndirectory = {t.path('store')}\n")
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
    with open(t.path("evicted.json"), "w", encoding="ascii") as f:
        json.dump(time.time_ns(), f)
    before = recorded(t)
    t.until(lambda: recorded(t) > before + 300, 60, "samples")
    text = t.stacktap("status").stdout
    t.ok(re.search(r", [1-9]\d* evicted, ", text), "status tells of it", text)
    t.ok(burner.poll() is None and daemon.poll() is None, "sampling goes on")
    t.stop(daemon)
    t.ok(daemon.returncode == 0, "the daemon ends well")
    t.stop(burner)
    t.rmmod()


def recorded(t):
    return sum(source["recorded"] for session in t.json("status")["sessions"]
               for cpu in session["cpus"] for source in cpu["counts"])


def host(t):
    import model
    with open(f"{t.dir}/evicted.json", encoding="ascii") as f:
        evicted = json.load(f)
    seen = {}
    for name in sorted(os.listdir(f"{t.dir}/store")):
        if not name.endswith(".otlp"):
            continue
        for sample in model.of_process(t.load(f"store/{name}"), os.path.basename(WORKLOAD)):
            end = sample.attribute("stacktap.user_stack.end", "complete")
            count = sum(time_ns > evicted for time_ns in sample.timestamps)
            seen[end] = seen.get(end, 0) + count
    # an emulated CPU that its host takes away in the middle of a walk
    judged = sum(seen.values()) - seen.get("time", 0)
    t.ok(judged >= 20, f"what runs all the time was sampled after that: {seen}")
    t.ok(seen.get("complete", 0) >= 0.9 * judged, f"and has kept its tables: {seen}")

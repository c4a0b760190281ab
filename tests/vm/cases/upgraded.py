# SPDX-License-Identifier: Apache-2.0
"""Programs and a library whose files are replaced or deleted while they run, before the recording and during it: each
keeps the names of what it runs, and what is started from the same path has its own."""

import json
import os
import shutil
import time

WORKLOAD = "/opt/stacktap/workload"
TREE = "/run/upgraded"
ENOUGH = 20


def replace(path, source):
    """As a package manager does it."""
    shutil.copy(source, path + ".new")
    os.rename(path + ".new", path)


def guest(t):
    os.mkdir(TREE)
    paths = {name: f"{TREE}/{name}" for name in ("early", "later", "gone", "library.so")}
    for name, path in paths.items():
        shutil.copy(f"{WORKLOAD}/{'plugin.so' if name == 'library.so' else 'deep'}", path)
    running = {"early-old": t.start(paths["early"], 3, 600)}
    time.sleep(1)
    replace(paths["early"], f"{WORKLOAD}/images")
    record, session = t.record("upgraded.otlp", "-a", "-F", 199)
    running["early-new"] = t.start(paths["early"], "after_exec", 600000)
    running["later-old"] = t.start(paths["later"], 3, 600)
    running["gone"] = t.start(paths["gone"], 3, 600)
    running["library"] = t.start(f"{WORKLOAD}/images", "dlopen", paths["library.so"], 600000)
    time.sleep(3)
    replace(paths["later"], f"{WORKLOAD}/images")
    replace(paths["library.so"], f"{WORKLOAD}/deep")
    os.unlink(paths["gone"])
    running["later-new"] = t.start(paths["later"], "after_exec", 600000)
    time.sleep(8)
    t.stacktap("stop", session)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    with open(t.path("pids.json"), "w", encoding="ascii") as f:
        json.dump({name: process.pid for name, process in running.items()}, f)
    for process in running.values():
        process.kill()
        process.wait()
    shutil.rmtree(TREE)


def host(t):
    with open(f"{t.dir}/pids.json", encoding="ascii") as f:
        pids = json.load(f)
    samples = t.load("upgraded.otlp")
    for name, pid in pids.items():
        function, path = {"new": ("after_exec", f"{TREE}/{name[:5]}"), "library": ("plugin_work", f"{TREE}/library.so")}.get(
            name.rpartition("-")[2], ("bottom", f"{TREE}/{name.removesuffix('-old')}"))
        found = {}
        for sample in samples:
            leaf = sample.stack[0] if sample.process.pid == pid and sample.stack else None
            if leaf and leaf.mapping.split(" ")[0] == path:
                found[leaf.function] = found.get(leaf.function, 0) + sample.count
        total = sum(found.values())
        # the first samples of a program may be in its start
        t.ok(found.get(function, 0) >= ENOUGH and found.get("", 0) <= 0.02 * total,
             f"{name}: its samples are in {function}: {found}")
        others = {"bottom", "after_exec", "plugin_work"} - {function}
        t.ok(not others & found.keys(), f"{name}: none has another program's name")

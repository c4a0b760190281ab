# SPDX-License-Identifier: Apache-2.0
"""stacktapd started as root is user stacktap with CAP_PERFMON, and all that takes more goes on as before: the side band of
CPUs that come online, helpers that died, a configuration that only root may read, the store, sessions for others."""

import json
import os
import re
import signal
import time

import kit
from cases import daemon

LOAD = False
PERFMON = 1 << 38
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
CONFIG = "/etc/privileges/stacktap.conf"
STORE = "/tmp/privileges-store"
OTHERS = "/tmp/privileges-others"
SOCKET = "/run/stacktap/serve.socket"
OLD = "profiles-1000000000000.otlp"
LOG = "/tmp/privileges.log"
HELPERS = ("stacktap-broker", "stacktap-opener", "stacktap-parser")
MOST = {"stacktap-opener": 2}   # once a stack ended at a page that was absent there is one for these


def configure(rate, store=STORE, tables="no"):
    """Tables of all that runs take an emulated CPU a while at each start."""
    os.makedirs(os.path.dirname(CONFIG), mode=0o700, exist_ok=True)
    daemon.configuration(CONFIG, profile={"rate": rate, "window_seconds": 1, "window_max_seconds": 2, "budget_ns": 0},
                         store={"directory": store}, unwind={"tables": tables}, daemon={"status_seconds": 1}, serve={"listen": f"unix:{SOCKET}"})
    os.chmod(CONFIG, 0o600)


def set_paranoid(value):
    with open(PARANOID, "w", encoding="ascii") as f:
        f.write(str(value))


def start(t):
    with open(LOG, "a", encoding="utf-8") as log:
        child = t.start("/opt/stacktap/bin/stacktapd", "--config", CONFIG, stderr=log, stdout=log)
    t.until(lambda: told(child).get("session") and told(child)["opener"]["pid"], 60, "a session")
    return child


def told(child):
    """The running daemon's status; not what a killed one left."""
    try:
        now = daemon.status()
    except (OSError, ValueError):
        return {}
    return now if now["pid"] == child.pid else {}


def facts(path):
    with open(path, encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def processes(name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f, open(f"/proc/{pid}/stat", encoding="ascii") as state:
                if f.read().strip() == name[:15] and state.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def side_bands(child):
    """Of how many CPUs it has one mapped."""
    with open(f"/proc/{child.pid}/maps", encoding="ascii") as f:
        return sum("anon_inode:[perf_event]" in line for line in f)


def names(t, pattern, *selection):
    """Whether what is stored has it."""
    files = [f"{STORE}/{name}" for name in sorted(os.listdir(STORE)) if name != OLD]
    return files and re.search(pattern, t.stacktap("report", "--limit", 0, *selection, *files[-1:], check=False).stdout)


def rights(t, child):
    for task in sorted(os.listdir(f"/proc/{child.pid}/task")):
        have = facts(f"/proc/{child.pid}/task/{task}/status")
        t.equal((have["Uid"].split(), have["Gid"].split(), have["Groups"].split()), ([str(kit.USER)] * 4, [str(kit.USER)] * 4, []),
                f"thread {have['Name']} is user stacktap")
        t.equal([int(have[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")], [PERFMON, PERFMON, 0, 0],
                f"thread {have['Name']} has CAP_PERFMON and no more")
        t.equal((have["NoNewPrivs"], have["Seccomp"]), ("1", "2"), f"thread {have['Name']} gains none, its calls are filtered")
    t.equal((told(child)["user"], told(child).get("kept_rights")), ("stacktap", None), "the status says who it is")
    t.ok("runs as user stacktap" in t.stacktap("status").stdout, "for people as well")
    t.equal([told(child)["broker_pid"]], processes("stacktap-broker"), "and which process has the rights")
    for name, users in (("stacktap-broker", "0"), ("stacktap-opener", "0"), ("stacktap-parser", "65534")):
        have = [facts(f"/proc/{pid}/status") for pid in processes(name)]
        t.equal({(one["Uid"].split()[0], one["Seccomp"]) for one in have}, {(users, "2")}, f"{name} is there, filtered")
        t.ok(len(have) <= MOST.get(name, 1), f"{name} is there once ({len(have)})")
    for pid in processes("stacktap-parser"):
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            limit = [line.split()[3:5] for line in file if line.startswith("Max address space")]
        t.equal(limit, [[str(256 << 20)] * 2], "the parser has 256 MiB of address space")


def files(t):
    owners = {name: os.stat(f"{STORE}/{name}").st_uid for name in os.listdir(STORE)}
    t.equal({os.stat(STORE).st_uid, os.stat("/run/stacktap").st_uid, *owners.values()}, {kit.USER},
            "its directories and all that is in them are the user's")
    t.ok(OLD in owners, "what an earlier version left there too")


def comes_back(t, child):
    """perf_event_paranoid is 3: the user alone could open no side band."""
    cpus = os.cpu_count()
    t.equal(side_bands(child), cpus, "it has a side band of each CPU")
    for value in (0, 1):
        with open("/sys/devices/system/cpu/cpu1/online", "w", encoding="ascii") as f:
            f.write(str(value))
        time.sleep(1)
    t.ok(t.comes_to(lambda: side_bands(child) == cpus and "side band" not in open(LOG, encoding="utf-8").read()),
         "a CPU that comes online has one again")
    late = t.start("taskset", "-c", 1, "/opt/stacktap/workload/deep", 5, 3600)
    t.ok(t.comes_to(lambda: names(t, r"\bdescend\b"), 60), "what starts there has names")
    t.ok(t.comes_to(lambda: names(t, r"\[k\] [a-z]\w+"), 60), "and so has the kernel")
    t.ok(told(child)["unwind"]["lists"], "lists are set for processes", told(child)["unwind"])
    t.stop(late)


def elsewhere(t):
    """Its root is asked of a process whose namespaces the user may not look at."""
    program = t.start("unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt && cp /opt/stacktap/workload/deep /mnt/hidden && "
                      "exec /mnt/hidden 5 3600")
    t.ok(t.comes_to(lambda: names(t, r"\bdescend\b", "--process", "hidden"), 60), "and a program of another mount namespace")
    t.stop(program)


def replaced(t, child):
    before = told(child)["opener"]["pid"]
    os.kill(before, signal.SIGKILL)
    t.start("/opt/stacktap/workload/deep", 3, 1)
    t.ok(t.comes_to(lambda: told(child).get("opener", {}).get("pid") not in (None, 0, before), 60),
         "an opener that died is replaced")
    t.ok(len(processes("stacktap-opener")) <= MOST["stacktap-opener"], "by one")


def reloads(t, child):
    configure(97, tables="yes")
    child.send_signal(signal.SIGHUP)
    t.ok(t.comes_to(lambda: [s["sources"][0]["rate_hz"] for s in t.json("status")["sessions"]] == [97], 20),
         "a configuration that only root may read is read again")


def guest(t):
    t.run("insmod", "/opt/stacktap/stacktap.ko", "handler_budget_ns=0", "ceiling_permille=0")
    with open(PARANOID, encoding="ascii") as f:
        paranoid = f.read().strip()
    set_paranoid(3)
    os.makedirs(STORE, mode=0o750)
    with open(f"{STORE}/{OLD}", "w", encoding="ascii"):
        pass
    configure(199, tables="yes")
    child = start(t)
    try:
        rights(t, child)
        comes_back(t, child)
        elsewhere(t)
        files(t)
        replaced(t, child)
        reloads(t, child)
        code, _ = daemon.ask("/debug/pprof/profile?seconds=2&rate=499&event=cpu-clock", SOCKET)
        t.equal(code, 200, "a session of its own for who asks at the socket")
        t.equal(daemon.ask("/store/timeline.json", SOCKET)[0], 200, "the store's page is answered")
        child.send_signal(signal.SIGTERM)
        t.equal(t.wait(child, 30), 0, "SIGTERM ends it in good order")
        t.ok(t.comes_to(lambda: not any(map(processes, HELPERS))), "with all of its helpers")
        configure(97)
        ends(t)
        stays_root(t)
    finally:
        t.run("cp", LOG, t.path("stacktapd.log"))
        kit.have_user(True)
        set_paranoid(paranoid)
    t.rmmod()


def ends(t):
    child = start(t)
    os.kill(processes("stacktap-broker")[0], signal.SIGKILL)
    t.equal(t.wait(child, 60), 1, "without its broker it ends, and fails")
    with open(LOG, encoding="utf-8") as f:
        t.ok("stacktap-broker has exited" in f.read(), "and says why")
    child = start(t)
    child.kill()
    t.wait(child, 30)
    t.ok(t.comes_to(lambda: not any(map(processes, HELPERS))), "when it is killed none of them stays")


def stays_root(t):
    kit.have_user(False)
    child = start(t)
    now = told(child)
    t.equal((now["user"], facts(f"/proc/{child.pid}/status")["Uid"].split()[0]), ("root", "0"),
            "without the user it works as root")
    t.ok("there is no user stacktap" in now["kept_rights"], "and says why", json.dumps(now["kept_rights"]))
    t.stop(child)
    kit.have_user(True)
    os.makedirs(OTHERS, mode=0o755)
    with open(f"{OTHERS}/notes", "w", encoding="ascii"):
        pass
    configure(199, OTHERS)
    child = start(t)
    now = told(child)
    t.ok(now["user"] == "root" and "notes: is not a file of stacktapd's" in now["kept_rights"],
         "a directory with files of others keeps it from that", json.dumps(now["kept_rights"]))
    t.equal({os.stat(OTHERS).st_uid, os.stat(f"{OTHERS}/notes").st_uid}, {0}, "and is left as it was")
    t.stop(child)

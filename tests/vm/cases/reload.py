# SPDX-License-Identifier: Apache-2.0
"""stacktapd reads its configuration again: rates and filters live, the rest by a new session, nonsense
never."""

import glob
import os
import re
import shutil
import signal
import socket
import time


def write(**sections):
    with open("/tmp/reload.conf", "w", encoding="ascii") as f:
        for section, values in sections.items():
            f.write(f"[{section}]\n")
            for key, value in values.items():
                f.write(f"{key} = {value}\n")


PROFILE = {"rate": 97, "window_seconds": 1, "window_max_seconds": 2}
STORE = {"directory": "/tmp/reload-store"}
DAEMON = {"status_seconds": 1}
SLICE = "/sys/fs/cgroup/reload.slice"
# not on the share: in 6.12 who reads there while another writes may leave zeros where the text was
LOG = "/tmp/reload.log"


def sessions(t):
    return [s for s in t.json("status")["sessions"] if s["state"] == "running"]


def holds(t, condition, text):
    """Sooner or later."""
    try:
        return t.ok(t.until(condition, 20, text), text)
    except AssertionError as e:
        return t.ok(False, text, f"{e}: {t.json('status')}")


def becomes(t, daemon, condition, text):
    daemon.send_signal(signal.SIGHUP)
    return holds(t, lambda: any(condition(s) for s in sessions(t)), text)


def log_says(t, words):
    with open(LOG, encoding="utf-8") as f:
        return words in f.read()


def guest(t):
    write(profile=PROFILE, store=STORE, daemon=DAEMON)
    log = open(LOG, "w", encoding="utf-8")
    daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/reload.conf", stderr=log,
                     stdout=log)
    first = t.until(lambda: sessions(t), 30, "a session")[0]
    t.equal(first["filter"]["exclude_idle"], True, "the daemon leaves idle out")

    try:
        if reloads(t, daemon, first) and filters(t, daemon) and paces(t, daemon):
            pauses(t, daemon)
            listens(t, daemon)
            tells(t, daemon)
            ends(t, daemon)
    finally:
        shutil.copy(LOG, t.path("stacktapd.log"))


def reloads(t, daemon, first):
    """False: there is nothing left to look at."""
    write(profile=dict(PROFILE, rate=199), filter={"exclude_idle": "no", "cpus": "0"}, store=STORE,
          daemon=DAEMON)
    if not becomes(t, daemon, lambda s: s["id"] == first["id"] and
                   s["sources"][0]["rate_hz"] == 199 and s["filter"].get("cpus") == [0] and
                   not s["filter"]["exclude_idle"],
                   "a rate and filters change in the running session"):
        return False

    write(profile=dict(PROFILE, rate=0), store=STORE, daemon=DAEMON)
    daemon.send_signal(signal.SIGHUP)
    holds(t, lambda: log_says(t, "rate must be a number"), "the log tells why a wrong file is refused")
    t.equal([(s["id"], s["sources"][0]["rate_hz"]) for s in sessions(t)], [(first["id"], 199)],
            "a wrong file changes nothing")

    write(profile=dict(PROFILE, event="cpu-clock"), store=STORE, daemon=DAEMON)
    if not becomes(t, daemon, lambda s: s["id"] != first["id"] and
                   s["sources"][0]["name"] == "cpu-clock", "another event starts a new session"):
        return False
    second = [s["id"] for s in sessions(t)]
    t.equal(len(second), 1, "and ends the old one")

    write(profile=dict(PROFILE, event="cpu-clock"), store={"directory": "/proc/none"},
          daemon=DAEMON)
    return becomes(t, daemon, lambda s: s["id"] not in second and
                   s["sources"][0]["name"] == "cpu-clock",
                   "a store that cannot be used puts the old configuration back")


def filters(t, daemon):
    """By names, which may stand for something else the next time."""
    session = sessions(t)[0]["id"]
    event = dict(PROFILE, event="cpu-clock")
    named = {"users": "root, 1234", "comms": "deep, zero_reader", "cgroups": "reload.slice"}

    def number():
        return [{"id": os.stat(SLICE).st_ino}]

    def is_filtered(s, cgroups):
        have = s["filter"]
        return (s["id"], have.get("uids"), have.get("comms")) == (
            session, [0, 1234], ["deep", "zero_reader"]) and cgroups == [
                {"id": c["id"]} for c in have.get("cgroups", ())]

    write(profile=event, filter=named, store=STORE, daemon=DAEMON)
    daemon.send_signal(signal.SIGHUP)
    holds(t, lambda: log_says(t, "cannot open cgroup `reload.slice'"), "a cgroup that is not there is told")
    t.ok(not sessions(t)[0]["filter"].get("uids"), "and nothing of that filter is in force")

    os.mkdir(SLICE)
    first = number()
    if not becomes(t, daemon, lambda s: is_filtered(s, first), "users, names and cgroups are filtered by"):
        return False
    os.rmdir(SLICE)
    write(profile=dict(event, rate=49), filter=named, store=STORE, daemon=DAEMON)
    becomes(t, daemon, lambda s: is_filtered(s, first) and s["sources"][0]["rate_hz"] == 49,
            "a rate changes although the cgroup is gone")
    t.ok(log_says(t, "the filter stays as it is"), "the log says what is with the filter")

    os.mkdir(SLICE)
    second = number()
    becomes(t, daemon, lambda s: second != first and is_filtered(s, second),
            "another cgroup of that name is found by the same file")
    os.rmdir(SLICE)
    write(profile=event, store=STORE, daemon=DAEMON)
    return becomes(t, daemon, lambda s: s["id"] == session and
                   not any(s["filter"].get(kind) for kind in ("uids", "comms", "cgroups")),
                   "and without them everything is sampled")


def paces(t, daemon):
    """A rate of an event's own stays what it is when the others' changes."""
    own = dict(PROFILE, event="cpu-clock/freq=49/")
    write(profile=own, store=STORE, daemon=DAEMON)
    if not becomes(t, daemon, lambda s: s["sources"][0]["rate_hz"] == 49, "an event has a rate of its own"):
        return False
    write(profile=dict(own, rate=199), filter={"cpus": "0"}, store=STORE, daemon=DAEMON)
    return becomes(t, daemon, lambda s: s["filter"].get("cpus") == [0] and s["sources"][0]["rate_hz"] == 49,
                   "which it keeps when the rate changes")


def pauses(t, daemon):
    """By a file, and by another configuration that nobody tells it of."""
    fleet = {"kill_switch": "/tmp/off", "watch": "yes"}
    session = sessions(t)[0]["id"]
    own = dict(PROFILE, event="cpu-clock/freq=49/")
    write(profile=own, store=STORE, daemon=DAEMON, fleet=fleet, serve={"listen": "unix:/tmp/pauses.socket"})
    becomes(t, daemon, lambda s: s["id"] == session and s["filter"].get("cpus") != [0],
            "a kill switch is configured in the running session")
    with open("/tmp/off", "w", encoding="ascii"):
        pass
    holds(t, lambda: not sessions(t), "nothing is sampled while the kill switch is there")
    holds(t, lambda: t.json("status")["daemon"].get("paused") == "kill switch", "and the status says why")
    answer = ask("/tmp/pauses.socket", "/flamegraph?seconds=1&rate=99&event=nothing")
    t.ok("not sampling" in answer, "nor by a session of its own", answer[:300])
    os.unlink("/tmp/off")
    holds(t, lambda: [s["id"] for s in sessions(t)] == [session], "the same session goes on without it")
    t.ok(log_says(t, "/tmp/off exists"), "the log names the file")
    write(profile=own, filter={"cpus": "0"}, store=STORE, daemon=DAEMON, fleet=fleet)
    holds(t, lambda: any(s["filter"].get("cpus") == [0] for s in sessions(t)),
          "a file that has changed is read again")
    t.ok(t.json("status")["daemon"]["pauses"] == 1, "one pause is counted")


def ask(path, what):
    """The whole answer of a socket's HTTP server; "" where nobody listens."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(20)
        try:
            peer.connect(path)
            peer.sendall(f"GET {what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: peer.recv(65536), b"")).decode()
        except (FileNotFoundError, ConnectionRefusedError):
            return ""


def listens(t, daemon):
    """Metrics come, move and go by reloads, in the running session."""
    session = sessions(t)[0]["id"]
    same = {"profile": dict(PROFILE, event="cpu-clock/freq=49/", rate=199), "filter": {"cpus": "0"}, "store": STORE,
            "daemon": DAEMON}
    for path in ("/run/stacktap/a.socket", "/run/stacktap/b.socket"):
        write(**same, metrics={"listen": f"unix:{path}"})
        daemon.send_signal(signal.SIGHUP)
        holds(t, lambda path=path: ask(path, "/readyz").endswith("\r\n\r\nsampling\n"), f"{path} says that it samples")
    t.ok(not os.path.exists("/run/stacktap/a.socket"), "the first one is closed when it moves")
    holds(t, lambda: re.search(r"^stacktap_windows_samples_total [1-9]", ask("/run/stacktap/b.socket", "/metrics"), re.M),
          "the metrics have samples")
    metrics = ask("/run/stacktap/b.socket", "/metrics")
    t.ok(metrics.endswith("\n# EOF\n"), "and are whole", metrics[-2000:])
    t.ok(re.search(r"^stacktap_pool_used_bytes\{pool=\"rings\"\} [1-9]", metrics, re.M), "and memory by pool",
         metrics[-2000:])
    holds(t, lambda: (t.json("status")["daemon"] or {}).get("metrics", {}).get("address") == "/run/stacktap/b.socket",
          "status says where they are")
    write(**same)
    daemon.send_signal(signal.SIGHUP)
    holds(t, lambda: not os.path.exists("/run/stacktap/b.socket"), "without the option nobody listens")
    t.equal(sessions(t)[0]["id"], session, "all of it in the same session")


def tells(t, daemon):
    other = t.run("/opt/stacktap/bin/stacktapd", "--config", "/tmp/reload.conf", check=False)
    t.ok(other.returncode == 1 and "another stacktapd" in other.stderr, "a second daemon is refused",
         other.stderr)
    daemon.send_signal(signal.SIGUSR1)
    holds(t, lambda: log_says(t, "aggregate"), "the log has the table of pools")
    pools = t.until(lambda: (t.json("status")["daemon"] or {}).get("pools"), 20, "pools in status")
    t.ok(all(pool["peak"] <= pool["limit"] for pool in pools) and
         any(pool["peak"] for pool in pools), "status shows pools within their limits", pools)


def ends(t, daemon):
    # the store was the same all along, so its files go on
    t.until(lambda: glob.glob("/tmp/reload-store/*.otlp"), 30,
            "a file in the store")
    daemon.send_signal(signal.SIGTERM)
    t.ok(t.wait(daemon, 30) == 0, "SIGTERM ends it in good order")
    t.equal(t.json("status")["daemon"], None, "and status says that none runs")
    time.sleep(0.1)
    t.ok(not sessions(t), "no session is left")

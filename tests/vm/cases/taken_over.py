# SPDX-License-Identifier: Apache-2.0
"""A daemon is killed, what keeps its session hands it to the next one: nothing is missing, twice or somebody else's.

A reload before that changes what is handed over; a next daemon of another configuration takes nothing."""

import collections
import json
import os
import random
import signal
import socket
import threading
import time

TOP = "/opt/stacktap"
STORE = "/tmp/taken_over"
RESTART_SECONDS = 8
# more than the journal may lack on a host that is slow, less than it takes until the next daemon is there
GAP_SECONDS = 7
ROUNDS = 1
# of a session that is not taken over, or was changed before it was
ABSENCE_SECONDS = 3
# the journal has what was sampled until the kill
KILL_SECONDS = 0.2
OLD_RATE, NEW_RATE = 99, 49
# of what another daemon is configured for than the one that was killed
OTHERS = ((("rate = 49", "rate = 149"),),
          (("[profile]", "[profile]\nevent = context-switches"), ("ring_bytes = 8M", "ring_bytes = 4M")))
# an exec and the note of it are not one moment
NEAR_SECONDS = 0.1
FIRST = """
import os, sys, time
end = time.monotonic() + 5
while time.monotonic() < end:
    pass
with open("/tmp/execs", "a", encoding="ascii") as f:
    print(os.getpid(), time.time(), file=f)
os.execv("/tmp/second", ["second", "20", "600"])
"""
CONFIG = f"""[profile]
rate = 99
window_seconds = 2
window_max_seconds = 3
budget_ns = 0
[symbols]
wait_seconds = 30
[capture]
ring_bytes = 16M
[store]
directory = {STORE}
[daemon]
load_module = no
status_seconds = 1
"""


class Manager:
    """As much of a service manager as it takes: the store of descriptors, and the start with what is in it."""

    def __init__(self, t):
        self.t = t
        self.kept = {}
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("/tmp/notify")
        os.chmod("/tmp/notify", 0o777)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            text, fds, _, _ = socket.recv_fds(self.socket, 4096, 4)
            told = dict(line.split("=", 1) for line in text.decode().splitlines())
            if told.get("FDSTORE"):
                self.kept[told["FDNAME"]] = fds[0]
            elif told.get("FDSTOREREMOVE"):
                fd = self.kept.pop(told["FDNAME"], None)
                if fd is not None:
                    os.close(fd)

    def start(self, log):
        names = list(self.kept)
        fds = [os.dup(self.kept[name]) for name in names]
        high = [fd if fd > 20 else os.dup2(fd, 21 + i) for i, fd in enumerate(fds)]

        def place():
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)

        environment = dict(os.environ, NOTIFY_SOCKET="/tmp/notify")
        if names:
            environment.update(LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=":".join(names))
        daemon = self.t.start("sh", "-c", f"LISTEN_PID=$$ exec {TOP}/bin/stacktapd --config /tmp/taken_over.conf",
                              env=environment, stderr=log, stdout=log, preexec_fn=place,
                              pass_fds=tuple(range(3, 3 + len(names))))
        for fd in {*fds, *high}:
            os.close(fd)
        return daemon


def status():
    try:
        with open("/run/stacktap/status.json", encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return {}


def sampling(daemon):
    now = status()
    return now.get("pid") == daemon.pid and now.get("windows", {}).get("samples", 0) > 0


def configure(text):
    with open("/tmp/taken_over.conf", "w", encoding="ascii") as f:
        f.write(text)


def replace(t, manager, daemon, log, text=None):
    """Kill it; the next one, of this configuration or the same, and what came of that."""
    killed = time.time()
    daemon.kill()
    daemon.wait()
    if text:
        configure(text)
    time.sleep(ABSENCE_SECONDS)
    started = time.time()
    daemon = manager.start(log)
    t.until(lambda: sampling(daemon), 90, "samples of the next daemon")
    # its own session is kept in place of the one before
    t.until(lambda: len(manager.kept) == 2, 30, "a session to be kept")
    return daemon, {"killed": killed, "started": started, "capture": status()["capture"],
                    "sessions": len(t.json("status")["sessions"])}


def reload(t, daemon, text):
    before = status()["reloads"]
    configure(text)
    daemon.send_signal(signal.SIGHUP)
    t.until(lambda: status().get("reloads", 0) > before and sampling(daemon), 60, "a reload")


def reloads(t, manager, daemon, log):
    """In the running session, and by one that takes its place."""
    changed = []
    text = CONFIG.replace(f"rate = {OLD_RATE}", f"rate = {NEW_RATE}")
    reload(t, daemon, text)
    daemon, live = replace(t, manager, daemon, log)
    text = text.replace("ring_bytes = 16M", "ring_bytes = 8M")
    first = t.json("status")["sessions"][0]["id"]
    reload(t, daemon, text)
    t.until(lambda: [s["id"] for s in t.json("status")["sessions"]] not in ([], [first]), 60, "another session")
    t.until(lambda: len(manager.kept) == 2, 30, "it to be kept")
    time.sleep(2)
    daemon, again = replace(t, manager, daemon, log)
    changed = [live, again]
    t.ok(all(now["capture"]["kept_sessions"] == 1 and now["capture"]["kept_samples"] > 20 and now["sessions"] == 1
             for now in changed), f"a session that a reload changed, or made, is taken over: {changed}")
    return daemon, text, changed


def others(t, manager, daemon, log, text):
    refused = []
    for changes in OTHERS:
        for old, new in changes:
            text = text.replace(old, new)
        daemon, now = replace(t, manager, daemon, log, text)
        refused.append(now)
    t.ok(all(now["capture"]["kept_sessions"] == 0 and now["sessions"] == 1 for now in refused),
         f"a daemon of another rate, event or ring size takes nothing over, and ends the session: {refused}")
    return daemon, refused


def guest(t):
    os.makedirs(STORE)
    configure(CONFIG)
    with open("/tmp/first.py", "w", encoding="ascii") as f:
        f.write(FIRST)
    t.run("cp", f"{TOP}/workload/deep_static", "/tmp/second")
    steady = t.start(f"{TOP}/workload/deep_static", "12", "3600")
    manager = Manager(t)
    kills, kept = [], []
    with open(t.path("stacktapd.log"), "w", encoding="utf-8") as log:
        daemon = manager.start(log)
        for _ in range(ROUNDS):
            t.until(lambda: sampling(daemon), 90, "samples")
            t.until(lambda: len(manager.kept) == 2, 30, "a session to be kept")
            first = t.start("python3", "/tmp/first.py")
            time.sleep(random.uniform(1, 4))
            killed = time.time()
            daemon.kill()
            daemon.wait()
            time.sleep(RESTART_SECONDS)
            daemon = manager.start(log)
            t.until(lambda: sampling(daemon), 90, "samples of the next daemon")
            # it ran until somebody could ask what it runs
            first.kill()
            kills.append((killed, time.time()))
            kept.append(status()["capture"])
        daemon, text, changed = reloads(t, manager, daemon, log)
        daemon, refused = others(t, manager, daemon, log, text)
        time.sleep(4)
        sessions = len(t.json("status")["sessions"])
        t.stop(daemon)
    t.ok(all(now["kept_sessions"] == 1 and now["kept_samples"] > 50 for now in kept),
         f"each daemon took over what the one before had left: {kept}")
    t.equal(sessions, 1, "there is one session beside each, its own")
    t.equal(daemon.returncode, 0, "the last one ends well")
    t.until(lambda: not manager.kept, 10, "nothing to be kept any more")
    t.equal(len(t.json("status")["sessions"]), 0, "with it the session has ended")
    steady.kill()
    with open(t.path("store.otlp"), "wb") as out:
        for name in sorted(os.listdir(STORE)):
            if name.endswith(".otlp"):
                with open(f"{STORE}/{name}", "rb") as file:
                    out.write(file.read())
    with open("/tmp/execs", encoding="ascii") as file:
        execs = [line.split() for line in file]
    with open(t.path("ran.json"), "w", encoding="utf-8") as out:
        json.dump({"kills": kills, "execs": execs, "steady": steady.pid, "changed": changed, "refused": refused}, out)


def host(t):
    import model
    with open(os.path.join(t.dir, "ran.json"), encoding="utf-8") as f:
        ran = json.load(f)
    samples = t.load("store.otlp")
    steady = model.of_process(samples, ran["steady"])
    # what comes after the last of these misses something on purpose
    times = sorted(time / 1e9 for sample in steady for time in sample.timestamps if time / 1e9 < ran["kills"][-1][1])
    gap, at = max((b - a, a) for a, b in zip(times, times[1:]))
    t.ok(gap < GAP_SECONDS, f"no kill costs more than what the journal lacks: {gap:.2f} s at {at:.2f} are the longest "
         f"without a sample, of {len(times)}; kills: {ran['kills']}")
    told = collections.Counter((sample.thread_id, sample.cpu, time) for sample in samples for time in sample.timestamps)
    twice = sum(count - 1 for count in told.values())
    t.equal(twice, 0, "no sample is there twice")

    whole = between = 0
    for sample in steady:
        count = sum(1 for time in sample.timestamps
                    if any(killed < time / 1e9 < killed + RESTART_SECONDS for killed, _ in ran["kills"]))
        between += count
        # a walk on an emulated CPU comes to its limit
        whole += count if "main" in sample.names or sample.attribute("stacktap.user_stack.end") == "time" else 0
    t.ok(between > 100 and whole >= 0.95 * between, f"stacks of the time without a daemon are whole: {whole} of {between}")

    wrong = before = after = 0
    for pid, then in ran["execs"]:
        for sample in model.of_process(samples, int(pid)):
            names = {frame.mapping.rsplit("/", 1)[-1] for frame in sample.stack} | {sample.process.executable}
            early = sum(1 for time in sample.timestamps if time / 1e9 < float(then) - NEAR_SECONDS)
            late = sum(1 for time in sample.timestamps if time / 1e9 > float(then) + NEAR_SECONDS)
            before, after = before + early, after + late
            wrong += early if "second" in names else 0
            wrong += late if any("python" in name for name in names) else 0
    t.ok(before > 50 and after > 50, f"a program that became another has samples of both: {before}, {after}")
    t.equal(wrong, 0, "none of them has code or the name of the other")

    def between_daemons(now):
        return [(sample, time / 1e9) for sample in steady for time in sample.timestamps
                if now["killed"] + KILL_SECONDS < time / 1e9 < now["started"]]

    found = [between_daemons(now) for now in ran["changed"]]
    rates = {dict(sample.profile.attributes).get("stacktap.rate_hz") for samples_then in found for sample, _ in samples_then}
    t.ok(all(len(samples_then) > 20 for samples_then in found) and rates == {NEW_RATE},
         f"samples of a session that was reloaded have its new rate: {[len(f) for f in found]} of {rates} Hz")
    t.equal([len(between_daemons(now)) for now in ran["refused"]], [0] * len(OTHERS),
            "none is delivered by a daemon that is configured for something else")

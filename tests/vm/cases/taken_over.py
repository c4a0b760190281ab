# SPDX-License-Identifier: Apache-2.0
"""A daemon is killed, what keeps its session hands it to the next one: nothing is missing, twice or somebody else's."""

import collections
import json
import os
import random
import socket
import threading
import time

TOP = "/opt/stacktap"
STORE = "/tmp/taken_over"
RESTART_SECONDS = 8
# more than the journal may lack on a host that is slow, less than it takes until the next daemon is there
GAP_SECONDS = 7
ROUNDS = 2
# an exec and the note of it are not one moment
NEAR_SECONDS = 0.1
FIRST = """
import os, sys, time
end = time.monotonic() + 5
while time.monotonic() < end:
    pass
with open("/tmp/execs", "a", encoding="ascii") as f:
    print(os.getpid(), time.time(), file=f)
os.execv("/tmp/second", ["second", "20", "8"])
"""
CONFIG = f"""[profile]
rate = 99
window_seconds = 2
window_max_seconds = 3
budget_ns = 0
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


def guest(t):
    os.makedirs(STORE)
    with open("/tmp/taken_over.conf", "w", encoding="ascii") as f:
        f.write(CONFIG)
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
            t.start("python3", "/tmp/first.py")
            time.sleep(random.uniform(1, 4))
            killed = time.time()
            daemon.kill()
            daemon.wait()
            time.sleep(RESTART_SECONDS)
            daemon = manager.start(log)
            t.until(lambda: sampling(daemon), 90, "samples of the next daemon")
            kills.append((killed, time.time()))
            kept.append(status()["capture"])
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
        json.dump({"kills": kills, "execs": execs, "steady": steady.pid}, out)


def host(t):
    import model
    with open(os.path.join(t.dir, "ran.json"), encoding="utf-8") as f:
        ran = json.load(f)
    samples = t.load("store.otlp")
    steady = model.of_process(samples, ran["steady"])
    times = sorted(time / 1e9 for sample in steady for time in sample.timestamps)
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

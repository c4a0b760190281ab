# SPDX-License-Identifier: Apache-2.0
"""A file server that does not answer any more costs its own files their names, and nobody anything else."""

import json
import os
import signal
import time

TOP = "/opt/stacktap"
PROGRAM = f"{TOP}/workload/deep_static"
DEPTH = 12
PATIENCE = 60
LAYERED = f"""set -e
mount -t tmpfs none /mnt/layers
cd /mnt/layers
mkdir upper work merged
mount -t overlay none -o lowerdir=/mnt/frozen,upperdir=upper,workdir=work merged
cat merged/program >/dev/null
exec chroot merged /program {DEPTH} 600
"""
CONFIG = """[profile]
rate = 199
window_seconds = 1
window_max_seconds = 1
[symbols]
wait_seconds = 30
[store]
directory = {path}
[daemon]
load_module = no
status_seconds = 1
"""


def is_stuck(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] == "D"
    except FileNotFoundError:
        return False


def guest(t):
    os.makedirs("/mnt/frozen")
    os.makedirs("/mnt/layers")
    t.run("modprobe", "fuse")
    # what hangs there is meant to
    with open("/proc/sys/kernel/hung_task_timeout_secs", "w", encoding="ascii") as file:
        file.write("0")
    server = t.start(f"{TOP}/workload/frozen_fuse", "/mnt/frozen", PROGRAM)
    t.equal(server.stdout.readline().strip(), "ready", "the server is there")
    t.run("sh", "-c", "cat /mnt/frozen/program >/dev/null")
    bare = t.start("/mnt/frozen/program", str(DEPTH), "600")
    layered = t.start("unshare", "--mount", "--user", "--map-root-user", "sh", "-c", LAYERED)
    other = t.start(PROGRAM, str(DEPTH), "600")
    t.until(lambda: all(os.path.exists(f"/proc/{p.pid}/comm") and
                        open(f"/proc/{p.pid}/comm", encoding="ascii").read().strip() == "program"
                        for p in (bare, layered)), 60, "programs of the server")
    time.sleep(1)
    os.kill(server.pid, signal.SIGUSR1)

    began = time.monotonic()
    record = t.start(f"{TOP}/bin/stacktap", "record", "-a", "-F", "199", "--duration", "8", "-o",
                     t.path("frozen.otlp"))
    out, err = t.end_of(record, 2 * PATIENCE)
    took = time.monotonic() - began
    t.ok(took < 100, f"record --duration 8 is back after {took:.1f} s")
    t.ok(record.returncode == 0, "record comes to its end", out + err)
    t.ok("is left alone" in err, "and says what it left alone", err)

    config = t.path("stacktap.conf")
    os.makedirs("/tmp/store")
    with open(config, "w", encoding="ascii") as file:
        file.write(CONFIG.format(path="/tmp/store"))
    daemon = t.start(f"{TOP}/bin/stacktapd", "--config", config)

    def status():
        try:
            with open("/run/stacktap/status.json", encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    t.until(lambda: status().get("opener", {}).get("timeouts", 0) > 0, PATIENCE,
            "the status of a helper that was given up")
    # the kernel keeps whoever walks there: that is what the daemon must not be
    opener = status()["opener"]
    t.note(f"opener: {opener}")
    t.ok(opener["abandoned"] >= 1, "it cannot be killed and is abandoned", str(opener))
    t.ok(opener["last_quarantined"], "what it was asked for is named", str(opener))
    before = status()["windows"]["samples"]
    t.until(lambda: status()["windows"]["samples"] > before + 100, PATIENCE, "more samples")
    t.equal(status()["windows"]["lost"], 0, "none is lost")
    t.ok(not is_stuck(daemon.pid), "the daemon itself does not hang")
    out, err = t.stop(daemon)
    t.ok(daemon.returncode == 0, "and ends when it is told to", out + err)

    os.kill(server.pid, signal.SIGKILL)
    for child in (bare, layered, other):
        child.kill()


def host(t):
    import model
    profile = t.load("frozen.otlp")
    named = [s for s in model.of_process(profile, "deep_static") if "bottom" in s.names]
    total = sum(s.count for s in model.of_process(profile, "deep_static"))
    t.ok(total > 50 and sum(s.count for s in named) >= 0.75 * total,
         f"programs of other file systems have their names: {len(named)} stacks of {total} samples")
    frozen = [s for s in model.of_process(profile, "program") if s.stack[0].frame_type == "native"]
    t.ok(sum(s.count for s in frozen) > 50, "the server's own are sampled as before")
    t.ok(not any("bottom" in s.names for s in frozen), "and have no names that nobody can have read")

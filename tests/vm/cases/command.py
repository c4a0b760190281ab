# SPDX-License-Identifier: Apache-2.0
"""record -- COMMAND: the command and what it forks, nothing else; exit codes; the ways to end."""

import glob
import json
import os
import re
import signal
import time

SCRIPT = ("for i in 1 2 3; do /opt/stacktap/workload/deep 5 1; done; "
          "(/opt/stacktap/workload/deep 5 1 & wait); exit 7")


def formats(t):
    """What -o becomes by how it ends."""
    for name, word in (("x.html", "<!DOCTYPE html>"), ("x.svg", "<svg"), ("x.folded", ";bottom ")):
        result = t.stacktap("record", "-F", 499, "-o", f"/tmp/{name}", "--", "/opt/stacktap/workload/deep", 5, 1)
        with open(f"/tmp/{name}", encoding="utf-8") as f:
            t.ok(word in f.read() and f"/tmp/{name}: " in result.stderr, f"record -o {name}", result.stderr)
    t.equal(glob.glob("/tmp/x.*otlp*"), [], "no recording is left beside it")
    os.mkdir("/tmp/y.html.partial")
    result = t.stacktap("record", "-F", 499, "-o", "/tmp/y.html", "--", "/opt/stacktap/workload/deep", 5, 1,
                        check=False)
    kept = glob.glob("/tmp/y.html.*.otlp")
    t.ok(result.returncode == 1 and len(kept) == 1 and f"what was recorded is in {kept[0]}" in result.stderr,
         "a recording that cannot become a flame graph stays", result.stderr)
    t.ok(kept and "bottom" in t.stacktap("report", *kept).stdout, "and is one", kept)


def guest(t):
    stranger = t.start("/opt/stacktap/workload/zero_reader", 3600)
    result = t.stacktap("record", "-F", 499, "-o", t.path("command.otlp"), "--", "sh", "-c", SCRIPT,
                        check=False)
    t.equal(result.returncode, 7, "record ends with the command's exit code")
    t.ok(re.search(r"^\[ stacktap record: Captured \d+ samples, \d+ lost, wrote \d+\.\d{3} MB \S+ \]$",
                   result.stderr, re.M), "closing line", result.stderr)

    result = t.stacktap("record", "-o", "/tmp/k.otlp", "--", "sh", "-c", "kill -9 $$", check=False)
    t.equal(result.returncode, 128 + 9, "128 + the signal that ended the command")
    result = t.stacktap("record", "-o", "/tmp/n.otlp", "--", "/no/such/program", check=False)
    t.ok(result.returncode == 1 and "/no/such/program" in result.stderr,
         "a command that is not there is named", result.stderr)
    # a variable that the program removes for itself is among them
    t.run("sh", "-c", "export DEBUGINFOD_URLS=https://debuginfod.example STRANGE='a b=c'; "
          "env -0 | sort -z >/tmp/environment; /opt/stacktap/bin/stacktap record -q -o /tmp/e.otlp "
          "-- env -0 | sort -z >/tmp/environment.command")
    result = t.run("cmp", "/tmp/environment", "/tmp/environment.command", check=False)
    t.equal(result.returncode, 0, "the command has its caller's environment")
    start = time.monotonic()
    result = t.stacktap("record", "-o", "/tmp/d.otlp", "--duration", 2, "--", "sleep", 600,
                        check=False)
    t.ok(result.returncode == 0 and time.monotonic() - start < 300,
         "the time is over before the command is", result.stderr)
    t.ok(t.run("pgrep", "-x", "sleep", check=False).returncode != 0, "which is ended then")

    result = t.stacktap("record", "-o", "/tmp/s.otlp", "--", "/opt/stacktap/workload/sparse", 3, check=False)
    t.ok(re.search(r"unwind table is too large, .*: 1; the last: /opt/stacktap/workload/sparse: the table is too "
                   r"large \]$", result.stderr, re.M), "a file without a table is named", result.stderr)
    formats(t)
    target = t.start("/opt/stacktap/workload/deep", 5, 3)
    start = time.monotonic()
    result = t.stacktap("record", "-p", target.pid, "-o", "/tmp/p.otlp", "--duration", 300,
                        check=False, timeout=900)
    t.ok(result.returncode == 0 and time.monotonic() - start < 300,
         "record ends with its last target", result.stderr)
    t.end_of(target)
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "--no-kernel-addresses",
                     "--service-name", "shop", "--resource-attributes", "team=a%20b", "--command-line", "-o", t.path("all.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30, "sampling")
    time.sleep(2)
    out, err = t.stop(record, signal.SIGINT)
    t.ok(record.returncode == 0 and "Captured" in err, "Ctrl-C ends with 0 and the closing line",
         out + err)
    result = t.run("sh", "-c", "/opt/stacktap/bin/stacktap record -q --duration 2 -o - >/tmp/o.otlp")
    t.equal(result.stderr, "", "-q says nothing")
    report = t.stacktap("report", "/tmp/o.otlp")
    t.ok("zero_reader" in report.stdout, "standard output is a profile", report.stdout)
    with open(t.path("pids.json"), "w", encoding="ascii") as f:
        json.dump({"stranger": stranger.pid}, f)
    t.stop(stranger)


def kernel_frames(samples):
    return [frame for s in samples for frame in s.stack if frame.frame_type == "kernel"]


def host(t):
    with open(f"{t.dir}/pids.json", encoding="ascii") as f:
        stranger = json.load(f)["stranger"]
    samples = t.load("command.otlp")
    names = {s.process.executable for s in samples}
    pids = {s.process.pid for s in samples if s.process.executable == "deep"}
    t.ok(stranger not in {s.process.pid for s in samples}, "no stranger in the command's profile")
    t.ok("zero_reader" not in names, f"only the command's programs ({sorted(map(str, names))})")
    t.equal(len(pids), 4, "all four children are there, the grandchild included")
    everything = t.load("all.otlp")
    t.ok(stranger in {s.process.pid for s in everything}, "-a has the stranger")
    t.ok(any(frame.address for frame in kernel_frames(samples)), "frames of the kernel have addresses")
    resources = [dict(s.process.attributes) for s in everything]
    t.ok(all(r.get("service.name") == "shop" and r.get("team") == "a b" for r in resources),
         f"each resource has the name and the attributes that were given ({len(resources)} samples)")
    lines = {r.get("process.command_line") for r in resources if r.get("process.pid") == stranger}
    t.ok(any(line and line.startswith("/opt/stacktap/workload/") for line in lines), f"--command-line has them ({lines})")
    hidden = kernel_frames(everything)
    t.ok(hidden and all(frame.function and not frame.address for frame in hidden),
         f"with --no-kernel-addresses names alone ({len(hidden)})")

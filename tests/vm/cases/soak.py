# SPDX-License-Identifier: Apache-2.0
"""stacktap-soak, for 20 seconds: it finds nothing wrong, says so in figures, puts back what it touched, also
when it is told to end, and notices what is wrong. Lane latency runs it on kernels that have its tracers of latency."""

import os
import re
import signal
import time

from kit import read, write

# as hotplug and lifecycle, whose boot it shares
SMP = 3
# with tracers, on a busy host
TIMEOUT = 600

SOAK = "/opt/stacktap/bin/stacktap-soak"
TRACING = "/sys/kernel/tracing"


def online(t):
    with open("/sys/devices/system/cpu/online", encoding="ascii") as f:
        return f.read().strip()


def clean(t, when):
    t.equal(online(t), f"0-{SMP - 1}", f"{when}, all CPUs are online")
    t.ok(t.comes_to(lambda: not t.json("status")["sessions"], 10), f"{when}, no session is left")
    t.equal([name for name in os.listdir("/tmp") if name.startswith("stacktap-soak.")], [],
            f"{when}, nor a file")


def figure(report, pattern):
    match = re.search(pattern, report)
    return int(match[1]) if match else -1


def whole(t):
    result = t.run(SOAK, "--duration", 20, "--max-rate", 999, "--report", "/tmp/page", timeout=240, check=False)
    report = result.stdout
    t.note(report)
    t.ok(result.returncode == 0 and "verdict: nothing was wrong" in report, "nothing is wrong",
         report + result.stderr)
    t.ok(report.count("\n") < 40, "the report is a page")
    with open("/tmp/page", encoding="utf-8") as f:
        t.equal(f.read(), report, "which is in the file, too")
    t.ok(figure(report, r"sessions +(\d+) ended well") >= 1, "sessions came and went")
    t.ok(figure(report, r"(\d+) changes of the rate") >= 1, "rates went up and down")
    t.ok(figure(report, r"hotplug +(\d+) times") >= 1, "CPUs went and came")
    t.ok(figure(report, r"overflows +(\d+):") > 200, "samples were taken")
    t.ok(re.search(r"own time +\d*[1-9]\d*\.\d+ %|own time +0\.\d*[1-9]", report), "their time is told")
    clean(t, "afterwards")
    if has_tracer(t, "timerlat"):
        for when in ("before", "sampling"):
            t.ok(re.search(rf"{when}: +timerlat, [1-9]\d* wake-ups: [1-9]\d* us at most; <", report),
                 f"latency, {when}, by timerlat")
        by_irqsoff(t)
        t.equal(os.listdir(f"{TRACING}/instances"), [], "no instance of a tracer is left")


def has_tracer(t, name):
    if not os.path.exists(f"{TRACING}/trace"):
        t.run("mount", "-t", "tracefs", "tracefs", TRACING)
    return name in read(f"{TRACING}/available_tracers").split()


def by_irqsoff(t):
    """The next best one: the kernel has one of osnoise and timerlat at a time. That one slows an emulated CPU down by so
    much that soak does without its sessions."""
    write(f"{TRACING}/osnoise/runtime_us", 1000)
    write(f"{TRACING}/current_tracer", "osnoise")
    said = t.run("bash", "-c", f'. {SOAK}; latency_begin 2; sleep 2; latency_end; echo "$latency_said"').stdout
    write(f"{TRACING}/current_tracer", "nop")
    t.ok(re.fullmatch(r"irqsoff: [1-9]\d* us at most\n", said), "latency by irqsoff", said)


def told_to_end(t):
    soak = t.start(SOAK, "--duration", "1h", "--max-rate", 99, "--no-load", start_new_session=True)
    # with a tracer it looks for a minute how late all is without one
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 100, "a session")
    time.sleep(1)
    # as a terminal does
    os.killpg(soak.pid, signal.SIGINT)
    out, err = t.end_of(soak, 60)
    t.ok(soak.returncode == 2 and "verdict: ended before its time; nothing was wrong" in out,
         "Ctrl-C ends it with a report", f"{soak.returncode}\n{out}{err}")
    clean(t, "after Ctrl-C")
    if has_tracer(t, "timerlat"):
        t.equal(os.listdir(f"{TRACING}/instances"), [], "no tracer either")


def wrong(t):
    soak = t.start(SOAK, "--duration", "1h", "--max-rate", 99, "--no-hotplug", "--no-load", "--no-latency")
    running = t.until(lambda: [s for s in t.json("status")["sessions"] if s["state"] == "running"], 40, "a session")
    os.kill(running[0]["owner"]["pid"], signal.SIGKILL)
    time.sleep(1)
    out, err = t.stop(soak, signal.SIGTERM, 60)
    t.ok(soak.returncode == 1 and re.search(r"verdict: .* wrong\n  - record .* ended by itself \(137\)", out),
         "a session that ends by itself is noticed", f"{soak.returncode}\n{out}{err}")
    clean(t, "after SIGTERM")


def guest(t):
    whole(t)
    told_to_end(t)
    wrong(t)

# SPDX-License-Identifier: Apache-2.0
"""stacktap-soak, for 20 seconds: it finds nothing wrong, says so in figures, puts back what it touched, also
when it is told to end, and notices what is wrong."""

import os
import re
import signal
import time

# as hotplug and lifecycle, whose boot it shares
SMP = 3

SOAK = "/opt/stacktap/bin/stacktap-soak"


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


def told_to_end(t):
    soak = t.start(SOAK, "--duration", "1h", "--max-rate", 99, "--no-load", start_new_session=True)
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 40, "a session")
    time.sleep(1)
    # as a terminal does
    os.killpg(soak.pid, signal.SIGINT)
    out, err = t.end_of(soak, 60)
    t.ok(soak.returncode == 2 and "verdict: ended before its time; nothing was wrong" in out,
         "Ctrl-C ends it with a report", f"{soak.returncode}\n{out}{err}")
    clean(t, "after Ctrl-C")


def wrong(t):
    soak = t.start(SOAK, "--duration", "1h", "--max-rate", 99, "--no-hotplug", "--no-load")
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

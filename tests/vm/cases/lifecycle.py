# SPDX-License-Identifier: Apache-2.0
"""kill -9, rmmod while in use, a hundred loads: the host stays clean."""

import os
import signal
import time


def running(t):
    return [s for s in t.json("status")["sessions"] if s["state"] == "running"]


def guest(t):
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 199, "-o", "/tmp/x.otlp")
    t.until(lambda: running(t), 30, "sampling")
    result = t.run("rmmod", "stacktap", check=False)
    t.ok(result.returncode != 0 and "in use" in result.stderr, "rmmod is refused while in use",
         result.stderr)
    record.send_signal(signal.SIGKILL)
    record.wait(30)
    t.until(lambda: not t.json("status")["sessions"], 10, "the session of the killed owner to end")
    t.ok(True, "kill -9 of the owner ends its session")
    t.run("rmmod", "stacktap")
    for _ in range(100):
        t.run("insmod", "/opt/stacktap/stacktap.ko")
        t.run("rmmod", "stacktap")
    t.ok(not os.path.exists("/dev/stacktap"), "100 loads and unloads leave nothing behind")
    t.insmod()
    for number in range(10):
        record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 499, "-o",
                         "/tmp/x.otlp")
        time.sleep(0.2 + 0.07 * number)
        record.send_signal(signal.SIGKILL)
        record.wait(30)
    t.until(lambda: not t.json("status")["sessions"], 10, "the last session to end")
    t.ok(True, "ten owners killed at various points leave no session")

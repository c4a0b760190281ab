# SPDX-License-Identifier: Apache-2.0
"""A parser that does not answer costs a window the names that it has not found in time, and the next ones nothing."""

import contextlib
import json
import os
import signal
import time

STORE = "/tmp/late"
PROGRAM = "/tmp/late_program"
PROGRAMS = 6
WAIT = 2
WINDOWS = 3     # without a name put off in which all have those that they will have
CONFIG = f"""[profile]
rate = 199
window_seconds = 1
window_max_seconds = 1
budget_ns = 0
[symbols]
wait_seconds = {WAIT}
[store]
directory = {STORE}
[daemon]
load_module = no
status_seconds = 1
"""


def status(group, name):
    try:
        with open("/run/stacktap/status.json", encoding="utf-8") as file:
            return json.load(file).get(group, {}).get(name, 0)
    except FileNotFoundError:
        return 0


def parsers():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                if file.read().strip() == "stacktap-parser":
                    found.append(int(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Settled:
    """
    Has no name been put off in so many windows that were closed since? Those that were waiting for names have the frames that
    were put off: nobody looks them up again, nor counts them, in these.
    """

    def __init__(self):
        self.put_off = self.closed = None

    def __call__(self):
        put_off = status("symbolizer", "put_off")
        if put_off != self.put_off:
            self.put_off, self.closed = put_off, status("windows", "windows")
        return status("windows", "payloads") >= self.closed + WINDOWS


def guest(t):
    os.makedirs(STORE)
    # each of another content than any that has been read
    for i in range(PROGRAMS):
        t.run("sh", "-c", f"cp /opt/stacktap/workload/deep_static {PROGRAM}{i} && echo {i} >>{PROGRAM}{i}")
    config = t.path("stacktap.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write(CONFIG)
    daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", config)
    t.until(lambda: status("windows", "samples") > 0 and parsers(), 60, "a window, and a parser")
    before = status("symbolizer", "windows_late")
    # it is replaced when it has not answered, and the next one does not either. Twice in a file, and that is set apart for good:
    # however long it takes to hear of the window, so few parsers leave one that is not
    programs = [t.start(f"{PROGRAM}{i}", "12", "600") for i in range(PROGRAMS)]
    stopped = set()

    def is_late():
        for pid in parsers():
            if len(stopped) < 2 * PROGRAMS - 1:
                stopped.add(pid)
                send(pid, signal.SIGSTOP)
        time.sleep(0.1)
        return status("symbolizer", "windows_late") > before

    t.ok(t.comes_to(is_late, 60), "a window leaves without the names that nobody has found")
    t.ok(status("symbolizer", "late") > 0, f"frames of it are counted: {status('symbolizer', 'late')}")
    for pid in parsers():
        send(pid, signal.SIGCONT)
    # names of what came too late are the first of the next windows, however long a busy host takes for these
    t.comes_to(Settled(), 60)
    out, err = t.stop(daemon)
    t.ok(daemon.returncode == 0, "the daemon ends well", out + err)
    for program in programs:
        program.kill()
    with open(t.path("store.otlp"), "wb") as to:
        for name in sorted(os.listdir(STORE)):
            if name.endswith(".otlp"):
                with open(f"{STORE}/{name}", "rb") as file:
                    to.write(file.read())


def host(t):
    import model
    samples = [s for s in t.load("store.otlp") if s.process.executable.startswith("late_program") and s.stack and s.stack[0].frame_type == "native"]
    late = [s for s in samples if any(dict(frame.location_attributes).get("stacktap.unnamed") == "late" for frame in s.stack)]
    t.ok(late, f"{sum(s.count for s in late)} samples say that names came too late")
    # its stacks have most of their frames in common, so a frame that is not looked up again is in each later window
    last = {s.process.executable: s.payload for s in sorted(late, key=lambda s: s.payload)}
    named = {s.process.executable for s in samples
             if s.payload > last.get(s.process.executable, s.payload) and {"bottom", "descend", "main"} <= set(s.names)}
    t.ok(len(named) > len(last) / 2, f"{len(named)} of {len(last)} programs whose names came too late have them in later windows")

# SPDX-License-Identifier: Apache-2.0
"""What VM cases are written with.

A case is a module in cases/ with a docstring, `guest(t)` that runs in the guest as root, and
optionally `host(t)` that looks at what the guest left in t.dir, and `before(t)` that starts what the
guest talks to. Module constants say which guest it wants: ARCHES, SMP, MEM, NET, APPEND,
BOOT_OPTIONS, ALONE = True (a boot of its own; a name: one with the others of that name),
LOAD = False (the module is not loaded around it), RANDOM_ADDRESSES = True (also where the guest has them off), TIMEOUT (seconds for its guest half),
LANE (only run by this lane, see tests.mk).
"""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

OPT = "/opt/stacktap"
USER = 991
KMEMLEAK = "/sys/kernel/debug/kmemleak"
# waiting costs nothing where it succeeds; a kernel that checks everything takes its time
RANDOMIZE = "/proc/sys/kernel/randomize_va_space"
PATIENCE = 10 if "debug" in os.uname().release else 3
Wish = collections.namedtuple("Wish", "smp mem net append boot_options alone timeout")


def settings(case):
    options = tuple(getattr(case, "BOOT_OPTIONS", ()))
    # who counts instructions has all files in memory, each in pages of its own
    mem = getattr(case, "MEM", 3072 if "--icount" in options else 1024)
    return Wish(getattr(case, "SMP", 2), mem, getattr(case, "NET", False),
                tuple(getattr(case, "APPEND", ())), options,
                case.__name__ if getattr(case, "ALONE", False) is True else getattr(case, "ALONE", "") or "",
                getattr(case, "BOOT_TIMEOUT", 1800))


def read(path):
    """What one of the kernel's files says, /proc/sys/… for one."""
    with open(path, encoding="ascii") as f:
        return f.read().strip()


def write(path, value):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(value))


class Host:
    """The host's half of a case."""

    def __init__(self, name, arch, share, top, output):
        self.name, self.arch, self.top, self.output = name, arch, top, output
        self.dir = os.path.join(share, name)
        self.results = []
        self.children = []
        os.makedirs(self.dir, exist_ok=True)

    def ok(self, condition, text):
        self.results.append((bool(condition), text))
        return bool(condition)

    def equal(self, have, want, text):
        return self.ok(have == want, text if have == want else f"{text}: {have!r}, not {want!r}")

    def load(self, filename):
        """An OTLP file of this case as tests/otlp/model.py shows it."""
        import model  # tests/otlp, only needed by cases that load files
        return model.load(os.path.join(self.dir, filename))

    def start(self, command, **options):
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
        self.children.append(child)
        return child

    def cleanup(self):
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(10)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()


class Guest:
    """The guest's half of a case."""

    def __init__(self, name):
        self.name = name
        self.arch = {"aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
        self.dir = os.path.join("/share", name)
        os.makedirs(self.dir, exist_ok=True)
        self.file = open(os.path.join(self.dir, "results.jsonl"), "w", encoding="utf-8")
        self.failed = 0
        self.children = []

    def write(self, **fields):
        self.file.write(json.dumps({"at": round(time.monotonic(), 1), **fields}) + "\n")
        self.file.flush()

    def ok(self, condition, text, note=""):
        """One assertion: @text says what holds when it passes."""
        condition = bool(condition)
        self.failed += not condition
        self.write(ok=condition, text=text, note=str(note)[-6000:] if not condition else "")
        print(f"{'ok' if condition else 'NOT OK'}: {self.name}: {text}", flush=True)
        return condition

    def equal(self, have, want, text):
        return self.ok(have == want, text if have == want else f"{text}: {have!r}, not {want!r}")

    def near(self, have, want, tolerance, text):
        return self.ok(abs(have - want) <= tolerance, f"{text}: {have:g}, wanted {want:g} +- {tolerance:g}")

    def skip(self, text, reason):
        self.write(ok=True, text=text, skip=reason)

    def note(self, text):
        """For the reader of a run's log; always shown."""
        self.write(note=text)
        print(text, flush=True)

    def path(self, filename):
        return os.path.join(self.dir, filename)

    def run(self, *command, timeout=120, check=True, **options):
        """Run to the end, output captured as text; failing is a failed case unless check=False."""
        options.setdefault("stdin", subprocess.DEVNULL)
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                                timeout=timeout * PATIENCE, check=False, errors="replace", **options)
        if check and result.returncode:
            raise AssertionError(f"{' '.join(map(str, command))}: exit {result.returncode}\n"
                                 f"{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
        return result

    def stacktap(self, *arguments, **options):
        return self.run(f"{OPT}/bin/stacktap", *arguments, **options)

    def json(self, *arguments):
        return json.loads(self.stacktap(*arguments, "--json").stdout)

    def start(self, *command, **options):
        """A background program, ended with the case."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen([str(part) for part in command], text=True, **options)
        self.children.append(child)
        return child

    def record(self, filename, *options):
        """`stacktap record` in the background, from the moment it samples: (child, session's id)."""
        known = {s["id"] for s in self.json("status")["sessions"]}
        child = self.start(f"{OPT}/bin/stacktap", "record", *options, "-o", self.path(filename))
        found = self.until(lambda: [s["id"] for s in self.json("status")["sessions"]
                                    if s["id"] not in known and s["state"] == "running"],
                           30, "sampling")
        return child, found[0]

    def counts(self, session):
        """What the module counted in a session, per CPU and source."""
        return [{"cpu": cpu["cpu"], **counts} for s in self.json("status")["sessions"]
                if s["id"] == session for cpu in s["cpus"] for counts in cpu["counts"]]

    def accounts(self, child, session):
        """End what record() began and settle: no overflow without a fate, none that the reader
        does not know of. Returns the counts."""
        self.stacktap("stop", session)
        counts = self.counts(session)
        lost = sum(sum(c["lost"].values()) for c in counts)
        wrong = [c for c in counts
                 if c["calls"] != c["recorded"] + c["filtered"] + sum(c["lost"].values())]
        self.ok(counts and not wrong, "calls = recorded + filtered + lost", wrong)
        out, err = self.stop(child, signal.SIGINT)
        told = re.search(r"Captured (\d+) samples, (\d+) lost", err)
        self.ok(child.returncode == 0 and told, "record ends well", out + err)
        self.equal(told and (int(told[1]), int(told[2])), (sum(c["recorded"] for c in counts), lost),
                   "the reader got what was recorded and knows what was lost")
        return counts

    def listen(self, path, *options):
        """`stacktap events` into the file at @path, which has something from before this returns: what happens
        from then on is told. Not into a pipe, which takes no more than it has room for while nobody reads."""
        with open(path, "w", encoding="ascii") as f:
            child = self.start(f"{OPT}/bin/stacktap", "events", *options, stdout=f)

        def hears():
            # a session that comes and goes
            os.close(os.open("/dev/stacktap", os.O_RDWR))
            return os.path.getsize(path) or child.poll() is not None
        self.until(hears, 30, "events of a session")
        return child

    def heard(self, child, path):
        """End what listen() began. Returns the lines."""
        _, err = self.stop(child)
        self.ok(child.returncode == 0 and not err, "events end well and miss none", err)
        return read(path).splitlines()

    def stop(self, child, how=signal.SIGTERM, timeout=60):
        """Signal, wait, and hand back (stdout, stderr)."""
        if child.poll() is None:
            child.send_signal(how)
        return self.end_of(child, timeout)

    def wait(self, child, seconds=60):
        """The exit status of what ends by itself."""
        return child.wait(seconds * PATIENCE)

    def end_of(self, child, seconds=60):
        """(stdout, stderr) of what ends by itself."""
        return child.communicate(timeout=seconds * PATIENCE)

    def until(self, condition, seconds=30, what="a condition"):
        """Wait for it; @seconds are those of a guest that has its CPUs for itself."""
        deadline = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{what}: not within {seconds} s")

    def comes_to(self, condition, seconds=30):
        """Whether it does; what until() waits for, of which an assertion is to be made."""
        try:
            return self.until(condition, seconds)
        except AssertionError:
            return False

    def load_module(self, path, *parameters):
        """Without a budget and a ceiling, and what keeps the PMU's interrupts from walking for long, none of which
        suits an emulated CPU, unless @parameters name them."""
        self.run("insmod", path, "handler_budget_ns=0", "ceiling_permille=0", "in_place_ns=1000000", *parameters)

    def insmod(self, *parameters):
        self.load_module(f"{OPT}/stacktap.ko", *parameters)
        self.until(lambda: os.path.exists("/dev/stacktap"), 30, "/dev/stacktap")

    def rmmod(self):
        self.run("rmmod", "stacktap")

    def loaded(self):
        with open("/proc/modules", encoding="ascii") as f:
            return any(line.startswith("stacktap ") for line in f)

    def cleanup(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()


COMPLAINT = re.compile(r"WARNING:|BUG:|Oops|possible circular|possible recursive|stall|lockup|LOCKUP|"
                       r"Call Trace:|Call trace:|scheduling while atomic|general protection")


def dmesg():
    return subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace",
                          check=False).stdout


def run_case(name):
    """In the guest: one case with the module loaded around it; the kernel must stay silent."""
    import importlib
    import traceback
    case = importlib.import_module(f"cases.{name}")
    t = Guest(name)
    before = len(dmesg())
    started = time.monotonic()
    signal.alarm(getattr(case, "TIMEOUT", 300) * PATIENCE)
    randomizes = read(RANDOMIZE)
    try:
        if getattr(case, "RANDOM_ADDRESSES", False):
            write(RANDOMIZE, 2)
        if getattr(case, "LOAD", True):
            t.insmod()
        case.guest(t)
    except Exception:  # whatever it was, the next case still runs
        t.ok(False, "ran to its end", traceback.format_exc())
    finally:
        signal.alarm(0)
        t.cleanup()
        write(RANDOMIZE, randomizes)
    if getattr(case, "LOAD", True):
        result = None
        for _ in range(100):
            result = t.run("rmmod", "stacktap", check=False)
            if not result.returncode:
                break
            time.sleep(0.05)
        t.ok(not result.returncode, "the module unloads afterwards", result.stderr)
    said = [line for line in dmesg()[before:].splitlines() if COMPLAINT.search(line)]
    # the first of them in the assertion's own line, which is all that a summary has of it
    t.ok(not said, f"the kernel does not complain{': ' + said[0] if said else ''}", "\n".join(said[:20]))
    seconds = time.monotonic() - started
    t.write(done=True, seconds=seconds)
    print(f"{name}: {t.failed} failed, {seconds:.1f} s", flush=True)


def kmemleak(*commands):
    with open(KMEMLEAK, "w", encoding="ascii") as f:
        for command in commands:
            f.write(command)
            f.flush()


def report_leaks():
    """On a kernel that looks for leaks: what was lost since main() began. The kernel's own line about
    it fails the boot."""
    time.sleep(6)  # younger objects are not judged
    kmemleak("scan", "scan")
    with open(KMEMLEAK, encoding="ascii", errors="replace") as f:
        print(f.read(), flush=True)


def timed_out(_signal, _frame):
    raise AssertionError("the case ran out of time")


def have_user(there):
    """The user that stacktapd becomes, as installing it makes one."""
    for path, line in (("/etc/passwd", f"stacktap:x:{USER}:{USER}::/:/usr/sbin/nologin\n"),
                       ("/etc/group", f"stacktap:x:{USER}:\n")):
        with open(path, encoding="ascii") as f:
            lines = [other for other in f if not other.startswith("stacktap:")]
        with open(path, "w", encoding="ascii") as f:
            f.writelines(lines + [line] if there else lines)


def main(names):
    have_user(True)
    signal.signal(signal.SIGALRM, timed_out)
    subprocess.run(["mount", "-t", "debugfs", "none", "/sys/kernel/debug"], check=False,
                   stderr=subprocess.DEVNULL)
    finds_leaks = os.path.exists(KMEMLEAK)
    if finds_leaks:
        kmemleak("scan=off", "scan", "clear")
    for name in names:
        run_case(name)
    if finds_leaks:
        report_leaks()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

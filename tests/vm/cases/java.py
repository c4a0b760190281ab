# SPDX-License-Identifier: Apache-2.0
"""Java's compiled code has no frame pointers and no call frame information: a stack that counts as complete has its seven known
calls, all others say that they were guessed, or where they broke off. With -XX:+PreserveFramePointer they have them as well."""

import glob
import os
import re
import shutil
import signal
import socket

LANE = "runtimes"
MEM = 2048
SMP = 2
TIMEOUT = 900
HOME = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("java") or "/nowhere/bin/java")))
# where a JRE of Debian's has its configuration
SETTINGS = glob.glob("/etc/java-*-openjdk")
BOOT_OPTIONS = ("--ro", f"{HOME}:/opt/java", *(word for place in SETTINGS for word in ("--ro", f"{place}:{place}")))
CALLS = ("seventh", "sixth", "fifth", "fourth", "third", "second", "first")
RUNS = (("plain", ()), ("pointers", ("-XX:+PreserveFramePointer",)))
# so that emulated CPUs come to the last compiler, and no call is inlined
HURRY = ("-XX:CompileThresholdScaling=0.02", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Seven.*")
ENOUGH = 200


def write_map(t, pid):
    """Its perf map, as jcmd has it written: a file and a signal open the socket."""
    path, attach = f"/tmp/.java_pid{pid}", f"/tmp/.attach_pid{pid}"
    if not os.path.exists(path):
        with open(attach, "w", encoding="ascii"):
            os.kill(pid, signal.SIGQUIT)
        t.until(lambda: os.path.exists(path), 60, "java's socket")
        os.unlink(attach)
    with socket.socket(socket.AF_UNIX) as java:
        java.connect(path)
        java.sendall(b"1\0jcmd\0Compiler.perfmap\0\0\0")
        with java.makefile("rb") as said:
            return said.read()


def guest(t):
    for name, options in RUNS:
        java = t.start("/opt/java/bin/java", *HURRY, *options, "/tests/vm/workload/Seven.java", 600)
        t.equal(java.stdout.readline().strip(), "ready", f"{name}: it runs")
        t.until(lambda: spent(java.pid) > 20, 120, "its compilers")
        record, session = t.record(f"{name}.otlp", "-p", java.pid, "-F", 199, "--call-graph", "table")
        t.until(lambda: sum(c["recorded"] for c in t.counts(session)) > 9 * ENOUGH, 120, "samples")
        # of what is compiled by now
        t.ok(write_map(t, java.pid).startswith(b"0\n"), f"{name}: java has written its map")
        out, err = t.stop(record, 2)
        t.ok(record.returncode == 0, f"{name}: record ends well", out + err)
        t.stop(java, signal.SIGKILL)


def spent(pid):
    """CPU seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def end_of(sample):
    return sample.attribute("stacktap.user_stack.end", "complete")


def method(name):
    """Of the class, as a perf map has it."""
    found = re.search(r"Seven(?:::|\.|;::)(\w+)", name or "")
    return found and found[1]


def host(t):
    import model
    for name, _ in RUNS:
        samples = [(tuple(method(f.function) for f in s.stack if f.frame_type != "kernel"), s)
                   for s in model.of_process(t.load(f"{name}.otlp"), "java")]
        samples = [(names, s) for names, s in samples if names and names[0] == "seventh"]
        total = sum(s.count for _, s in samples)
        ends = {}
        for _, s in samples:
            ends[end_of(s)] = ends.get(end_of(s), 0) + s.count
        have = sum(s.count for names, s in samples if names[:len(CALLS)] == CALLS)
        t.ok(total >= ENOUGH, f"{name}: {total} samples in seventh(), {have} with all seven calls; they end {ends}")
        wrong = sum(s.count for names, s in samples if end_of(s) == "complete" and names[:8] != (*CALLS, "run"))
        t.ok(not wrong, f"{name}: of {ends.get('complete', 0)} stacks that count as complete {wrong} lack calls")
        if name == "pointers":
            # an emulated CPU has no time for some, and the map none of what was compiled before
            whole = [(names, s.count) for names, s in samples if end_of(s) == "guessed"]
            count, right = sum(n for _, n in whole), sum(n for names, n in whole if names[:len(CALLS)] == CALLS)
            t.ok(count > ENOUGH / 2 and right >= 0.95 * count, f"{name}: {right} of {count} that were guessed have all seven calls")
        else:
            guessed = total - ends.get("complete", 0)
            t.ok(guessed, f"{name}: {guessed} of {total} do not count as complete")

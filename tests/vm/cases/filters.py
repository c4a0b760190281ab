# SPDX-License-Identifier: Apache-2.0
"""Samples of some threads, users, names and cgroups alone: the module's answers to the smallest
client, then the options of the commands, alone, together and changed live."""

import ctypes
import errno
import os

import kmodtest

LOAD = False
SLICE = "/sys/fs/cgroup/wanted.slice"
GONE = "/sys/fs/cgroup/gone.slice"


def guest(t):
    kmodtest.run(t, "task-filters")
    t.insmod()
    os.makedirs(f"{SLICE}/inner")
    programs = {
        "cgroup": t.start("sh", "-c", f"echo $$ >{SLICE}/inner/cgroup.procs && "
                          "exec /opt/stacktap/workload/deep 5 3000"),
        "user": t.start("/opt/stacktap/workload/deep", 5, 3000, user=1234, group=1234),
        "name": t.start("/opt/stacktap/workload/zero_reader", 3000),
    }
    t.until(lambda: read(f"/proc/{programs['cgroup'].pid}/comm") == "deep", 30, "deep")
    refusals(t)
    # the program in the cgroup, as long as nothing else is asked for
    child, session = t.record("filters.otlp", "-G", "wanted.slice", "-F", 199)
    changes(t, session, programs["name"].pid)
    removed(t, session)
    t.accounts(child, session)
    for program in programs.values():
        t.stop(program)
    with open(t.path("pids"), "w", encoding="ascii") as f:
        f.write(" ".join(str(programs[name].pid) for name in ("cgroup", "user", "name")))
    remove(t, f"{SLICE}/inner")
    remove(t, SLICE)
    t.rmmod()


def changes(t, session, pid):
    path = "/wanted.slice" if has_handles() else None
    cgroups = [{"id": os.stat(SLICE).st_ino, "path": path}]
    shown = shown_filter(t, session)
    t.equal(shown.get("cgroups"), cgroups, "status --json names the cgroup")
    t.ok(shown["bytes"] > 0, f"and the filter's memory ({shown['bytes']})")

    change(t, session, "--comm", "deep, zero_reader",
           filter={"cgroups": cgroups, "comms": ["deep", "zero_reader"]})
    text = t.stacktap("status").stdout
    t.ok(("cgroups /wanted.slice" in text or not path) and "names deep, zero_reader" in text,
         "status names both kinds", text)
    wait_for_more(t, session, "of the cgroup and one of two names")

    change(t, session, "--no-filter", "-u", "1234", filter={"uids": [1234]})
    wait_for_more(t, session, "of the user")

    change(t, session, "-t", pid, filter={"uids": [1234], "tids": [pid]})
    change(t, session, "--no-filter", "-t", pid, "-p", pid, filter={"pids": [pid], "tids": [pid]})
    wait_for_more(t, session, "of the thread and its process")


def removed(t, session):
    """A cgroup that is filtered by has no path any more, also when another has its name."""
    os.mkdir(GONE)
    number = os.stat(GONE).st_ino
    change(t, session, "--no-filter", "-G", GONE,
           filter={"cgroups": [{"id": number, "path": "/gone.slice" if has_handles() else None}]})
    # an open directory keeps its name in the kernel's memory
    held = os.open(GONE, os.O_RDONLY)
    remove(t, GONE)
    gone = [{"id": number, "path": None}]
    t.equal(shown_filter(t, session).get("cgroups"), gone, "a removed cgroup has no path")
    os.mkdir(GONE)
    change(t, session, "--comm", "deep", filter={"cgroups": gone, "comms": ["deep"]})
    text = t.stacktap("status").stdout
    t.ok(f"cgroups {number} (removed" in text, "status says that it is gone", text)
    os.close(held)
    remove(t, GONE)


def remove(t, path):
    """Who was in it may be for a moment longer."""
    def is_gone():
        try:
            os.rmdir(path)
        except OSError as e:
            if e.errno != errno.EBUSY:
                raise
            return False
        return True
    t.until(is_gone, 30, f"the end of {path}")


def has_handles():
    """Can a kernel open files by their handles, so that a cgroup's id has a path?"""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.name_to_handle_at(-1, b"/", None, None, 0)
    return ctypes.get_errno() != errno.ENOSYS


def read(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def shown_filter(t, session):
    return next(s["filter"] for s in t.json("status")["sessions"] if s["id"] == session)


def change(t, session, *options, filter):
    t.stacktap("set", session, *options)
    shown = shown_filter(t, session)
    kinds = {kind: shown[kind] for kind in ("pids", "tids", "uids", "comms", "cgroups") if kind in shown}
    t.equal(kinds, filter, f"set {' '.join(map(str, options))}")


def wait_for_more(t, session, what):
    def recorded():
        return sum(c["recorded"] for c in t.counts(session))
    before = recorded()
    try:
        t.until(lambda: recorded() >= before + 20, 60, what)
    except AssertionError as e:
        t.ok(False, f"samples {what}", e)
    else:
        t.ok(True, f"samples {what}")


def refusals(t):
    def refuse(options, *sentences):
        said = t.stacktap("record", *options, "--duration", "1", "-o", "/dev/null", check=False)
        t.ok(said.returncode and all(s in said.stderr for s in sentences),
             f"record {' '.join(options)} is refused: {said.stderr.strip()}")
    refuse(("-G", "nowhere.slice"), "nowhere.slice")
    refuse(("--comm", "0123456789abcdef"), "0123456789abcde'", "15")
    refuse(("-u", "nosuchuser"), "no user")
    refuse(("-t", "99999999"), "no thread")
    os.makedirs("/tmp/v1", exist_ok=True)
    mounted = t.run("mount", "-t", "cgroup", "-o", "none,name=v1", "v1", "/tmp/v1", check=False)
    if mounted.returncode:
        t.note(f"this kernel has no cgroup v1: {mounted.stderr}")
        return
    refuse(("-G", "/tmp/v1"), "cgroup v1")
    t.run("umount", "/tmp/v1")


def host(t):
    with open(f"{t.dir}/pids", encoding="ascii") as f:
        pids = [int(pid) for pid in f.read().split()]
    samples = t.load("filters.otlp")
    sampled = {s.process.pid for s in samples}
    t.equal(sampled, set(pids), "the file has samples of the three programs and of nothing else")

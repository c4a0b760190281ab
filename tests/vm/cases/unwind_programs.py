# SPDX-License-Identifier: Apache-2.0
"""Stacks of Debian's programs reach the place where their thread began."""

import collections
import json
import os
import re
import subprocess

LANE = "stacks"
TIMEOUT = 600
CPU_SECONDS = 2.5
ENOUGH = 100
# programs get less far in their time there
ENOUGH_DEBUG = 20
# redis-server is another name of redis-check-rdb
EXECUTABLES = {name: name for name in ("openssl", "sqlite3", "git", "xz", "perl", "redis-benchmark",
                                       "cc1")}
EXECUTABLES.update({"python3": r"python3\.\d+", "redis-server": "redis-(server|check-.*)",
                    "as": r".*-linux-gnu-as"})
# an emulated CPU that its host took away in the walk
NOT_OURS = ("time",)
# it runs only if a compilation comes to its end in time
FEW = {"as": 0}
ENTRY_BYTES = 64


def guest(t):
    is_debug = "debug" in os.uname().release
    if is_debug:
        # a walk in which each access is looked at does not end within the usual limit
        t.rmmod()
        t.load_module("/opt/stacktap/stacktap-patient.ko")
        t.until(lambda: os.path.exists("/dev/stacktap"), 30, "/dev/stacktap")
    # the compiler's tables take as long as its first run: their cache on disk is filled before
    os.makedirs("/var/cache/stacktap", exist_ok=True)
    record, session = t.record("first.otlp", "-a", "-F", 49, "--all-user", "--call-graph", "table")
    t.run("python3", "/tests/vm/workload/programs.py", 0.3, timeout=TIMEOUT)
    t.stop(record, 2)
    record, session = t.record("programs.otlp", "-a", "-F", 99, "--all-user",
                               "--call-graph", "table")
    t.run("python3", "/tests/vm/workload/programs.py", CPU_SECONDS, timeout=TIMEOUT)
    t.stacktap("stop", session)
    with open(t.path("status.json"), "w", encoding="ascii") as f:
        json.dump({**t.json("status"), "enough": ENOUGH_DEBUG if is_debug else ENOUGH}, f)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)


class Files:
    """What readelf says of the guest's files: the ranges that nothing called. That is code whose
    return address is said to be undefined, and an entry point of which nothing is said (ld.so's on
    x86)."""

    def __init__(self, root):
        self.root = root
        self.ranges = {}

    def read(self, path):
        run = subprocess.run(["readelf", "--wide", "--file-header", "--debug-dump=frames-interp",
                              f"{self.root}{os.path.realpath(path)}"],
                             capture_output=True, text=True, errors="replace", check=False)
        found, entry, column, undefined = [], None, 0, {}
        for line in run.stdout.splitlines():
            fields = line.split()
            match = re.search(r" FDE (?:.* )?cie=([0-9a-f]+) .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            if match:
                entry = [int(match[2], 16), int(match[3], 16), undefined.get(match[1], False)]
                found.append(entry)
            elif len(fields) > 3 and fields[3] == "CIE":
                # what it says of the return address holds for entries without a row of their own
                entry, cie, column = None, fields[0], 0
            elif fields[:1] == ["LOC"]:
                column = next((i for i, f in enumerate(fields) if f in ("ra", "x30")), 0)
            elif fields and column and len(fields) > column:
                if entry:
                    entry[2] = fields[column] == "u"
                else:
                    undefined[cie] = fields[column] == "u"
        match = re.search(r"Entry point address: +0x([0-9a-f]+)", run.stdout)
        entry = int(match[1], 16) if match else 0
        after = min((start for start, _, _ in found if start > entry), default=0)
        if entry and not any(start <= entry < end for start, end, _ in found):
            found.append((entry, min(after, entry + ENTRY_BYTES), True))
        return [(start, end) for start, end, is_undefined in found if is_undefined]

    def is_root(self, frame):
        """Is the frame in code that nothing called?"""
        if frame.mapping not in self.ranges:
            self.ranges[frame.mapping] = self.read(frame.mapping)
        return any(start <= frame.address < end for start, end in self.ranges[frame.mapping])


def end_of(sample):
    return sample.attribute("stacktap.user_stack.end", "complete")


def user_part(sample):
    return [frame for frame in sample.stack if frame.frame_type != "kernel"]


def judge(t, files, name, samples, enough):
    ends, where, wrong = (collections.Counter() for _ in range(3))
    for sample in samples:
        ends[end_of(sample)] += sample.count
        last = user_part(sample)[-1]
        place = f"{os.path.basename(last.mapping)}+{last.address:#x} {last.function}"
        if end_of(sample) != "complete":
            where[f"{end_of(sample)} at {place}"] += sample.count
        elif not files.is_root(last):
            wrong[place] += sample.count
    count = sum(n for end, n in ends.items() if end not in NOT_OURS)
    rest = ", ".join(f"{n} {end}" for end, n in ends.most_common())
    t.ok(count >= enough, f"{name}: at least {enough} of {sum(ends.values())} samples have tables")
    # of a program that is seen less than a hundred times, one stack
    t.ok(count - ends["complete"] <= max(0.01 * count, 1),
         f"{name}: {ends['complete']} of {count} stacks are whole ({rest})"
         + "".join(f"; {n} {what}" for what, n in where.most_common(5)))
    t.ok(not wrong, f"{name}: they begin where a thread does"
         + "".join(f"; {n} at {what}" for what, n in wrong.most_common(5)))


def host(t):
    files = Files(os.path.join(t.output, "vm", t.arch, "root"))
    samples = [s for s in t.load("programs.otlp") if user_part(s)]
    with open(f"{t.dir}/status.json", encoding="ascii") as f:
        status = json.load(f)
    for name, pattern in EXECUTABLES.items():
        judge(t, files, name, [s for s in samples if re.fullmatch(pattern, s.process.executable)],
              FEW.get(name, status["enough"]))
    counts = [c for s in status["sessions"] for cpu in s["cpus"] for c in cpu["counts"]]
    recorded = sum(c["recorded"] for c in counts)
    for flag in ("moved", "stale"):
        number = sum(c[flag] for c in counts)
        t.ok(number <= 0.05 * recorded,
             f"{number} of {recorded} samples {flag} ({100 * number / max(recorded, 1):.2f} %)")

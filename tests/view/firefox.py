#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `stacktap convert' writes, read by the Firefox Profiler's own importer and call trees, which Mozilla publishes as a
command of their own: its threads, and their functions with their samples, have to be what another decoder finds in the
recording. TAP. Not in CI: it needs npm.

usage: firefox.py STACKTAP DIRECTORY
"""

import collections
import json
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from convert import busy_recording, convert  # noqa: E402
from page import Recording, Tap  # noqa: E402

PACKAGE, VERSION = "firefox-devtools-profiler-cli", "0.10.0"
START_SECONDS = 120


def package(work):
    """Its program, from npm."""
    place = os.path.join(work, "firefox")
    program = os.path.join(place, "package", "dist", "profiler-cli.js")
    if not os.path.exists(program):
        os.makedirs(place, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", f"@firefox-devtools/profiler-cli@{VERSION}"], cwd=place, check=True, stdout=sys.stderr)
        subprocess.run(["tar", "-xzf", f"{PACKAGE}-{VERSION}.tgz"], cwd=place, check=True)
    return program


class Reader:
    """A file that it has opened, in a process of its own that answers until it is told to stop."""

    def __init__(self, program, path, name):
        self.command, self.name = ["node", program], name
        # where it keeps what its processes know of each other
        self.environment = {**os.environ, "HOME": os.path.dirname(program)}
        self.said = self.run("load", path)
        # it gives up half a second after its process began, which on a busy machine is not there yet
        end = time.monotonic() + START_SECONDS
        while "did not become ready" in self.said and time.monotonic() < end and not self.is_open():
            time.sleep(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("stop", self.name)

    def run(self, *command):
        option = "" if command[0] == "stop" else f"--session={self.name}"
        done = subprocess.run([*self.command, *command, *([option] if option else [])], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        return done.stdout + done.stderr

    def is_open(self):
        return self.run("profile", "info", "--json").startswith("{")

    def ask(self, *command):
        return json.loads(self.run(*command, "--json"))


def judge(tap, recording, reader, name):
    threads = reader.ask("thread", "list")["threads"]
    samples = collections.defaultdict(list)
    for sample in recording.samples:
        samples[re.search(r"\((\d+)\)$", sample[1]).group(1)].append(sample[3])
    # of folded stacks it makes one thread
    if name.endswith(".folded"):
        samples = {None: [sample[3] for sample in recording.samples]}
    tap.same(f"{name}: threads", sorted(str(thread["tid"]) for thread in threads) if None not in samples else len(threads),
             sorted(samples) if None not in samples else 1)
    for thread in threads:
        stacks = samples[None if None in samples else str(thread["tid"])]
        totals, selves = collections.Counter(), collections.Counter(stack[0] for stack in stacks)
        for stack in stacks:
            totals.update(set(stack))
        have = collections.defaultdict(list)
        for row in reader.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0", "--include-idle")["functions"]:
            plain = re.sub(r"(_\[[kij]\]|\+0x[0-9a-f]+)$", "", row["name"])
            # perf's text calls what has no symbol so
            have["[no symbol]" if plain == "[unknown]" else plain].append((row["totalSamples"], row["selfSamples"]))
        # which stand below their process in folded stacks
        for process in {sample[2] for sample in recording.samples} if name.endswith(".folded") else ():
            have.pop(process, None)
        tap.same(f"{name}: the {len(totals)} functions of {thread['name']}", (sorted(set(totals) - set(have)), sorted(set(have) - set(totals))), ([], []))
        tap.same(f"{name}: what runs in them", {row: own for row, seen in have.items() if (own := sum(own for _, own in seen))}, dict(selves))
        tap.same(f"{name}: all samples", sum(own for seen in have.values() for _, own in seen), len(stacks))
        # one function that is of two files, or inlined as well, has two rows there, which a stack may have both
        tap.same(f"{name}: and below them", {row: seen for row, seen in have.items() if sum(every for every, _ in seen) != totals[row] and
                                             (len(seen) == 1 or sum(every for every, _ in seen) < totals[row])}, {})


def main():
    stacktap, work = sys.argv[1:]
    tap = Tap()
    source = busy_recording(work)
    program = package(work)
    recording = Recording(source)
    for name in ("busy.firefox.json", "busy.perf", "busy.folded"):
        path = convert(stacktap, source, os.path.join(work, name))
        with Reader(program, path, name.replace(".", "-")) as reader:
            judge(tap, recording, reader, name)
            if not name.endswith(".json"):
                continue
            meta = reader.ask("profile", "meta")
            tap.check("its head is taken over", meta["importedFrom"].startswith("stacktap ") and meta["symbolicated"] and
                      abs(meta["startTime"] - min(moment for moment, *_ in recording.samples) / 1e6) < 1000, meta)
            print(f"# read as version {meta['preprocessedProfileVersion']}")
    with open(os.path.join(work, "busy.firefox.json"), encoding="utf-8") as file:
        text = file.read()
    later = os.path.join(work, "later.firefox.json")
    with open(later, "w", encoding="utf-8") as file:
        file.write(re.sub(r'("preprocessedProfileVersion":)\d+', r"\g<1>9999", text))
    with Reader(program, later, "later") as reader:
        tap.check("it refuses what it does not know", not reader.is_open(), reader.said)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

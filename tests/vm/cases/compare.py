# SPDX-License-Identifier: Apache-2.0
"""stacktap diff of recordings of a program that knows its split: the same split is no difference, another one is found."""

import json
import re

import kit

ARCHES = ("x86_64",)
SECONDS = 6
SAME, OTHER = (0.5, 0.3, 0.2), (0.42, 0.26, 0.32)
RECORDINGS = (("one", SECONDS, SAME), ("two", 2 * SECONDS, SAME), ("other", SECONDS, OTHER))


def guest(t):
    truth = {}
    for name, seconds, split in RECORDINGS:
        done = t.stacktap("record", "-e", "cpu-clock", "-F", 799, "-q", "--lines", "-o", t.path(f"{name}.otlp"), "--",
                          "/opt/stacktap/workload/known_split", seconds * kit.PATIENCE // 3, *split)
        found = json.loads(done.stdout[done.stdout.index("{"):])
        truth[name] = {leaf["name"]: leaf["share"] for leaf in found["functions"]}
    base = t.path("one.otlp")

    same = t.stacktap("diff", "--process", "known_split", "--fail-over", "6%", base, t.path("two.otlp"), check=False)
    t.equal(same.returncode, 0, "the same split, for twice as long, is no failure")
    t.ok("passed, 0 functions grew by more than 6 percentage points" in same.stdout, "and is told so", same.stdout)

    grown = t.stacktap("diff", "--process", "known_split", "--fail-over", "6%", "--json", base, t.path("other.otlp"),
                       check=False)
    t.equal(grown.returncode, 3, "another split is exit status 3")
    said = json.loads(grown.stdout)
    rows = {row["name"]: row["total"] for row in said["rows"]}
    t.equal(rows["hot_c"]["verdict"], "grew", "the function that has more grew")
    want = 100 * (truth["other"]["hot_c"] - truth["one"]["hot_c"])
    t.near(rows["hot_c"]["change"], want, max(3, 1.5 * rows["hot_c"]["error95"]), "by what the program says")
    t.ok(rows["hot_a"]["verdict"] != "grew" and rows["hot_a"]["change"] < 0, "another one has less", rows["hot_a"])
    t.ok(said["before"]["times"] and said["before"]["slices"] >= 30, "its time is cut into slices", said["before"])

    back = t.stacktap("diff", "--process", "known_split", "--fail-over", "6%", "--json", t.path("other.otlp"), base,
                      check=False)
    rows = {row["name"]: row["total"] for row in json.loads(back.stdout)["rows"]}
    t.equal(rows["hot_c"]["verdict"], "shrank", "the other way round it shrank")

    lines = t.stacktap("report", "--summary", "--process", "known_split", base).stdout.splitlines()
    t.equal(len(lines), 10, "a summary of ten lines")
    t.ok(": hot_a of /opt/stacktap/workload/known_split (the largest share, " in lines[2], "names the hottest function", lines[2])
    rows = t.stacktap("report", "--lines", "--process", "known_split", base).stdout
    t.ok(re.search(r" hot_a  known_split\.c:[1-9]", rows), "--lines gave the hottest function its lines", rows)
    tree = t.stacktap("report", "--tree", "--process", "known_split", base).stdout.splitlines()
    order = [next((i for i, line in enumerate(tree) if f" {name}  " in line), -1) for name in ("main", "a", "b", "c", "hot_a")]
    t.ok(-1 not in order and order == sorted(order), "the tree has its chain", order)

# SPDX-License-Identifier: Apache-2.0
"""A program that knows its own split of CPU time is matched, and its call chain is whole."""

import json

LEAVES = ("hot_a", "hot_b", "hot_c")
RATE, SECONDS = 799, 14


def guest(t):
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", RATE, "--duration",
                     SECONDS + 2, "-o", t.path("split.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30,
            "sampling")
    with open(t.path("truth.json"), "w", encoding="utf-8") as truth:
        truth.write(t.run("/opt/stacktap/workload/known_split", SECONDS).stdout)
    out, err = t.end_of(record)
    t.ok(record.returncode == 0, "record ends well", out + err)
    t.note(err.strip().splitlines()[-1])


def host(t):
    import model
    with open(f"{t.dir}/truth.json", encoding="utf-8") as f:
        truth = json.load(f)
    shares = {leaf["name"]: leaf["share"] for leaf in truth["functions"]}
    samples = model.of_process(t.load("split.otlp"), "known_split")
    user = [s for s in samples if s.stack and s.stack[0].frame_type == "native"]
    total = sum(s.count for s in user)
    # The idle half of the samples is not this program's: one CPU's worth of the time it ran.
    t.ok(total >= 3000, f"at least 3,000 samples of the program ({total})")
    counted = {leaf: sum(s.count for s in user if leaf in s.names) for leaf in shares}
    named = sum(counted.values())
    for leaf, share in shares.items():
        have = counted[leaf] / named if named else 0
        t.ok(abs(have - share) <= 0.03, f"{leaf} has {have:.1%}, the program says {share:.1%}")
    chain = tuple(truth["chain"])  # root first
    rest = [s for s in user if not is_elsewhere(s, chain)]
    total = sum(s.count for s in rest)
    t.ok(total >= 0.95 * sum(s.count for s in user), f"nearly all are from inside its chain ({total})")
    whole = sum(s.count for s in rest if in_order(chain, reversed(s.names)))
    t.ok(total and whole >= 0.99 * total, f"the chain {' > '.join(chain)} is whole in {whole} of {total}")


def is_elsewhere(sample, chain):
    """In its loader, or in main() itself, which looks at a clock and prints."""
    names = set(sample.names)
    return "ld-linux" in sample.stack[0].mapping or chain[0] in names and not names & {*chain[1:], *LEAVES}


def in_order(chain, names):
    """Do all of @chain occur in @names, next to each other?"""
    names = list(names)
    return any(tuple(names[i:i + len(chain)]) == chain for i in range(len(names)))

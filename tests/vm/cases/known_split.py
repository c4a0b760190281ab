# SPDX-License-Identifier: Apache-2.0
"""A program that knows its own split of CPU time is matched, and its call chain is whole."""

import json
import signal

import kit

LEAVES = ("hot_a", "hot_b", "hot_c")
RATE, SECONDS = 799, 14


def guest(t):
    record, _ = t.record("split.otlp", "-a", "-F", RATE)
    with open(t.path("truth.json"), "w", encoding="utf-8") as truth:
        truth.write(t.run("/opt/stacktap/workload/known_split", SECONDS * kit.PATIENCE // 3).stdout)
    out, err = t.stop(record, signal.SIGINT)
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
    # A small part of those of one CPU for the time that it ran.
    t.ok(total >= 1000, f"at least 1,000 samples of the program ({total})")
    counted = {leaf: sum(s.count for s in user if leaf in s.names) for leaf in shares}
    named = sum(counted.values())
    for leaf, share in shares.items():
        have = counted[leaf] / named if named else 0
        # three standard deviations where the samples are few
        near = max(0.03, 3 * (share * (1 - share) / max(named, 1)) ** 0.5)
        t.ok(abs(have - share) <= near,
             f"{leaf} has {have:.1%}, the program says {share:.1%} (+- {near:.1%})")
    chain = tuple(truth["chain"])  # root first
    # an emulated CPU that its host takes away in the walk comes back behind the walk's time limit
    rest = [s for s in user
            if not is_elsewhere(s, chain) and s.attribute("stacktap.user_stack.end") != "time"]
    total = sum(s.count for s in rest)
    t.ok(total >= 0.95 * sum(s.count for s in user), f"nearly all are from inside its chain ({total})")
    whole = sum(s.count for s in rest if in_order(chain, reversed(s.names)))
    t.ok(total and whole >= 0.99 * total, f"the chain {' > '.join(chain)} is whole in {whole} of {total}")


def is_elsewhere(sample, chain):
    """In its loader, or in main() itself, which looks at a clock and prints."""
    names = set(sample.names)
    return (any("ld-linux" in frame.mapping for frame in sample.stack)
            or chain[0] in names and not names & {*chain[1:], *LEAVES})


def in_order(chain, names):
    """Do all of @chain occur in @names, next to each other?"""
    names = list(names)
    return any(tuple(names[i:i + len(chain)]) == chain for i in range(len(names)))

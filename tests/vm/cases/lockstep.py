# SPDX-License-Identifier: Apache-2.0
"""A program that repeats itself exactly as often as it is sampled, or every two or three periods, is seen
everywhere: in each of its six functions as often as it is there, and one that is slowed down is seen to be
(the method of Burchell and Marr). With --no-jitter it is seen at one place alone, so that the program is known
to be in step. A thread that computes for a part of a millisecond and sleeps gets the CPU time that it uses.

Under -icount virtual timers are not late while a program runs, so that nothing but the module moves its samples.
"""

import json
import re
import statistics

from kit import write

LOAD = False
ALONE = "shares"
SMP = 1
BOOT_OPTIONS = ("--icount",)
# Hz, and for how many seconds each of 18 loops is sampled: three lengths of a turn, six functions to slow down
RATES = {19: 0.4, 99: 0.15, 100: 0.15, 997: 0.1}
# Hz, of each of two sessions: the slow ones several times, that the same loops bring more samples
SOURCES = ((19, 19, 19, 19, 99, 99, 100, 997), (19, 19, 19, 19, 99, 100, 100, 997))
# Hz, on arm64. Not 997: there loops of a period were seen 6.4 sigma off, where cpu-clock had 0.5, and beside it the
# clock without jitter is in step. By its source QEMU sets the timer of a PMU's event counter one count early and
# then, with none to go, not again, so that an overflow is found when the next exception is taken
CYCLES = (99, 100)
# Samples that a loop is due, without one of which it is missed. A loop lasts so long by the clock, and while the
# sessions' own programs have the CPU none is due: of 100 ms one had 42, by its own counter and by all kinds of samples
DUE = 8
FUNCTIONS = "abcdef"
INJECTED = 0.3
SEED = "/sys/module/stacktap/parameters/jitter_seed"
SLEEPERS = ((300, 700), (5000, 5000))  # us that it computes and sleeps
SLEEPER_HZ = 997
SLEEPER_SECONDS = 6
# Of the verdicts on where samples fall, 44 at most, each is wrong by chance in less than 1.6e-6 of all runs, which
# 4.8 sigma are: 1e-4 together, if each run had a seed of its own. With a fixed one it is the same each time.
LIMIT = 4.8


def clocks(rates):
    return [part for rate in rates for part in ("-e", f"cpu-clock/freq={rate}/")]


def cycles(t):
    # QEMU's cycles are ns
    return [part for rate in CYCLES if t.arch == "arm64"
            for part in ("-e", f"cycles/period={1000000000 // rate}/")]


def in_step(t):
    sessions = []
    for seed, rates in enumerate(SOURCES, 1):
        write(SEED, seed)
        sessions.append(t.record(f"jitter{seed}.otlp", "-a", *clocks(rates)))
    if t.arch == "arm64":
        sessions.append(t.record("cycles.otlp", "-a", *cycles(t)))
    sessions.append(t.record("fixed.otlp", "-a", "--no-jitter", *clocks(RATES)))
    flags = {s["id"]: {source["jitter"] for source in s["sources"]} for s in t.json("status")["sessions"]}
    t.equal([flags[session] for _, session in sessions], [{True}] * (len(sessions) - 1) + [{False}],
            "status tells which")
    said = t.run("/opt/stacktap/workload/lockstep", *[f"{rate}:{seconds}" for rate, seconds in RATES.items()],
                 timeout=1800).stdout
    with open(t.path("truth.json"), "w", encoding="utf-8") as f:
        f.write(said)
    for child, session in sessions:
        for count in t.accounts(child, session):
            if count["type"] == 1:
                # Beside one what 4 ms have, in which an emulated CPU starts and stops eight sources, and one more: while
                # the guest idles a busy host makes a timer late, and what that swallows is missed from a period on.
                t.near(count["calls"] + count["missed"], count["running_ns"] / count["period"], 2 + 4e6 / count["period"],
                       f"{1e9 / count['period']:.0f} Hz: the number of samples is the same")


def guest(t):
    t.insmod("jitter_seed=1")
    in_step(t)
    for run, sleep in SLEEPERS:
        child, session = t.record(f"sleeper{run}.otlp", "-a", "-e", "cpu-clock", "-F", SLEEPER_HZ)
        said = t.run("/opt/stacktap/workload/sleeper", run, sleep, SLEEPER_SECONDS, timeout=900).stdout
        with open(t.path(f"sleeper{run}.json"), "w", encoding="utf-8") as f:
            f.write(said)
        t.accounts(child, session)
    t.rmmod()


class Loops:
    """The samples of one rate: how many hit which function, by the name of the loop."""

    def __init__(self, samples, unit, rate):
        self.hits = {}
        for sample in samples:
            if sample.profile.period_type[0] == unit and round(1e9 / sample.profile.period) == rate:
                hits = self.hits.setdefault(sample.thread_name, [0] * len(FUNCTIONS))
                for i, name in enumerate(FUNCTIONS):
                    hits[i] += sample.count * (name in sample.names)

    def of(self, pattern):
        return {loop: hits for loop, hits in self.hits.items() if re.fullmatch(pattern, loop)}


def shares(ticks):
    return [part / sum(ticks) for part in ticks]


def sigmas(hits, true):
    """Of each function, by how many sigma of the number of samples it is seen too often."""
    number = sum(hits)
    return [(hit - number * share) / (number * share * (1 - share)) ** 0.5 for hit, share in zip(hits, true)]


def surplus(loops, truth):
    """By how many sigma the hits of all @loops are farther from the truth than chance has them: Pearson's
    chi-square as a normal deviate, by Wilson and Hilferty. Where a turn is several periods long, or samples
    and turns drift past each other, they are nearer."""
    freedom = len(loops) * (len(FUNCTIONS) - 1)
    square = 0
    for loop, hits in loops.items():
        for hit, share in zip(hits, shares(truth[loop])):
            square += (hit - sum(hits) * share) ** 2 / (sum(hits) * share)
    part = 2 / (9 * freedom)
    return ((square / freedom) ** (1 / 3) - 1 + part) / part ** 0.5


def seen_everywhere(t, loops, truth, title, rate, due, sources):
    for pattern, which in [(rf"{rate}x{n}.", f"loops of {n} periods") for n in (1, 2, 3)] + \
            [(rf"(?!{rate}x)\d+x..", "other loops")]:
        some = loops.of(pattern)
        number = sum(map(sum, some.values()))
        unseen = {loop for loop in truth if re.fullmatch(pattern, loop) and due[loop] >= DUE} - some.keys()
        t.ok(not unseen and surplus(some, truth) < LIMIT,
             f"{title}, {which}: {number} samples are where the program is, {surplus(some, truth):+.1f} sigma, "
             f"{len(unseen)} loops have none")
    number, want = sum(map(sum, loops.hits.values())), sum(due.values())
    # each loop's beginning and end falls between two samples of each source
    t.ok(abs(number - want) < LIMIT * (len(truth) * sources) ** 0.5,
         f"{title}: {number} samples, {want:.0f} by the time that the program had")
    apart = [value for loop, hits in loops.hits.items() for value in sigmas(hits, shares(truth[loop]))]
    beyond = sum(abs(value) > 2 for value in apart)
    chance = len(apart) * 2 * (1 - statistics.NormalDist().cdf(2))
    t.ok(beyond <= chance + LIMIT * chance ** 0.5, f"{title}: of {len(apart)} shares {beyond} are more than "
         f"2 sigma off, by chance {chance:.0f}")


def seen_slower(t, some, truth, title):
    """Of the function that was slowed down in each of @some loops."""
    hits = number = expected = variance = 0
    for loop, each in some:
        i = FUNCTIONS.index(loop[-1])
        true = shares(truth[loop])[i]
        hits += each[i]
        number += sum(each)
        expected += sum(each) * true
        variance += sum(each) * true * (1 - true)
    sigma = max(variance, 1) ** 0.5
    t.ok(abs(hits - expected) < LIMIT * sigma, f"{title}: of {number} samples {hits} are in the function that was "
         f"slowed down, by the program's own counter {expected:.0f} (sigma {sigma:.0f})")
    return (expected - number / len(FUNCTIONS)) / sigma


def host(t):
    import model
    with open(f"{t.dir}/truth.json", encoding="utf-8") as f:
        truth = json.load(f)
    ticks_per_s = truth.pop("ticks_per_ns") * 1e9
    told = [shares(ticks)[FUNCTIONS.index(loop[-1])] for loop, ticks in truth.items()]
    meant = (1 + INJECTED) / (len(FUNCTIONS) + INJECTED)
    t.ok(len(told) == 18 * len(RATES) and abs(statistics.median(told) - meant) < 0.005,
         f"the program did as it was told: {meant:.1%}, {statistics.median(told):.1%}")
    samples = [s for seed in (1, 2) for s in model.of_process(t.load(f"jitter{seed}.otlp"), "lockstep")]
    fixed = model.of_process(t.load("fixed.otlp"), "lockstep")
    kinds = [("cpu", rate, samples) for rate in RATES]
    if t.arch == "arm64":
        cycles_of = model.of_process(t.load("cycles.otlp"), "lockstep")
        kinds += [("cycles", rate, cycles_of) for rate in CYCLES]
    every = {}
    for unit, rate, some in kinds:
        loops = Loops(some, unit, rate)
        loops.hits = {loop: hits for loop, hits in loops.hits.items() if loop in truth}
        sources = sum(rates.count(rate) for rates in SOURCES) if unit == "cpu" else 1
        due = {loop: sum(ticks) / ticks_per_s * rate * sources for loop, ticks in truth.items()}
        seen_everywhere(t, loops, truth, f"{rate} Hz, {unit}", rate, due, sources)
        seen_slower(t, loops.of(rf"{rate}x..").items(), truth, f"{rate} Hz, {unit}")
        every.setdefault(unit, []).extend(loops.hits.items())
    for unit, some in every.items():
        apart = seen_slower(t, some, truth, f"{unit}, all loops")
        # of cycles there are too few samples
        t.ok(unit != "cpu" or apart > 2 * LIMIT, f"{unit}: {apart:.1f} sigma are between that and a function like "
                                                 "the others")
    for rate in RATES:
        # where in its turn a program is seen is chance: it may be between two functions
        most = [max(hits) / sum(hits) for hits in Loops(fixed, "cpu", rate).of(f"{rate}x1.").values()]
        t.ok(len(most) == len(FUNCTIONS) and statistics.median(most) > 0.8,
             f"{rate} Hz: in step without jitter, {statistics.median(most):.0%} of a loop in one function")
    sleepers(t, model)


def sleepers(t, model):
    """What wakes them is a timer, as is what samples them."""
    for run, sleep in SLEEPERS:
        with open(f"{t.dir}/sleeper{run}.json", encoding="utf-8") as f:
            true = json.load(f) / 1e9
        samples = model.of_process(t.load(f"sleeper{run}.otlp"), "sleeper")
        have = sum(s.count for s in samples) / SLEEPER_HZ
        sigma = (have / SLEEPER_HZ) ** 0.5
        t.ok(abs(have - true) < 3 * sigma, f"computes {run} us, sleeps {sleep} us: {have:.3f} s sampled of "
                                           f"{true:.3f} s (sigma {sigma:.3f} s)")

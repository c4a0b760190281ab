# SPDX-License-Identifier: Apache-2.0
"""A program that repeats itself exactly as often as it is sampled is seen everywhere: its shares come
out right. With --no-jitter it is seen at one place alone, so that the program is known to be in step.
A thread that computes for a part of a millisecond and sleeps gets the CPU time that it uses.

Under -icount virtual timers are never late, so that nothing but the module moves samples.
"""

import json

LOAD = False
ALONE = "shares"
SMP = 1
BOOT_OPTIONS = ("--icount",)
RATES = (99, 100)
SECONDS = 10
SHARE = 0.3
SLEEPERS = ((300, 700), (5000, 5000))  # us that it computes and sleeps
SLEEPER_HZ = 997
SLEEPER_SECONDS = 6


def guest(t):
    t.insmod("jitter_seed=1")
    for rate in RATES:
        options = ["-e", "cpu-clock", "-F", rate]
        if t.arch == "arm64":
            # QEMU's cycles are ns
            options += ["-e", f"cycles/period={1000000000 // rate}/"]
        jitter = t.record(f"jitter{rate}.otlp", "-a", *options)
        fixed = t.record(f"fixed{rate}.otlp", "-a", "--no-jitter", *options)
        flags = {s["id"]: [source["jitter"] for source in s["sources"]]
                 for s in t.json("status")["sessions"]}
        t.equal((set(flags[jitter[1]]), set(flags[fixed[1]])), ({True}, {False}), "status tells which")
        said = t.run("/opt/stacktap/workload/lockstep", rate, SECONDS, timeout=900).stdout
        with open(t.path(f"truth{rate}.json"), "w", encoding="utf-8") as f:
            f.write(said)
        for child, session in (jitter, fixed):
            for count in t.accounts(child, session):
                if count["source"]:
                    continue
                expected = count["running_ns"] / count["period"]
                t.near(count["calls"], expected, 2, f"{rate} Hz: the number of samples is the same, to one")
    for run, sleep in SLEEPERS:
        child, session = t.record(f"sleeper{run}.otlp", "-a", "-e", "cpu-clock", "-F", SLEEPER_HZ)
        said = t.run("/opt/stacktap/workload/sleeper", run, sleep, SLEEPER_SECONDS, timeout=900).stdout
        with open(t.path(f"sleeper{run}.json"), "w", encoding="utf-8") as f:
            f.write(said)
        t.accounts(child, session)
    t.rmmod()


def host(t):
    import model
    in_step = []
    for rate in RATES:
        with open(f"{t.dir}/truth{rate}.json", encoding="utf-8") as f:
            truth = json.load(f)
        true = truth["a"] / (truth["a"] + truth["b"])
        t.ok(abs(true - SHARE) < 0.01, f"{rate} Hz: the program did as it was told: {true:.1%}")
        for what in ("jitter", "fixed"):
            samples = model.of_process(t.load(f"{what}{rate}.otlp"), "lockstep")
            for unit in sorted({s.profile.period_type[0] for s in samples}):
                hits = {name: sum(s.count for s in samples if s.profile.period_type[0] == unit and name in s.names)
                        for name in "ab"}
                number = sum(hits.values())
                have = hits["a"] / max(number, 1)
                sigma = (true * (1 - true) / max(number, 1)) ** 0.5
                text = (f"{rate} Hz, {unit}: of {number} samples {have:.1%} in a(), which has {true:.1%} "
                        f"of the time (sigma {sigma:.1%})")
                t.ok(number >= 0.8 * SECONDS * rate, f"{what}: enough samples: {number}")
                if what == "jitter":
                    t.ok(abs(have - true) < 4 * sigma, text)
                elif unit == "cpu":
                    # QEMU's PMU interrupts when it finds that it should, and slips out of step
                    in_step.append((abs(have - true), text))
    # where in its turn a program is seen is chance: it may be between a() and b()
    worst = max(in_step)
    t.ok(worst[0] > 0.2, f"in step without jitter: {worst[1]}")
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

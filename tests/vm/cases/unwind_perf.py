# SPDX-License-Identifier: Apache-2.0
"""Functions have the shares that perf finds with --call-graph dwarf."""

import collections
import math
import os
import time

WORKLOAD = "/opt/stacktap/workload/functions"
TOP = 50
ENOUGH = 10000
P_VALUE = 0.001
LANE = "stacks"
BOOT_TIMEOUT = 3600
TIMEOUT = 900
# not multiples of each other, so that the two are not always at it at the same time; in nanoseconds
# or, at the emulated PMU's 1 GHz, cycles
OUR_RATE, PERF_PERIOD = 499, 1700023
# the stack is small: all of it fits what perf copies
PERF_STACK = 4096
KERNEL_FROM = 1 << 63


def guest(t, enough=ENOUGH):
    """Both sample one run at the same time: what is slow is slow for both."""
    program = t.start(WORKLOAD, TIMEOUT * 10)
    event = "cycles:u" if t.arch == "arm64" else "cpu-clock:u"
    perf = t.start("perf", "record", "-q", "-B", "-N", "-m", 4096, "-e", event, "-c", PERF_PERIOD,
                   "--call-graph", f"dwarf,{PERF_STACK}", "-p", program.pid,
                   "-o", "/tmp/perf.data", cwd="/tmp")
    record, session = t.record("functions.otlp", "-p", program.pid, "-F", OUR_RATE, "--all-user",
                               "--call-graph", "table")
    t.until(lambda: sum(c["recorded"] for c in t.counts(session)) > 1.1 * enough
            and os.path.getsize("/tmp/perf.data") > 1.1 * enough * PERF_STACK,
            TIMEOUT / 3, "enough samples")
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    out, err = t.stop(perf, 2)
    t.stop(program)
    began = time.monotonic()
    with open(t.path("perf.txt"), "w", encoding="utf-8") as f:
        script = t.start("perf", "script", "-i", "/tmp/perf.data", "-F", "ip,sym", "--no-inline",
                         stdout=f)
        _, err = script.communicate()
    t.ok(script.returncode == 0, "perf unwinds its samples", out + err)
    t.note(f"perf took {time.monotonic() - began:.0f} s for it")


def perf_stacks(path):
    """Function names, leaf first -> number. An overflow of user code may be taken in the kernel, at
    the entry of a system call: with user code alone asked for, we leave that out, and perf does not."""
    stacks = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as f:
        for text in f.read().split("\n\n"):
            lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
            if lines and int(lines[0][0], 16) < KERNEL_FROM:
                stacks[tuple(rest[0].strip() if rest else "" for _, *rest in lines)] += 1
    return stacks


def to_main(names):
    """Without what the C library calls main() by; a stack without main() is none."""
    return names[:names.index("main") + 1] if "main" in names else ("(cut)",)


def chi_square_tail(statistic, freedom):
    """P(X >= statistic): the regularized upper incomplete gamma function."""
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-12:
            n += 1
            term *= x / n
            total += term
        return 1 - total * scale
    b = x + 1 - a
    c, d = 1e300, 1 / b
    fraction = d
    for i in range(1, 1000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        fraction *= d * c
        if abs(d * c - 1) < 1e-12:
            break
    return fraction * scale


def compare(ours, theirs):
    """Chi-square of the TOP kinds and all the others: (statistic, freedom, p, worst kinds)."""
    kinds = [kind for kind, _ in (ours + theirs).most_common(TOP)]
    rows = [(ours[kind], theirs[kind], kind) for kind in kinds]
    rest = [sum(c.values()) - sum(row[i] for row in rows) for i, c in enumerate((ours, theirs))]
    if sum(rest) >= 20:
        rows.append((*rest, "others"))
    sums = [sum(row[i] for row in rows) for i in (0, 1)]
    parts = []
    for our, their, kind in rows:
        share = (our + their) / sum(sums)
        parts.append((sum((n - share * s) ** 2 / (share * s) for n, s in zip((our, their), sums)),
                      f"{kind}: {our} and {their}"))
    statistic = sum(part for part, _ in parts)
    freedom = len(rows) - 1
    return statistic, freedom, chi_square_tail(statistic, freedom), sorted(parts)[:-4:-1]


def host(t, enough=ENOUGH):
    samples = [s for s in t.load("functions.otlp")
               if s.attribute("stacktap.user_stack.end", "complete") != "time"]
    ours = collections.Counter()
    for sample in samples:
        names = tuple(f.function for f in sample.stack if f.frame_type != "kernel")
        ours[names] += sample.count
    theirs = perf_stacks(f"{t.dir}/perf.txt")
    for who, stacks in (("stacktap", ours), ("perf", theirs)):
        t.ok(sum(stacks.values()) >= enough, f"{sum(stacks.values())} samples by {who}")
    for what, kind in (("functions", lambda names: names[0]), ("stacks", to_main)):
        counts = []
        for stacks in (ours, theirs):
            counter = collections.Counter()
            for names, count in stacks.items():
                counter[kind(names)] += count
            counts.append(counter)
        statistic, freedom, p, worst = compare(*counts)
        t.ok(p > P_VALUE and freedom >= 20,
             f"the top {TOP} {what} have perf's shares: chi-square {statistic:.1f} of {freedom}, "
             f"p = {p:.4f}" + "".join(f"; {text}" for _, text in worst if p <= P_VALUE))

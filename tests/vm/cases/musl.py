# SPDX-License-Identifier: Apache-2.0
"""A stack of musl's programs that counts as complete has its seven known calls and nothing of another thread: on arm64,
up to musl 1.2.5, a thread begins with the frame pointer of who created it."""

import signal

PLACE = "/opt/stacktap/workload/musl"
CALLS = ("seventh", "sixth", "fifth", "fourth", "third", "second", "first")
# programs, how they are walked, and whether a thread's stack is complete: by frame pointers no end is there
RUNS = ((("static", "dynamic"), "table", True), (("pointers",), "fp", False))
ENOUGH = 50
# not yet, or not any more: nothing was walked by the program's tables
UNSETTLED = ("no_mappings", "stale", "time")


def walked(t, session, way):
    """Samples, by tables those that had some already."""
    if way == "fp":
        return sum(c["recorded"] for c in t.counts(session))
    return sum(cpu["table_hits"] for s in t.json("status")["sessions"] if s["id"] == session for cpu in s["cpus"])


def guest(t):
    for programs, way, _ in RUNS:
        busy = [t.start(f"{PLACE}/{program}", 600000) for program in programs]
        record, session = t.record(f"{way}.otlp", "-p", ",".join(str(child.pid) for child in busy), "-F", 499,
                                   "--call-graph", way)
        t.until(lambda: walked(t, session, way) > 6 * ENOUGH * len(programs), 120, "samples")
        for child in busy:
            child.send_signal(signal.SIGSTOP)
        t.stop(record)
        for child in busy:
            t.stop(child, signal.SIGKILL)


def end_of(sample):
    return sample.attribute("stacktap.user_stack.end", "complete")


def known(names):
    """From the seventh call on, without what it has called."""
    return names[names.index(CALLS[0]):]


def is_right(names):
    """Seven calls, each once, and one thread's outermost function."""
    return names[:len(CALLS)] == CALLS and not set(CALLS) & set(names[len(CALLS):]) and \
        ("main" in names) != ("run" in names) and names[len(CALLS)] in ("main", "run")


def judge(t, samples, what, is_whole):
    stacks = [(tuple(f.function for f in s.stack if f.frame_type != "kernel"), s) for s in samples]
    stacks = [(known(names), names[0] == CALLS[0], s) for names, s in stacks if CALLS[0] in names]
    whole = [(names, s.count) for names, _, s in stacks if end_of(s) == "complete"]
    wrong = [(names, count) for names, count in whole if not is_right(names)]
    t.ok(whole and not wrong, f"{what}: of {sum(count for _, count in whole)} complete stacks "
         f"{sum(count for _, count in wrong)} are not the seven calls of one thread {wrong[:1] or ''}")
    threads = [(names, s) for names, is_leaf, s in stacks if is_leaf and "run" in names and end_of(s) not in UNSETTLED]
    count = sum(s.count for _, s in threads)
    right = sum(s.count for names, s in threads
                if names[:9] == (*CALLS, "run", "start") and (end_of(s) == "complete") == is_whole)
    t.ok(count > ENOUGH and right >= 0.99 * count, f"{what}: {right} of the other thread's {count} stacks are right, "
         f"{'complete' if is_whole else 'none complete'}")


def host(t):
    import model
    for programs, way, is_whole in RUNS:
        samples = t.load(f"{way}.otlp")
        for program in programs:
            judge(t, model.of_process(samples, program), f"{program} by {way}", is_whole)

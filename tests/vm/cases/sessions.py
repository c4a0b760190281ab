# SPDX-License-Identifier: Apache-2.0
"""Two sessions at different rates and filters agree; a filtered one holds only what it names.

Under -icount: elsewhere an emulated CPU that this machine takes away misses more ticks the shorter
their period is, so that CPU times by different rates differ.
"""

import json

ALONE = "rates"
SMP = 1
BOOT_OPTIONS = ("--icount",)


def guest(t):
    wanted = t.start("/opt/stacktap/workload/deep", 5, 120)
    other = t.start("/opt/stacktap/workload/zero_reader", 120)
    everything = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 299, "--duration", 10,
                         "-o", t.path("all.otlp"))
    filtered = t.start("/opt/stacktap/bin/stacktap", "record", "-p", wanted.pid, "-F", 97,
                       "--duration", 9, "-o", t.path("one.otlp"))
    status = t.until(lambda: two_running(t), 60, "two running sessions")
    t.ok(len({s["id"] for s in status["sessions"]}) == 2, "two sessions with ids of their own")
    for child in (everything, filtered):
        out, err = t.end_of(child)
        t.ok(child.returncode == 0, "record ends well", out + err)
    with open(t.path("pids.json"), "w", encoding="ascii") as f:
        json.dump({"wanted": wanted.pid, "other": other.pid}, f)
    t.stop(wanted)
    t.stop(other)


def two_running(t):
    status = t.json("status")
    running = [s for s in status["sessions"] if s["state"] == "running"]
    return status if len(running) == 2 else None


def common(*times):
    """How many of each are in the time that all are about."""
    start, end = max(map(min, times)), min(map(max, times))
    return [sum(start <= time_ns <= end for time_ns in of) for of in times]


def host(t):
    import model
    with open(f"{t.dir}/pids.json", encoding="ascii") as f:
        pids = json.load(f)
    everything, one = t.load("all.otlp"), t.load("one.otlp")
    pid = pids["wanted"]
    strangers = {s.process.pid for s in one} - {pid}
    t.ok(not strangers, f"the filtered session holds pid {pid} alone (also {strangers})")
    # each begins when it has its unwind tables
    full, part = common([time_ns for s in model.of_process(everything, pid)
                         for time_ns in s.timestamps], [time_ns for s in one for time_ns in s.timestamps])
    t.ok(model.of_process(everything, pids["other"]), "the other session sees the other program too")
    t.ok(part >= 200, f"the filtered session has at least 200 samples ({part})")
    t.ok(abs(full / 299 - part / 97) <= 0.2 * full / 299,
         f"both see the same CPU time: {full / 299:.2f} s and {part / 97:.2f} s")
    a = model.function_shares(everything, pid, inclusive=True).get("descend", 0)
    b = model.function_shares(one, pid, inclusive=True).get("descend", 0)
    t.ok(a >= 0.9 and abs(a - b) <= 0.03, f"and the same share below descend(): {a:.1%} and {b:.1%}")

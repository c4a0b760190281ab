# SPDX-License-Identifier: Apache-2.0
"""User stacks of programs without frame pointers are whole, and nobody had to rebuild them."""

import json
import time

WORKLOAD = "/opt/stacktap/workload/no_frame_pointers"
CHAIN = ("inner", "variable", "middle", "outer", "main")
PYTHON = """
import sys
def spin(n):
    return sum(i * i for i in range(200)) + (spin(n - 1) if n else 0)
for _ in range(int(sys.argv[1])):
    spin(10)
"""
SQL = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
       "SELECT sum(i * length(hex(i))) FROM n;")
# of some thousand where no tick is missed: an emulated CPU may lose most of them to its host
ENOUGH = 30
TIMEOUT = 600
RANDOM_ADDRESSES = True
SETTLED_NS = 1000000000


def guest(t):
    began = time.monotonic()
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 499,
                     "--call-graph", "table", "-o", t.path("unwind.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 60,
            "sampling")
    t.note(f"tables were loaded {time.monotonic() - began:.1f} s after the start")
    pids = {}
    burn = t.start(WORKLOAD, "burn", 8000)
    pids["burn"] = burn.pid
    t.until(lambda: t.json("status")["sessions"][0]["lists"], 30, "a mapping list")
    t.ok(t.wait(burn, 120) == 0, "the program without frame pointers ran")
    status = t.json("status")
    with open(t.path("status.json"), "w", encoding="ascii") as f:
        json.dump(status, f)
    for mode, count, ms in (("fork", 10, 500), ("exec", 10, 800)):
        program = t.start(WORKLOAD, mode, count, ms)
        pids[mode] = program.pid
        t.ok(t.wait(program, 120) == 0, f"{count} children ran ({mode})")
    with open("/tmp/numbers", "w", encoding="ascii") as f:
        f.writelines(f"{i * i % 1000003}\n" for i in range(200000))
    t.run("openssl", "speed", "-seconds", 3, "-bytes", 16384, "sha256")
    t.run("python3", "-c", PYTHON, 3000)
    t.run("xz", "-6", "-k", "-f", "-T1", "/tmp/numbers")
    t.run("sqlite3", ":memory:", SQL.format(400000))
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    with open(t.path("pids.json"), "w", encoding="ascii") as f:
        json.dump(pids, f)


def is_whole(sample):
    return sample.attribute("stacktap.user_stack.end", "complete") == "complete"


def user_part(sample):
    return [frame.function for frame in sample.stack if frame.frame_type != "kernel"]


def ends(samples):
    counts = {}
    for sample in samples:
        end = sample.attribute("stacktap.user_stack.end", "complete")
        counts[end] = counts.get(end, 0) + sample.count
    return ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))


def judge(t, samples, what):
    """But for samples from before the tables were there, however long a slow guest took to load them,
    and for what an emulated CPU cut, which its host took away in the walk."""
    total = sum(s.count for s in samples)
    walked = [s for s in samples
              if s.attribute("stacktap.user_stack.end") not in ("time", "no_mappings")]
    count = sum(s.count for s in walked)
    whole = sum(s.count for s in walked if is_whole(s))
    t.ok(count >= ENOUGH, f"{what}: at least {ENOUGH} of {total} samples have tables ({count})")
    t.ok(whole >= 0.95 * count, f"{what}: {whole} of {count} stacks are whole, "
                                f"{100 * whole / max(total, 1):.1f} % of all ({ends(samples)})")


def host(t):
    import model
    with open(f"{t.dir}/pids.json", encoding="ascii") as f:
        pids = json.load(f)
    with open(f"{t.dir}/status.json", encoding="ascii") as f:
        status = json.load(f)
    samples = [s for s in t.load("unwind.otlp") if user_part(s)]
    ours = [s for s in samples if s.process.executable == "no_frame_pointers"
            and user_part(s)[0] in CHAIN]
    burn = [s for s in ours if s.process.pid == pids["burn"]]
    judge(t, burn, "without frame pointers")
    total = right = 0
    other = ()
    # until its tables are there a walk by frame pointers may find a way to _start past some callers
    settled = min(min(s.timestamps) for s in burn) + SETTLED_NS
    for sample in burn:
        names = tuple(user_part(sample))
        count = sum(when >= settled for when in sample.timestamps)
        if not is_whole(sample) or not count:
            continue
        total += count
        # what the loader calls main() with is the C library's business
        if names[:len(CHAIN) - CHAIN.index(names[0])] == CHAIN[CHAIN.index(names[0]):]:
            right += count
        else:
            other = names
    t.ok(total and right >= 0.99 * total, f"{' <- '.join(CHAIN)} in {right} of {total} {other}")
    forked = [s for s in ours if s.process.pid not in (pids["burn"],) and "child" in user_part(s)]
    judge(t, forked, "a fork has its parent's tables")
    execed = [s for s in ours if s.process.pid not in pids.values()
              and not any(s is other for other in forked)]
    judge(t, execed, "an exec gets its own")
    for program in ("openssl", "python3.11", "xz", "sqlite3"):
        judge(t, model.of_process(samples, program), program)
    unwind = status["module"]["unwind"]
    cpus = [cpu for session in status["sessions"] for cpu in session["cpus"]]
    hits = sum(cpu["table_hits"] for cpu in cpus)
    frames = sum(cpu["table_frames"] for cpu in cpus)
    by_fp = sum(cpu["table_fp_frames"] for cpu in cpus)
    t.ok(unwind["tables"] >= 2 and unwind["table_rows"] > 1000 and unwind["lists"] >= 2,
         f"the module holds tables and lists: {unwind}")
    t.ok(hits >= ENOUGH and frames > hits, f"{hits} walks by table, {frames} frames")
    searches = sum(cpu["table_searches"] for cpu in cpus)
    t.ok(searches < 0.95 * frames, f"{searches} of the frames were searched for in tables")
    # leaves of openssl's assembly on arm64 have no information
    t.ok(by_fp <= 0.3 * frames, f"{by_fp} of the frames by frame pointer")

# SPDX-License-Identifier: Apache-2.0
"""The module takes no more of a CPU than its ceiling, whatever it is asked for, and says what it gave up.

Under -icount a guest's nanosecond is one instruction, so that its share of the CPU is exact.
"""

import json

import kmodtest
from kit import dmesg, read, write

LOAD = False
ALONE = "shares"
SMP = 1
BOOT_OPTIONS = ("--icount",)
TIMEOUT = 900

PARAMETER = "/sys/module/stacktap/parameters/ceiling_permille"


def session_of(t, session):
    return next(s for s in t.json("status")["sessions"] if s["id"] == session)


def refused(t):
    before = read(PARAMETER)
    for value in ("1001", "-1", "much"):
        try:
            write(PARAMETER, value)
            t.ok(False, f"a ceiling of {value} is refused")
        except OSError:
            t.equal(read(PARAMETER), before, f"a ceiling of {value} is refused")
    for value in ("101", "1.25", "a lot"):
        result = t.stacktap("set", "1", "--ceiling", value, check=False)
        t.ok(result.returncode == 2 and value in result.stderr, f"set --ceiling {value} is refused",
             result.stderr)


def of_a_session(t):
    """A session's own ceiling cuts its samples and nobody else's; what it takes is told everywhere."""
    program = t.start("/opt/stacktap/workload/deep", 200, 600)
    free, free_id = t.record("free.otlp", "-a", "-e", "cpu-clock", "-F", 199, "--budget-ns", 0)
    own, own_id = t.record("own.otlp", "-a", "-e", "cpu-clock", "-F", 997, "--budget-ns", 0,
                           "--ceiling", "0.1%", "--call-graph", "fp")
    t.equal(session_of(t, own_id)["ceiling_permille"], 1, "a session has its own ceiling")
    t.until(lambda: session_of(t, own_id)["degraded"] >= 4, 120, "a slower rate")
    shown = t.stacktap("status").stdout
    t.ok("ceiling of this session: 0.1 % of each CPU" in shown and "ceiling: none" in shown,
         "status shows both ceilings", shown)
    t.stacktap("set", own_id, "--ceiling", "50")
    t.equal(session_of(t, own_id)["ceiling_permille"], 500, "it can be changed while it runs")
    t.until(lambda: not session_of(t, own_id)["degraded"], 300, "the old rate")
    counts = t.accounts(own, own_id)
    t.ok(sum(c["lost"]["budget"] for c in counts) and sum(c["user_end"]["budget"] for c in counts),
         "samples were cut and lost for it", counts)
    events = json.loads(t.stacktap("report", "--json", t.path("own.otlp")).stdout)["events"]
    t.equal(sum(event["quality"]["lost"] for event in events), sum(sum(c["lost"].values()) for c in counts),
            "report tells how many were lost")
    counts = t.accounts(free, free_id)
    t.ok(not sum(c["lost"]["budget"] + c["user_end"]["budget"] + c["raises"] for c in counts),
         "another session is as it was", counts)
    t.stop(program)


def guest(t):
    t.run("insmod", "/opt/stacktap/stacktap.ko")
    t.equal(read(PARAMETER), "10", "without a parameter the ceiling is 1 %")
    t.ok("ceiling: 1.0 % of each CPU" in t.stacktap("status").stdout, "status shows it")
    kmodtest.run_loaded(t, "ceiling", seconds=600)
    refused(t)
    write(PARAMETER, 0)
    of_a_session(t)
    said = [line for line in dmesg().splitlines() if "the CPU's counter" in line]
    t.ok(not said, "the CPU's counter goes as fast as the kernel says", said)
    t.run("rmmod", "stacktap")


def host(t):
    ends = {sample.attribute("stacktap.user_stack.end") for sample in t.load("own.otlp")}
    t.ok("budget" in ends, f"what was cut for the ceiling says so ({ends})")
    t.ok(not any(sample.attribute("stacktap.user_stack.end") == "budget"
                 for sample in t.load("free.otlp")), "and nothing else does")

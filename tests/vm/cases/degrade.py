# SPDX-License-Identifier: Apache-2.0
"""Handlers that take longer than their budget: the session gives up kernel depth, then its rate, and
takes both back when the budget allows it. Every step is announced, in the stream and in status, every
handler call has a fate, and what the samples stand for is the time that was sampled all the same.

Under -icount a guest's nanosecond is one instruction, so that handlers take what they would elsewhere,
and cpu-clock is never late. The guest has little to do, and looks seldom: time in which it idles passes
at once.
"""

import json
import os
import re
import time

from kit import read, write

LOAD = False
ALONE = "rates"
SMP = 1
BOOT_OPTIONS = ("--icount",)
TIMEOUT = 1200

# a kernel that looks at each access takes most of a millisecond for a sample
SLOW = 8 if "debug" in os.uname().release else 1
RATE = 997 // SLOW
OTHER_RATE = 499 // SLOW
FRAMES = [127, 64, 32, 16, 16, 16, 16, 16]
DIVISORS = [1, 1, 1, 1, 2, 4, 8, 16]
STEPS = 7
MAX_RATE = "/proc/sys/kernel/perf_event_max_sample_rate"
PERCENT = "/proc/sys/kernel/perf_cpu_time_max_percent"
PARAMETER = "/sys/module/stacktap/parameters/handler_budget_ns"
# A send to the same host is received below the sender's own frames. A burst takes longer than a sample's
# period, so that none falls between two.
SENDER = """
import socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
taker = server.accept()[0]
def take():
    while taker.recv(65536):
        pass
threading.Thread(target=take, daemon=True).start()
while True:
    for _ in range(400):
        client.sendall(b"x" * 1000)
    time.sleep(0.4)
"""


def until(condition, what):
    for _ in range(400):
        value = condition()
        if value:
            return value
        time.sleep(0.8)
    raise AssertionError(f"{what}: never")


def calls_of(t, session):
    return min(c["calls"] for c in t.counts(session))


def session_of(t, session):
    return next(s for s in t.json("status")["sessions"] if s["id"] == session)


def in_steps(t, session, wanted, what):
    """Wait until the session has taken @wanted steps; what status said at each on the way there."""
    seen = {}

    def there():
        now = session_of(t, session)
        # the module tells of CPUs after it told of the session: no step was taken in between
        if session_of(t, session)["degraded"] == now["degraded"]:
            seen[now["degraded"]] = (now["kernel_frames"], now["rate_divisor"],
                                     [c["period"] for cpu in now["cpus"] for c in cpu["counts"]])
        return now["degraded"] == wanted

    until(there, what)
    return seen


def shown(t, seen, what):
    wrong = {step: view for step, view in seen.items()
             if view[:2] != (FRAMES[step], DIVISORS[step]) or
             view[2][0] != 1000000000 // (RATE // DIVISORS[step])}
    t.ok(not wrong, f"{what}: status shows depth, divisor and period of each step", wrong)


def guest(t):
    t.run("insmod", "/opt/stacktap/stacktap.ko", "ceiling_permille=0")
    t.equal(read(PARAMETER), "2000", "without a parameter the budget is 2 us")
    before = read(MAX_RATE)
    t.run("ip", "link", "set", "lo", "up")
    sender = t.start("python3", "-c", SENDER)
    events = t.listen("/tmp/events", "--json")
    free, free_id = t.record("free.otlp", "-a", "-e", "cpu-clock", "-F", OTHER_RATE, "--budget-ns", 0)
    rich, rich_id = t.record("rich.otlp", "-a", "-e", "cpu-clock", "-F", OTHER_RATE, "--budget-ns",
                              1000000 * SLOW)
    plain, plain_id = t.record("plain.otlp", "-a", "-e", "cpu-clock", "-F", 19)
    t.equal(session_of(t, plain_id)["budget_ns"], 2000, "a session begins with the module's budget")
    t.stacktap("stop", plain_id)
    t.stop(plain, 2)
    record, session = t.record("degrade.otlp", "-a", "-F", RATE, "-e", "cpu-clock", "-e", "cycles",
                               "--budget-ns", 0)
    until(lambda: calls_of(t, session) > 5 * RATE, "calls")
    t.equal(session_of(t, session)["degradations"], 0, "with budget 0 nothing degrades")

    t.stacktap("set", session, "--budget-ns", 1)
    shown(t, in_steps(t, session, STEPS, "all steps down"), "on the way down")
    said = t.stacktap("status").stdout
    t.ok(re.search(r"DEGRADED: .*budget of 1 ns, or the ceiling: kernel stacks up to 16 frames, rates divided by 16",
                   said), "status says so in words", said)
    calls = calls_of(t, session)
    until(lambda: calls_of(t, session) > calls + 300, "calls")
    t.equal(session_of(t, session)["degradations"], STEPS, "further than that it does not go")
    t.stacktap("set", session, "--budget-ns", 1000000000)
    shown(t, in_steps(t, session, 0, "all steps back"), "on the way back")
    calls = calls_of(t, session)
    until(lambda: calls_of(t, session) > calls + RATE, "calls")

    counts = t.accounts(record, session)
    for other, number in ((free, free_id), (rich, rich_id)):
        t.equal(session_of(t, number)["degradations"], 0,
                f"a budget of {session_of(t, number)['budget_ns']} ns is never exceeded")
        t.accounts(other, number)
    refused(t)
    told = [(e["event"], e.get("count", 0)) for e in map(json.loads, t.heard(events, "/tmp/events"))
            if e["session"] == session and e["event"] in ("degraded", "recovered")]
    t.equal(told, [("degraded", step) for step in range(1, STEPS + 1)] +
            [("recovered", step) for step in range(STEPS - 1, -1, -1)],
            "each step is announced once, down and back")
    t.equal(read(MAX_RATE), before, "perf_event_max_sample_rate is what it was")
    t.stop(sender)
    with open(t.path("counts.json"), "w", encoding="ascii") as f:
        json.dump({"rate": RATE, "counts": counts}, f)
    t.run("rmmod", "stacktap")


def refused(t):
    """A rate that the administrator has forbidden since is not had back until it is allowed again."""
    record, session = t.record("refused.otlp", "-a", "-F", RATE, "-e", "cpu-clock", "-e",
                               "context-switches", "--budget-ns", 1)
    in_steps(t, session, 4, "half the rate")
    was, percent = read(MAX_RATE), read(PERCENT)
    write(PERCENT, 25)
    write(MAX_RATE, RATE // 2 + 1)
    t.stacktap("set", session, "--budget-ns", 0)
    now = session_of(t, session)
    t.ok(now["degraded"] == 0 and now["rates_refused"] >= 1, "a refused rate is counted", now)
    time.sleep(9)
    t.ok(session_of(t, session)["rates_refused"] >= 3, "and asked for again")
    write(MAX_RATE, was)
    write(PERCENT, percent)
    time.sleep(5)
    last = session_of(t, session)["rates_refused"]
    time.sleep(5)
    t.equal(session_of(t, session)["rates_refused"], last, "and what is allowed again is not refused")
    t.accounts(record, session)


def host(t):
    samples = t.load("degrade.otlp")
    with open(f"{t.dir}/counts.json", encoding="ascii") as f:
        told = json.load(f)
    rates = [told["rate"] // divisor for divisor in DIVISORS]
    views, frames, weight = {}, {}, {}
    for sample in samples:
        attributes = dict(sample.profile.attributes)
        step, source = attributes.get("stacktap.degraded", 0), attributes["stacktap.source"]
        views.setdefault((source, step), set()).add(
            (attributes["stacktap.rate_hz"], sample.profile.period))
        weight[source] = weight.get(source, 0) + sample.count * sample.profile.period
        kernel = sum(frame.frame_type == "kernel" for frame in sample.stack)
        cut = sample.attribute("stacktap.kernel_stack.end") == "depth"
        frames.setdefault(step, set()).add((kernel, cut))
    t.equal(views, {(source, step): {(rates[step], 1000000000 // rates[step])}
                    for source in ("cpu-clock", "cycles") for step in range(STEPS + 1)},
            "each step has a Profile of its own, with the rate and the period that hold in it")
    deepest = {step: max(kernel for kernel, _ in stacks) for step, stacks in frames.items()}
    t.ok(deepest[0] > FRAMES[STEPS] and not any(cut for _, cut in frames[0]),
         f"there are kernel stacks to be cut, whole at first ({deepest[0]})")
    t.ok(all(deepest[step] <= FRAMES[step] for step in deepest),
         f"no kernel stack is deeper than its step allows ({deepest})")
    t.ok(any((FRAMES[step], True) in frames[step] for step in range(1, STEPS + 1)), "what is cut says so")
    sampled = told["counts"][0]["running_ns"]
    t.ok(abs(weight["cpu-clock"] - sampled) < 0.02 * sampled,
         f"the samples stand for the time that was sampled: {weight['cpu-clock'] / 1e9:.2f} of "
         f"{sampled / 1e9:.2f} s")
    t.ok(not any(dict(s.profile.attributes).get("stacktap.degraded")
                 for name in ("free.otlp", "rich.otlp") for s in t.load(name)),
         "other sessions are as they were")

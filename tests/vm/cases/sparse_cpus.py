# SPDX-License-Identifier: Apache-2.0
"""CPU numbers with holes: 0 and 3 of four are online, more are possible, others come and go."""

import collections
import json
import os
import signal

from cases import daemon, hotplug, images

SMP = 4
ALONE = True
# two more never boot before this case wants it; x86 has numbers besides that nothing is behind
APPEND = ("maxcpus=2", "possible_cpus=8")
STORE = "/tmp/sparse"


def cpus(t, session=None):
    """CPU -> what was recorded there, of those with counters."""
    return {cpu["cpu"]: sum(counts["recorded"] for counts in cpu["counts"])
            for s in t.json("status")["sessions"] if session in (None, s["id"]) for cpu in s["cpus"]
            if cpu["state"] == "online"}


def become(t, session, wanted, text):
    """Status shows the CPUs @wanted, at once or a little later."""
    try:
        t.until(lambda: sorted(cpus(t, session)) == wanted, 20, text)
    except AssertionError:
        pass
    t.equal(sorted(cpus(t, session)), wanted, text)


def burn(t, cpu):
    """Half a second of a known program's time, there."""
    t.run(images.IMAGES, "after_exec", 500, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))


def guest(t):
    hotplug.cpu_online(3, 1)
    hotplug.cpu_online(1, 0)
    t.equal(os.sched_getaffinity(0), {0, 3}, "CPUs 0 and 3 are online")
    child, session = t.record("sparse.otlp", "-a", "-F", 199)
    become(t, session, [0, 3], "these two have rings and counters")
    for cpu in (0, 3):
        burn(t, cpu)

    hotplug.cpu_online(2, 1)
    become(t, session, [0, 2, 3], "and so has CPU 2 when it is there for the first time")
    burn(t, 2)
    hotplug.cpu_online(3, 0)
    become(t, session, [0, 2], "CPU 3 went, the last one")
    hotplug.cpu_online(1, 1)
    become(t, session, [0, 1, 2], "CPU 1 came, for which there was no ring")
    burn(t, 1)
    counts = t.accounts(child, session)
    with open(t.path("recorded.json"), "w", encoding="ascii") as f:
        json.dump({c["cpu"]: c["recorded"] for c in counts}, f)

    hotplug.cpu_online(3, 1)
    hotplug.cpu_online(1, 0)
    refused = t.stacktap("record", "-C", "9", "--duration", 1, "-o", "/tmp/x.otlp", check=False)
    t.ok(refused.returncode != 0 and "there is no CPU 9" in refused.stderr,
         "a CPU that cannot be is refused", refused.stderr)
    child, session = t.record("third.otlp", "-C", "3", "-F", 199)
    burn(t, 3)
    become(t, session, [3], "a session of CPU 3 alone has no other")
    t.accounts(child, session)

    daemon.configuration("/tmp/sparse.conf", store={"directory": STORE},
                         profile={"rate": 199, "window_seconds": 2, "window_max_seconds": 3})
    service = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/sparse.conf")
    become(t, None, [0, 2, 3], "the daemon has CPUs 0, 2 and 3")
    t.until(lambda: os.path.isdir(STORE) and os.listdir(STORE), 60, "a file in the store")
    t.until(lambda: min(cpus(t).values(), default=0), 30, "samples of each CPU")
    t.ok(service.poll() is None, "and samples each")
    out, err = t.stop(service, signal.SIGTERM)
    t.ok(service.returncode == 0, "and ends well", out + err)


def host(t):
    with open(os.path.join(t.dir, "recorded.json"), encoding="ascii") as f:
        recorded = {int(cpu): count for cpu, count in json.load(f).items()}
    have = collections.Counter()
    named = collections.Counter()
    for sample in t.load("sparse.otlp"):
        have[sample.cpu] += sample.count
        named[sample.cpu] += sample.count * ("after_exec" in sample.names)
    t.equal(dict(have), recorded, "the profile has of each CPU what was recorded there")
    t.ok(all(named[cpu] for cpu in (0, 1, 2, 3)),
         f"the program on each CPU is named ({dict(named)})")
    has_third = os.path.exists(os.path.join(t.dir, "third.otlp"))
    t.equal({sample.cpu for sample in t.load("third.otlp")} if has_third else None, {3},
            "-C 3 is CPU 3")

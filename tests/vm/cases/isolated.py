# SPDX-License-Identifier: Apache-2.0
"""CPUs that isolcpus= and nohz_full= set aside are left alone, until somebody asks for them by number."""

import os

from cases import sparse_cpus

SMP = 4
ALONE = True
APPEND = ("isolcpus=2", "nohz_full=3")
OTHERS, ASIDE = [0, 1], [2, 3]


def record(t, name, wanted, *options):
    """A session in which only @wanted have counters, whatever runs where."""
    child, session = t.record(f"{name}.otlp", "-F", 199, *options)
    sparse_cpus.become(t, session, wanted, f"{name}: CPUs {wanted} have counters")
    for cpu in OTHERS + ASIDE:
        sparse_cpus.burn(t, cpu)
    t.equal([cpu for cpu, recorded in sparse_cpus.cpus(t, session).items() if not recorded], [],
            f"{name}: each of them is sampled")
    counts = t.accounts(child, session)
    t.equal(sorted({c["cpu"] for c in counts if c["calls"]}), wanted, f"{name}: and no other")


def guest(t):
    for name, cpu in (("isolated", 2), ("nohz_full", 3)):
        with open(f"/sys/devices/system/cpu/{name}", encoding="ascii") as f:
            t.equal(f.read().strip(), str(cpu), f"the kernel has CPU {cpu} {name}")
    record(t, "all", OTHERS, "-a")
    record(t, "aside", ASIDE, "-C", "2-3")
    record(t, "both", [0, 2], "-C", "0,2")


def host(t):
    for name, wanted in (("all", OTHERS), ("aside", ASIDE), ("both", [0, 2])):
        have = os.path.exists(os.path.join(t.dir, f"{name}.otlp"))
        named = {s.cpu for s in t.load(f"{name}.otlp") if "after_exec" in s.names} if have else None
        t.equal(named, set(wanted), f"{name}: the program is seen on CPUs {wanted} alone")

# SPDX-License-Identifier: Apache-2.0
"""All sessions of a CPU share the deadline of phase 2. Who had no turn before it begins the next time; a module as it is
on PREEMPT_RT cuts what it takes behind it to a frame.

Measured by the kernel's function-graph tracer, which times nothing but phase 2. Under -icount a nanosecond is one
instruction.
"""

import os
import re

import kmodtest
from kit import read, write

ARCHES = ("x86_64",)
LOAD = False
ALONE = "shares"
SMP = 1
BOOT_OPTIONS = ("--icount",)

TRACING = "/sys/kernel/tracing"
PHASE_2 = "st_defer_run"
LIMIT_US = 100
# eight frames that are searched for between two looks at the clock, a record, the tracer
MORE_US = 10


def timed(t, case):
    """In us, each run of phase 2 while @case runs."""
    if not os.path.exists(f"{TRACING}/trace"):
        t.run("mount", "-t", "tracefs", "tracefs", TRACING)
    write(f"{TRACING}/trace", "")
    write(f"{TRACING}/set_ftrace_filter", PHASE_2)
    write(f"{TRACING}/current_tracer", "function_graph")
    kmodtest.run_loaded(t, case)
    write(f"{TRACING}/tracing_on", 0)
    took = [float(us) for us in re.findall(rf"([\d.]+) us +\| +{PHASE_2}", read(f"{TRACING}/trace"))]
    write(f"{TRACING}/current_tracer", "nop")
    write(f"{TRACING}/set_ftrace_filter", "")
    write(f"{TRACING}/tracing_on", 1)
    return took


def guest(t):
    t.insmod()
    took = timed(t, "turns")
    t.rmmod()
    long = [us for us in took if us >= LIMIT_US]
    t.ok(len(long) >= 100, f"of {len(took)} runs of phase 2 {len(long)} came to their deadline")
    t.ok(max(took, default=0) <= LIMIT_US + MORE_US,
         f"a run took {max(took, default=0):.1f} us at most over all sessions, of {LIMIT_US} + {MORE_US}")
    t.load_module("/opt/stacktap/stacktap-strict.ko")
    kmodtest.run_loaded(t, "behind")
    t.rmmod()

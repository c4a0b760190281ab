# SPDX-License-Identifier: Apache-2.0
"""Under the lock of a run queue, in sched_switch, phase 2 ends after 20 us, where it has 100 us elsewhere.

Measured by the kernel's function-graph tracer, which times nothing but our probe. Under -icount a
nanosecond is one instruction.
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
PROBE = "probe_sched_switch"
LIMIT_US = 20
# eight frames that are searched for between two looks at the clock, a record, the tracer
MORE_US = 10


def guest(t):
    if not os.path.exists(f"{TRACING}/trace"):
        t.run("mount", "-t", "tracefs", "tracefs", TRACING)
    t.insmod()
    write(f"{TRACING}/set_ftrace_filter", PROBE)
    write(f"{TRACING}/current_tracer", "function_graph")
    kmodtest.run_loaded(t, "switches")
    write(f"{TRACING}/tracing_on", 0)
    took = [float(us) for us in re.findall(rf"([\d.]+) us +\| +{PROBE}", read(f"{TRACING}/trace"))]
    write(f"{TRACING}/current_tracer", "nop")
    write(f"{TRACING}/set_ftrace_filter", "")
    write(f"{TRACING}/tracing_on", 1)
    t.rmmod()
    long = [us for us in took if us >= LIMIT_US]
    t.ok(len(long) >= 20, f"of {len(took)} switches {len(long)} came while stacks waited for more time than there is")
    t.ok(max(took, default=0) <= LIMIT_US + MORE_US,
         f"the probe in sched_switch took {max(took, default=0):.1f} us at most, of {LIMIT_US} + {MORE_US}")

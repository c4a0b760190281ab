# SPDX-License-Identifier: Apache-2.0
"""BPF programs are named, one that ran before the recording and one that is loaded during it: by the kernel's own table of
symbols. Nobody but them is called so."""

import re
import time

WORKLOAD = "/opt/stacktap/workload/bpf_burn"
ENOUGH = 50


def guest(t):
    # without these, which are Debian's, a program has no code of its own or no name
    t.run("sysctl", "-w", "net.core.bpf_jit_enable=1", "net.core.bpf_jit_kallsyms=1")
    early = t.start(WORKLOAD, "burn_early", 600)
    time.sleep(2)
    record, session = t.record("bpf.otlp", "-a", "-F", 199)
    time.sleep(4)
    late = t.start(WORKLOAD, "burn_late", 600)
    time.sleep(8)
    t.stacktap("stop", session)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    for program in early, late:
        t.ok(program.poll() is None, "it ran all the time")
        program.kill()
        program.wait()


def host(t):
    found = {}
    for sample in t.load("bpf.otlp"):
        for frame in sample.stack:
            program = re.fullmatch(r"bpf_prog_[0-9a-f]{16}_(\w+)(\t?\[bpf\])?", frame.function or "")
            if program:
                found[program[1]] = found.get(program[1], 0) + sample.count
                break
    t.ok(found.get("burn_early", 0) >= ENOUGH, f"a program that was there before is named: {found}")
    t.ok(found.get("burn_late", 0) >= ENOUGH, f"so is one that comes later: {found}")
    t.equal(sorted(found), ["burn_early", "burn_late"], "and there are no others")

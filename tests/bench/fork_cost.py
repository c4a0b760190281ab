# SPDX-License-Identifier: Apache-2.0
"""What a fork and an exec cost where many processes live, in instructions that a guest under QEMU's icount executes:
with a session of the module, and with one whose mapping list all of these processes have inherited, beside the same
without the module."""

import os
import subprocess

from row import row

LIVE = 20000		# processes
ROUNDS = 301		# forks and execs each, of which the median counts
MEM = 6144		# MiB
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Failed(Exception):
    pass


def boot(output, arch):
    """{name: {what was counted}}"""
    command = [os.path.join(TOP, "tests/vm/lab/boot"), "--arch", arch, "--smp", "1", "--mem", str(MEM), "--icount",
               "--quiet", "--timeout", "1200", "--ro", f"{output}/bench-{arch}:/opt/bench",
               "--ro", f"{TOP}/tests/bench:/bench", "--", "/bench/guest-fork", str(LIVE), str(ROUNDS)]
    done = subprocess.run(command, env=dict(os.environ, LAB=os.path.join(output, "vm")),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    with open(os.path.join(output, f"bench-{arch}", "guest-fork.log"), "w", encoding="utf-8") as f:
        f.write(done.stdout + done.stderr)
    if done.returncode:
        raise Failed(f"the guest failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    lines = [line.split() for line in done.stdout.splitlines()]
    return {name: {key: float(value) for key, value in (pair.split("=") for pair in counted)}
            for name, *counted in lines}


def measure(output, arch):
    runs = boot(output, arch)
    bare = runs["bare"]
    if runs["lists"]["lists"] < LIVE:
        raise Failed(f"{runs['lists']['lists']:.0f} lists of {LIVE} processes")
    for what in ("fork", "exec"):
        for name, how in (("session", "a session"), ("lists", "a session, and a mapping list for each")):
            yield row(f"{what} beside {LIVE:,} processes, {arch}, {how}", runs[name][what],
                      "instructions", "without the module", bare[what])

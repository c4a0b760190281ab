# SPDX-License-Identifier: Apache-2.0
"""What a sample costs in user space, on this machine: each program in build/bench prints one JSON
object a line, with name, value and unit."""

import json
import os
import subprocess

from row import row

# no agent's figures of the same kind are known but these
PUBLISHED = {"OTLP, gzip, 3000 samples": ("published: OTel eBPF profiler, small payloads", 258)}


def measure(output):
    """Returns (rows, what failed)."""
    rows, failed = [], []
    directory = os.path.join(output, "bench")
    # which are replay_cost's and symbol_cost's
    for program in sorted(set(os.listdir(directory)) - {"bench_replay", "bench_symbols"}):
        done = subprocess.run([os.path.join(directory, program)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode or not done.stdout:
            failed.append(f"{program} failed ({done.returncode}): {done.stderr}")
            continue
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            rows.append(row(entry["name"], entry["value"], entry["unit"],
                            *PUBLISHED.get(entry["name"], ()), note=entry.get("note", "")))
    return rows, failed

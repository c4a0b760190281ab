# SPDX-License-Identifier: Apache-2.0
"""What stacktapd takes in memory and sends in bytes while it profiles a busy guest."""

import json
import os
import shutil
import subprocess
import sys
import time

from row import row

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "otlp"))

import model  # noqa: E402

SECONDS = 55		# three windows of 15 s and some
CPUS = 2
LIMIT = 64 * 1024 + 128 * CPUS	# KiB, the budget of everything


class Failed(Exception):
    pass


def profile(output, arch):
    """Returns the directory with what the guest left."""
    share = os.path.join(output, f"bench-{arch}", "daemon")
    shutil.rmtree(share, ignore_errors=True)
    os.makedirs(share)
    port = os.path.join(share, "port")
    receiver = subprocess.Popen(
        [sys.executable, "-B", f"{TOP}/tests/otlp/receiver.py", "--port-file", port, "--no-check",
         "--output", f"{share}/received.otlp", "--ledger", f"{share}/ledger.jsonl"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if os.path.exists(port) or receiver.poll() is not None:
                break
            time.sleep(0.1)
        with open(port, encoding="ascii") as f:
            endpoint = f"http://10.0.2.2:{f.read().strip()}"
        done = subprocess.run(
            [f"{TOP}/tests/vm/lab/boot", "--arch", arch, "--smp", str(CPUS), "--net", "--quiet",
             "--timeout", "300", "--share", share, "--ro", f"{output}/bench-{arch}:/opt/bench",
             "--ro", f"{TOP}/tests/bench:/bench", "--", "/bench/guest-daemon", endpoint, str(SECONDS)],
            env=dict(os.environ, LAB=os.path.join(output, "vm")), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False)
    except OSError as e:
        raise Failed(f"the receiver did not start: {e}") from e
    finally:
        receiver.terminate()
        receiver.wait()
    if done.returncode:
        raise Failed(f"the guest failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    return share


def mean_depth(share):
    """Frames a sample, as the receiver got them."""
    samples = model.load(os.path.join(share, "received.otlp"))
    weight = sum(len(sample.timestamps) for sample in samples)
    return sum(len(sample.stack) * len(sample.timestamps) for sample in samples) / weight


def load(share, name):
    with open(os.path.join(share, name), encoding="utf-8") as f:
        return json.load(f)


def measure(output, arch):
    share = profile(output, arch)
    daemon, module = load(share, "daemon.json"), load(share, "status.json")
    with open(os.path.join(share, "memory"), encoding="ascii") as f:
        memory = {line.split(":")[0]: int(line.split()[1]) for line in f}
    exporter = daemon["exporter"]
    samples, payloads = exporter["samples_sent"], exporter["payloads_sent"]
    if not payloads:
        raise Failed("the receiver got no payload")
    note = (f"{samples} samples in {payloads} payloads, {samples // payloads} each, "
            f"{mean_depth(share):.1f} frames a sample")
    rows = [row(f"OTLP {arch} raw", exporter["bytes_raw"] / samples, "bytes/sample", note=note),
            row(f"OTLP {arch} gzip", exporter["bytes_sent"] / samples, "bytes/sample",
                "published: OTel eBPF profiler, small payloads", 258, note=note),
            row(f"memory {arch} daemon, resident", memory["VmHWM"], "KiB peak",
                "published: agents claim 250 MB", 250e6 / 1024,
                note=f"{CPUS} CPUs, all busy at 199 Hz; the budget of all pools is {LIMIT} KiB")]
    for pool in daemon["pools"]:
        rows.append(row(f"memory {arch} pool {pool['name']}", pool["peak"] / 1024, "KiB peak",
                        note=f"limit {pool['limit'] // 1024} KiB"))
    rows += module_rows(arch, module)
    return rows


def module_rows(arch, module):
    rings = sum(session["ring_bytes"] for session in module["sessions"])
    stash = sum(session["stash_bytes"] for session in module["sessions"])
    unwind = module["module"]["unwind"]
    note = f"{unwind['tables']} tables, {unwind['table_rows']} rows"
    return [row(f"memory {arch} module, unwind tables", unwind["table_bytes"] / 1024, "KiB",
                note=f"{note}; of 200 processes that sleep and what keeps the CPUs busy"),
            row(f"memory {arch} module, mapping lists", unwind["list_bytes"] / 1024, "KiB",
                note=f"{unwind['lists']} lists"),
            row(f"memory {arch} module, rings", rings / 1024, "KiB", note=f"{CPUS} CPUs"),
            row(f"memory {arch} module, stashes", stash / 1024, "KiB", note=f"{CPUS} CPUs")]

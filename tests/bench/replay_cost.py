# SPDX-License-Identifier: Apache-2.0
"""What the daemon costs on a host of 256 CPUs, whose load is made of a real recording: an hour of its time at
99 Hz, a minute at 1,000 Hz. The recording is the one that the guest of daemon_cost left, or REPLAY=FILE."""

import json
import os
import subprocess

from row import row

RUNS = ((3600, 256, 99), (60, 256, 1000))


class Failed(Exception):
    pass


def recording(output, arches):
    given = os.environ.get("REPLAY")
    places = [given] if given else [os.path.join(output, f"bench-{arch}", "daemon", "received.otlp")
                                    for arch in arches]
    for place in places:
        if os.path.exists(place):
            return place
    raise Failed("there is no recording for the load to be made of; give one, REPLAY=FILE")


def measure(output, arches):
    rows = []
    path = recording(output, arches)
    for run in RUNS:
        done = subprocess.run([os.path.join(output, "bench", "bench_replay"), path, *map(str, run)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"bench_replay failed ({done.returncode}): {done.stderr}")
        rows += [row(entry["name"], entry["value"], entry["unit"])
                 for entry in map(json.loads, done.stdout.splitlines())]
    return rows

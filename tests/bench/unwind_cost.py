# SPDX-License-Identifier: Apache-2.0
"""Bytes and time of unwind tables, of some large objects and of every program and library here,
beside .eh_frame and what the same rows take in other profilers' formats."""

import concurrent.futures
import glob
import json
import os
import re
import subprocess

from row import row

LARGE = ("/usr/lib/*-linux-gnu/libc.so.6", "/usr/lib/*-linux-gnu/libpython3.*.so.1.0",
         "/usr/lib/*-linux-gnu/libcrypto.so.3", "/usr/lib/*-linux-gnu/libstdc++.so.6",
         "/usr/lib/gcc/*-linux-gnu/*/cc1plus", "/usr/lib/*-linux-gnu/libLLVM-*.so.1")
USERLAND = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec")
# bytes a row, and a unique rule; pages and indices are not counted
PEERS = {"parca": (16, 0), "perforator": (15, 0), "lightswitch": (8, 0), "OTel": (4, 12)}
STEP = 8		# of the stack pointer in rows that OTel's profiler merges in pairs
CFA = re.compile(r"cfa=sp\+(\d+)( .*)$")


def summary(stacktap, path):
    done = subprocess.run([stacktap, "unwind-info", "--summary", "--json", path], check=False,
                          capture_output=True, text=True)
    return None if done.returncode else json.loads(done.stdout)


def merged_rows(stacktap, path):
    """Rows left when a row and the next, which pushed or popped a word, make one."""
    process = subprocess.Popen([stacktap, "unwind-info", path], text=True, stdout=subprocess.PIPE)
    count, before = 0, None
    for number, line in enumerate(process.stdout):
        if number < 3:
            continue
        match = CFA.match(line[18:].rstrip())
        found = (int(match[1]), match[2]) if match else None
        if before and found and before[1] == found[1] and abs(before[0] - found[0]) == STEP:
            before = None
            continue
        count += 1
        before = found
    process.wait()
    return count


def large_rows(stacktap):
    rows = []
    for pattern in LARGE:
        paths = sorted(glob.glob(pattern))
        if not paths:
            continue
        found = summary(stacktap, paths[-1])
        merged = merged_rows(stacktap, paths[-1])
        each, rule = PEERS["OTel"]
        name = os.path.basename(paths[-1])
        others = ", ".join(f"{peer} {found['rows'] * PEERS[peer][0] / 1024:,.0f} KiB"
                           for peer in ("parca", "perforator", "lightswitch"))
        rows.append(row(f"unwind table, {name}, bytes", found["bytes"] / 1024, "KiB",
                        "OTel's row format, merged", (merged * each + found["rules"] * rule) / 1024,
                        note=f"{found['rows']} rows, {merged} merged, {found['rules']} rules, "
                             f".eh_frame {found['eh_frame_bytes'] / 1024:,.0f} KiB; the rows in the "
                             f"formats of {others}"))
    return rows


def is_elf(path):
    try:
        with open(path, "rb") as f:
            return f.read(5) == b"\x7fELF\x02"
    except OSError:
        return False


def userland():
    seen = set()
    for top in USERLAND:
        for directory, _, names in os.walk(top):
            if "debug" in directory.split("/"):
                continue
            for name in names:
                path = os.path.realpath(os.path.join(directory, name))
                if path not in seen and os.path.isfile(path) and is_elf(path):
                    seen.add(path)
    return sorted(seen)


def userland_rows(stacktap):
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        found = list(executor.map(lambda path: summary(stacktap, path), userland()))
    machine = os.uname().machine
    tables = [one for one in found if one and one["machine"] == machine]
    total = {key: sum(one[key] for one in tables)
             for key in ("bytes", "rows", "eh_frame_bytes", "text_bytes", "compile_ns")}
    others = ", ".join(f"{peer} {total['rows'] * each / (1 << 20):,.1f} MiB"
                       for peer, (each, _) in PEERS.items())
    return [row("unwind tables, all of the userland, bytes", total["bytes"] / (1 << 20), "MiB",
                ".eh_frame", total["eh_frame_bytes"] / (1 << 20),
                note=f"{len(tables)} of {len(found)} files, {total['rows']} rows, "
                     f"{total['text_bytes'] >> 20} MiB of code; the rows in the formats of {others}, "
                     "not merged"),
            row("unwind tables, all of the userland, compile", total["compile_ns"] / 1e9, "s",
                note="each file alone, two at a time")]


def measure(output):
    stacktap = os.path.join(output, f"user-{os.uname().machine}", "stacktap")
    return large_rows(stacktap) + userland_rows(stacktap)

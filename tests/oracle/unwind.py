#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unwind tables against readelf and libdw, the walk against libdwfl. Prints TAP.

usage: unwind.py STACKTAP PROGRAMS-DIRECTORY ARM64-TREE [--all]

Of every row of readelf's interpreted frames the first, the last and a middle address are looked up
in our table. readelf cannot tell an undefined register from one that is the same, nor show what an
expression says; libdw can, and unwind_rows asks it about all the rows once more.
"""
import bisect
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "live"))

import live  # noqa: E402

X86 = ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"] + [f"r{n}" for n in range(8, 16)]
MACHINES = {
    62: {"fp": "rbp", "registers": dict(enumerate(X86 + ["ra"])),
         "named": {"fp": "rbp", "sp": "rsp"}},
    183: {"fp": "x29", "registers": {n: f"x{n}" for n in range(31)},
          "named": {"fp": "x29", "sp": "sp", "lr": "x30"}},
}
LARGE = ["libc.so.6", "libpython3.*.so.1.0", "libcrypto.so.3", "libstdc++.so.6", "libLLVM-*.so.1"]
SAMPLE = LARGE + ["ld-linux-*.so.*", "libm.so.6", "libgcc_s.so.1", "libdw.so.1", "libelf.so.1",
                  "libgnutls.so.30", "libcurl-gnutls.so.4", "libsystemd.so.0", "libperl.so.*",
                  "libbfd-*.so", "libglib-2.0.so.0", "libz.so.1", "libgcrypt.so.20"]
PROGRAMS = ["/bin/bash", "/usr/bin/perl", "/usr/bin/openssl", "/usr/bin/git", "/usr/bin/ld.bfd",
            "/usr/bin/python3", "/usr/bin/xz", "/usr/bin/sqlite3", "/usr/sbin/ldconfig"]
RATIO = 0.5
SAMPLE_ROWS = 150000    # more of them in one file are for libdw alone unless all is compared
TRIES = 5               # on a host that is busy, where a file takes longer than the parser may
RESULTS = []
VALUE = re.compile(r"(\[?)(cfa|sp|fp|lr|r\d+)([+-]\d+)?(\]?)$")
REGISTER = re.compile(r" \(\w+\)")
FDE = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)")
CIE = re.compile(r"^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE ")


def tell(ok, text, details=""):
    RESULTS.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(RESULTS)} - {text}", flush=True)
    if not ok and details:
        print("\n".join("# " + line for line in str(details).splitlines()[:20]), flush=True)


def machine_of(path):
    """EM_* of a 64-bit program or library in this byte order, else None."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError:
        return None
    if head[:6] != b"\x7fELF\x02\x01" or int.from_bytes(head[16:18], "little") not in (2, 3):
        return None
    machine = int.from_bytes(head[18:20], "little")
    return machine if machine in MACHINES else None


def read_frames(path, machine):
    """readelf's rows: sorted (start, end, cfa, fp, ra), cut where the next entry begins."""
    entries = {".eh_frame": [], ".debug_frame": []}
    fp_name = MACHINES[machine]["fp"]
    section, cies, rows, columns, current, kind = None, {}, None, [], None, None
    process = subprocess.Popen(["readelf", "--wide", "--debug-dump=frames-interp", path],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in process.stdout:
        if line[:16].isalnum() and line[16:17] == " " and " pc=" not in line and "CIE" not in line:
            fields = REGISTER.sub("", line).split()
            values = dict(zip(columns, fields[1:]))
            rows.append((int(fields[0], 16), values["CFA"], values.get(fp_name, "u"),
                         values.get("ra", "u")))
        elif line.startswith("   LOC"):
            columns = line.split()[1:]
        elif line.startswith("Contents of the "):
            section = line.split()[3]
            cies = {}
        elif "FDE cie=" in line:
            match = FDE.match(line)
            initial = cies.get(match[1])
            rows, kind = [], "fde"
            current = (int(match[2], 16), int(match[3], 16), rows, initial)
            entries.setdefault(section, []).append(current)
        elif " CIE " in line:
            rows, kind = [], "cie"
            cies[CIE.match(line)[1]] = rows
    process.wait()
    covered = cut(entries[".eh_frame"])
    starts = [entry[0] for entry in covered]
    for entry in entries[".debug_frame"]:
        at = bisect.bisect_left(starts, entry[1])
        if at == 0 or covered[at - 1][1] <= entry[0]:
            entries[".eh_frame"].append(entry)
    return cut(entries[".eh_frame"])


def cut(entries):
    entries = sorted((entry for entry in entries if entry[1] > entry[0]),
                     key=lambda entry: entry[0])
    return [(entry[0], min(entry[1], after[0]) if after else entry[1], entry[2], entry[3])
            for entry, after in zip(entries, entries[1:] + [None])]


def rows_of(entry):
    start, end, rows, initial = entry
    if not rows:
        rows = [(start,) + row[1:] for row in (initial or [])]
    for row, after in zip(rows, rows[1:] + [(end,)]):
        if row[0] < min(after[0], end):
            yield (row[0], min(after[0], end)) + row[1:]


def normal(rule, machine):
    """Our rule as readelf would print it: (cfa, fp, ra), or a word."""
    if not rule.startswith("cfa="):
        return rule
    names, parts = MACHINES[machine]["named"], {}
    for part in rule.split():
        key, _, value = part.partition("=")
        match = VALUE.match(value)
        if not match:
            parts[key] = "u" if value in ("same", "undefined") else "exp"
            continue
        base, offset = match[2], match[3] or ""
        is_load = bool(match[1])
        if key == "cfa":
            name = names.get(base) or MACHINES[machine]["registers"][int(base[1:])]
            parts[key] = "exp" if is_load else name + (offset or "+0")
        elif base == "cfa":
            parts[key] = ("c" if is_load else "v") + (offset or "+0")
        elif is_load or offset:
            parts[key] = "exp"
        else:
            parts[key] = "u" if base == "lr" and key == "ra" else base
    return parts["cfa"], parts["fp"], parts["ra"]


def is_corrected(ours, theirs):
    """glibc's lazy binding on arm64 forgets the 16 bytes that the PLT has pushed before it."""
    shift = re.fullmatch(r"sp([+-]\d+) sp([+-]\d+)", f"{ours[0]} {theirs[0]}")
    return (shift and int(shift[1]) == int(shift[2]) + 16 and ours[2] == "c-8" and
            (theirs[2] == "c+8" or theirs == ["sp+0", "u", "u"]))


def judge(ours, theirs):
    """exact, no rule, or what is wrong."""
    if ours == "no rule":
        return "no rule"
    if ours == "end of stack":
        return "exact" if theirs[2] == "u" else "not the end"
    theirs = ["u" if value == "s" else value for value in theirs]
    if ours == "uncovered":
        return "uncovered"
    if is_corrected(ours, theirs):
        return "exact"
    expressions = ("exp", "vexp")
    for name, a, b in zip(("CFA", "FP", "RA"), ours, theirs):
        if a != b and not (a == "exp" and b in expressions):
            return name
    return "exact"


def unwind_info(stacktap, *arguments):
    for _ in range(TRIES):
        process = subprocess.run([stacktap, "unwind-info", *arguments], capture_output=True, text=True, check=False)
        if "longer than the parser may" not in process.stdout + process.stderr:
            break
    return process


def compare_rows(stacktap, path, machine, result):
    process = unwind_info(stacktap, path)
    process.check_returncode()
    lines = process.stdout.splitlines()
    known, starts, rules = {}, [], []
    for line in lines[3:]:
        rule = line[18:]
        if rule not in known:
            known[rule] = normal(rule, machine)
        starts.append(int(line[:16], 16))
        rules.append(known[rule])
    verdicts = {}
    for entry in read_frames(path, machine):
        # what lies in no executable segment, linkers leave behind for code that they dropped
        if entry[0] < (starts[0] if starts else 0) or entry[0] == 0:
            continue
        for start, end, *theirs in rows_of(entry):
            result["rows"] += 1
            at = bisect.bisect_right(starts, start) - 1
            worst = "exact"
            for address in (start, (start + end) // 2, end - 1):
                if at + 1 < len(starts) and starts[at + 1] <= address:
                    at = bisect.bisect_right(starts, address) - 1
                ours = rules[at] if at >= 0 else "uncovered"
                key = (ours, *theirs)
                if key not in verdicts:
                    verdicts[key] = judge(ours, tuple(theirs))
                if verdicts[key] != "exact":
                    worst = verdicts[key]
                    if worst == "no rule":
                        result["constructs"].add(" ".join(theirs))
                    else:
                        result["wrong"].append(f"{address:#x}: {worst}: {ours}, readelf {theirs}")
            result["exact"] += worst == "exact"
            result["no rule"] += worst == "no rule"


def compare(stacktap, rows, path, machine, is_sample):
    result = {"path": path, "machine": machine, "rows": 0, "exact": 0, "no rule": 0, "wrong": [],
              "constructs": set()}
    process = unwind_info(stacktap, "--summary", "--json", path)
    if process.returncode:
        result["none"] = "no call frame information" in process.stdout
        if not result["none"]:
            result["wrong"].append(process.stdout)
        return result
    result["summary"] = json.loads(process.stdout)
    process = subprocess.run([rows, path], capture_output=True, text=True, check=False)
    if process.stdout:
        result["libdw"] = json.loads(process.stdout)
    if process.returncode:
        result["wrong"].append("libdw: " + process.stderr)
    if not is_sample or result["summary"]["rows"] <= SAMPLE_ROWS:
        compare_rows(stacktap, path, machine, result)
    return result


def pick(tree):
    paths = list(PROGRAMS) + glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1plus")
    directories = ["/lib/x86_64-linux-gnu", "/lib64", "/usr/aarch64-linux-gnu/lib",
                   f"{tree}/usr/lib/aarch64-linux-gnu", f"{tree}/usr/bin"]
    for directory in directories:
        for name in SAMPLE + ["bash", "openssl", "python3.11", "perf*"]:
            paths += glob.glob(f"{directory}/{name}")
    return paths


def everything(tree):
    skipped = ("/proc", "/sys", "/dev", "/tmp", "/run")
    for root in ("/", tree):
        for directory, names, files in os.walk(root):
            names[:] = [name for name in names if os.path.join(directory, name) not in skipped and
                        (root != "/" or not os.path.exists(f"{directory}/{name}/.ci"))]
            yield from (os.path.join(directory, name) for name in files)


def unique(paths):
    seen = set()
    for path in paths:
        real = os.path.realpath(path)
        if real in seen or os.path.islink(path) and not os.path.exists(real):
            continue
        seen.add(real)
        machine = machine_of(real)
        if machine:
            yield real, machine


def check_files(stacktap, rows, files, is_sample):
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        jobs = [executor.submit(compare, stacktap, rows, path, machine, is_sample) for path, machine in files]
        results = [job.result() for job in jobs]
    for machine, name in ((62, "x86_64"), (183, "aarch64")):
        chosen = [result for result in results if result["machine"] == machine]
        wrong = [f"{result['path']}: {text}" for result in chosen for text in result["wrong"]]
        rows = sum(result["rows"] for result in chosen)
        exact = sum(result["exact"] for result in chosen)
        refused = sum(result["no rule"] for result in chosen)
        constructs = set().union(*[result["constructs"] for result in chosen])
        libdw = sum(result.get("libdw", {}).get("rows", 0) for result in chosen)
        libdw_exact = sum(result.get("libdw", {}).get("exact", 0) for result in chosen)
        tell(not wrong, f"{name}: {len(chosen)} files, {rows} rows of readelf: {exact} exact, "
             f"{refused} no rule, {len(wrong)} wrong", "\n".join(wrong))
        tell(rows > 1000 and exact >= 0.999 * rows, f"{name}: at least 99.9 % of rows are exact",
             constructs)
        tell(libdw > 1000 and libdw_exact >= 0.999 * libdw,
             f"{name}: {libdw_exact} of {libdw} rows of libdw come to the same")
        describe(chosen, constructs)
    return results


def describe(chosen, constructs):
    summaries = [result["summary"] for result in chosen if "summary" in result]
    text = sum(summary["text_bytes"] for summary in summaries)
    frames = sum(summary["eh_frame_bytes"] for summary in summaries)
    if text and frames:
        print(f"# {sum(s['bytes'] for s in summaries)} bytes of tables, "
              f"{sum(s['bytes'] for s in summaries) / frames:.3f} of .eh_frame; code with a rule "
              f"{sum(s['covered_bytes'] for s in summaries) / text:.4f}, not expressible "
              f"{sum(s['no_rule_bytes'] for s in summaries) / text:.6f} of executable bytes; "
              f"{sum('none' in r for r in chosen)} files have no call frame information")
    for construct in sorted(constructs):
        print(f"# no rule for: {construct}")


def check_ratios(results):
    for result in results:
        name = os.path.basename(result["path"])
        large = re.match(r"(libc\.so\.6|libpython3\.\d+m?\.so.*|libcrypto\.so\.3|libstdc\+\+.*|cc1plus|libLLVM.*)$",
                         name)
        summary = result.get("summary")
        if large and summary:
            ratio = summary["bytes"] / summary["eh_frame_bytes"]
            tell(ratio <= RATIO, f"{name}: the table is {ratio:.3f} of .eh_frame, compiled in "
                 f"{summary['compile_ns'] / 1e6:.0f} ms", result["path"])


def main():
    stacktap, directory, tree = sys.argv[1:4]
    whole = sys.argv[4:] == ["--all"]
    files = list(unique(everything(tree) if whole else pick(tree)))
    tell(len(files) >= (1200 if whole else 20), f"{len(files)} files to compare", files)
    check_ratios(check_files(stacktap, f"{directory}/unwind_rows", files, not whole))
    every = 1 if whole else 20
    for verdict in (*live.judge(directory, every), live.judge_ocaml(directory, every)):
        tell(*verdict)
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What names and lines cost, beside addr2line, llvm-symbolizer, libdwfl (eu-addr2line) and perf script, in a program of 100 MB, most of
it debug information."""

import json
import os
import resource
import shutil
import subprocess
import time

import perf_data
from row import row

PARTS = 56           # of 2 MB each, once strings are merged
MANY_PARTS = 560     # 1 GB of them
ADDRESSES = 20000
# and about how many addresses they are asked: some take milliseconds for one
PEERS = (("addr2line -fi", ["addr2line", "-fi", "-e"], ADDRESSES),
         ("llvm-symbolizer", ["llvm-symbolizer", "-i", "--no-demangle", "-e"], ADDRESSES),
         ("libdwfl (eu-addr2line -fi)", ["eu-addr2line", "-fi", "-e"], ADDRESSES // 10))
SOURCE = """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct part {
    std::map<std::string, std::vector<std::function<int(int)>>> some;
    std::unordered_map<int, std::string> others;
    int run(const std::string &text) { std::regex find("a" + std::to_string(N)); std::stringstream out;
        others[N] = std::regex_replace(text, find, "b"); some[text].push_back([=](int x) { return x * N; });
        std::vector<std::string> all(N + 1, text); std::sort(all.begin(), all.end());
        out << others[N] << all[0]; return some[text].back()(N) + out.str().size(); }
};
int all(const std::string &x)
{
    return part<1>().run(x) + part<2>().run(x) + part<3>().run(x) + part<4>().run(x) + part<5>().run(x);
}
"""


class Failed(Exception):
    """Why there are no numbers."""


def large_object(work, name, count):
    """Copies of one compiled file, each with symbols of its own, in one program. Nothing of it ever runs."""
    path = os.path.join(work, name)
    if os.path.exists(path):
        return path
    first = os.path.join(work, "part.o")
    subprocess.run(["g++", "-g", "-O1", "-c", "-x", "c++", "-", "-o", first], input=SOURCE, text=True, check=True)
    parts = [os.path.join(work, f"part{i}.o") for i in range(count)]
    for i, part in enumerate(parts):
        subprocess.run(["objcopy", f"--prefix-symbols=p{i}_", first, part], check=True)
    subprocess.run(["g++", "-static", "-no-pie", "-nostdlib", "-Wl,-e,0,--build-id,--unresolved-symbols=ignore-all",
                    *(f"-Wl,--defsym=p{i}___dso_handle=0" for i in range(count)), "-o", path + ".new", *parts],
                   check=True, stderr=subprocess.DEVNULL)
    os.rename(path + ".new", path)
    for part in parts:
        os.unlink(part)
    return path


def cost(*command, text=None):
    """Seconds of CPU that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold(path, *command, text=None):
    """Seconds and MiB read that it takes with nothing of the object in the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock, time.monotonic()
    subprocess.run(command, input=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=True)
    took = time.monotonic() - began
    return took, (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) / 2048


def measure_first(program, path, address):
    """Rows of one line, whole programs with all that they read."""
    size = f"{os.path.getsize(path) >> 20} MiB"
    took, read = cold(path, program, path, "--line", address)
    rows = []
    for peer, command, _ in PEERS:
        other, other_read = cold(path, *command, path, text=address + "\n")
        rows.append(row(f"names: first line, {size} not in the page cache", took, "s", peer, other,
                        f"whole programs; {read:.0f} MiB read, by the peer {other_read:.0f}"))
    return rows


def measure_perf(work, path, some, ours):
    """Names of functions alone, of samples at those addresses."""
    data = os.path.join(work, "perf.data")
    why = perf_data.make(path, [int(text, 16) for text in some], data) if shutil.which("perf") else "there is no perf (Debian's linux-perf)"
    if why:
        raise Failed(why)
    said = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout.splitlines()
    named = sum(not line.endswith("[unknown]") for line in said if line.strip())
    if named != len(some):
        raise Failed(f"perf script names {named} of {len(some)} samples")
    return [row(f"names: {len(some)} samples, from a cold table on", ours["all names"], "s", "perf script",
                cost("perf", "script", "-i", data, "-F", "ip,sym"),
                f"CPU time, functions alone; {os.path.getsize(path) >> 20} MiB, in the page cache; of perf the whole program")]


def measure(output):
    """Rows, and what perf could not be asked."""
    work = os.path.join(output, "bench-symbols")
    os.makedirs(work, exist_ok=True)
    path, addresses = large_object(work, "large", PARTS), os.path.join(work, "addresses")
    # both peers and we have it in memory
    subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
    done = subprocess.run([os.path.join(output, "bench", "bench_symbols"), path, str(ADDRESSES), addresses],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"bench_symbols failed ({done.returncode}): {done.stderr}")
    ours = {entry["name"]: entry["value"] for entry in map(json.loads, done.stdout.splitlines())}
    with open(addresses, encoding="utf-8") as file:
        some = file.readlines()
    note = f"CPU time; {os.path.getsize(path) >> 20} MiB, in the page cache; a peer's first has its start in it"
    rows = [row("names: warm lookups of a function", ours["warm names"] / 1e6, "M/s", note="in the table that the daemon keeps")]
    for peer, command, count in PEERS:
        if not shutil.which(command[0]):
            raise Failed(f"there is no {command[0]} (tests/setup build check)")
        one, many = cost(*command, path, text=some[0]), cost(*command, path, text="".join(some[:count]))
        rows += [row("names: first name in a cold debug object", ours["cold name"], "s", peer, one, note),
                 row("names: first line in a cold debug object", ours["cold line"], "s", peer, one, note),
                 row("names: warm lines, with what is inlined", ours["warm lines"], "/s", peer,
                     (count - 1) / max(many - one, 1e-3), note)]
    errors = []
    try:
        rows += measure_perf(work, path, some, ours)
    except Failed as e:
        errors.append(str(e))
    program, address = os.path.join(output, "bench", "bench_symbols"), some[0].strip()
    # copies are alike, so the first has this address in both
    rows += measure_first(program, path, address)
    rows += measure_first(program, large_object(work, "huge", MANY_PARTS), address)
    return rows, errors

# SPDX-License-Identifier: Apache-2.0
"""Frames of real runtimes: what node, java and Python write into perf maps, node into a jitdump, and Go's compiler into its tables,
against what a payload calls these frames. Maps and dumps are read here by themselves. Prints TAP.

usage: frame_types.py FRAME_TYPES WORK-DIRECTORY PYTHON-ROOT

PYTHON-ROOT has a Python of 3.12 or later with its C library, which need not be the machine's.
"""
import glob
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "otlp"))

import wire  # noqa: E402

RESULTS = []
PER_RUNTIME = 200
PATIENCE = 120

NODE = """
function hot(n) { let sum = 0; for (let i = 0; i < n; i++) sum += i % 7; return sum; }
class Cart { add(n) { return hot(n) + this.tax(n); } tax(n) { return n % 19; } }
const cart = new Cart();
let total = 0;
for (let i = 0; i < 20000; i++) total += cart.add(i % 100) + /a+b/.exec('aaab' + i).index;
process.stdout.write('done\\n');
process.stdin.resume();
"""

PYTHON = """
import argparse, sys
def hot(n):
    total = 0
    for i in range(n): total += i % 7
    return total
class Cart:
    def add(self, n): return hot(n) + self.tax(n)
    def tax(self, n): return n % 19
cart = Cart()
for i in range(2000): cart.add(i % 100)
parser = argparse.ArgumentParser()
parser.add_argument('--size', type=int)
parser.parse_args(['--size', '7'])
print('done', flush=True)
sys.stdin.read()
"""

# with C in it, which C's linker puts in front
GO = """package main

/*
int c_in_go(int n) { return n * 9; }
*/
import "C"

import (
	"fmt"
	"os"
)

//go:noinline
func goWork(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i % 7
	}
	return
}

func main() {
	fmt.Println(goWork(int(C.c_in_go(C.int(len(os.Args))))))
	fmt.Scanln()
}
"""

C = """#include <stdio.h>
int c_work(int n) { return n * 7; }
int main(int argc, char **argv) { (void)argv; printf("%d\\n", c_work(argc)); fflush(stdout); return getchar(); }
"""


def tell(good, what, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - frame types: {what}", flush=True)
    if not good and detail:
        print("\n".join("# " + line for line in str(detail).splitlines()[:20]))


def entries(path):
    """(start, size, name) of a map as it is written: hexadecimal, a size, the rest of the line."""
    found = []
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            words = line.rstrip("\n").split(" ", 2)
            if len(words) == 3:
                found.append((int(words[0], 16), int(words[1], 16), words[2]))
    return found


def dumped(path):
    """The same of a jitdump: its header has its own size, a record its kind and size, 0 is code."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = struct.unpack_from("=I", data, 8)[0], []
    while at + 16 <= len(data):
        kind, size = struct.unpack_from("=II", data, at)
        if at + size > len(data):
            break
        if kind == 0:
            start, length = struct.unpack_from("=QQ", data, at + 32)
            found.append((start, length, data[at + 56:data.index(b"\0", at + 56)].decode(errors="surrogateescape")))
        at += size
    return found


def choose(found):
    """Addresses in some of them, which no later entry has, and what is there."""
    wanted = {}
    numbered = list(enumerate(found))
    for number, (start, size, name) in random.Random(len(found)).sample(numbered, min(len(found), PER_RUNTIME)):
        address = start + size // 2
        if size and not any(other <= address < other + length for other, length, _ in found[number + 1:]):
            wanted[address] = name
    return wanted


class Looking:
    """Our program, which has seen the process."""

    def __init__(self, program, work, pid, *file):
        self.output = os.path.join(work, f"{pid}.dictionary")
        self.process = subprocess.Popen([program, str(pid), self.output, *file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        encoding="ascii")
        assert self.process.stdout.readline() == "ready\n"

    def frames(self, addresses):
        """Per address (name, frame type)."""
        try:
            self.process.communicate("".join(f"{a:x}\n" for a in addresses), timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return []
        with open(self.output, "rb") as file:
            tables, _ = wire.decode(file.read(), "ProfilesDictionary")
        strings, found = tables.string_table, []
        for index in tables.stack_table[1].location_indices:
            location = tables.location_table[index]
            kinds = {strings[a.key_strindex]: a.value.string_value for a in (tables.attribute_table[i] for i in location.attribute_indices)}
            function = tables.function_table[location.lines[0].function_index] if location.lines else None
            # where it is called the same in the object that has only one of them
            found.append((strings[function.system_name_strindex or function.name_strindex] if function else "",
                          kinds.get("profile.frame.type", "")))
        return found


def compare(what, kind, wanted, frames):
    wrong = [f"{address:x}: {frame}, wanted {name}" for (address, name), frame in zip(wanted.items(), frames)
             if frame != (name, kind)]
    tell(len(frames) == len(wanted) > 50 and not wrong, f"{what}: {len(wanted)} frames are {kind}, by their names",
         "\n".join(wrong) or (len(frames), len(wanted)))


def end(process, *maps):
    process.kill()
    process.wait()
    for path in maps:
        if os.path.exists(path):
            os.unlink(path)


def check_node(program, work):
    process = subprocess.Popen(["node", "--perf-basic-prof", "-e", NODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=work)
    path = f"/tmp/perf-{process.pid}.map"
    try:
        process.stdout.readline()
        looking = Looking(program, work, process.pid)
        wanted = choose(entries(path))
        ours = {a: n for a, n in [(start + size // 2, name) for start, size, name in entries(path)] if "hot" in n or "Cart" in n}
        compare("node", "v8js", wanted, looking.frames(wanted))
        tell(ours, "node: its map has functions of the script", sorted(wanted.values())[:20])
    finally:
        end(process, path)


def check_dump(program, work):
    process = subprocess.Popen(["node", "--perf-prof", "-e", NODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=work)
    path = os.path.join(work, f"jit-{process.pid}.dump")
    try:
        process.stdout.readline()
        looking = Looking(program, work, process.pid, path)
        found = dumped(path)
        wanted = choose(found)
        compare("node, jitdump", "v8js", wanted, looking.frames(wanted))
        tell(any("hot" in name for _, _, name in found), "node: its jitdump has functions of the script", found[:20])
    finally:
        end(process, path)


def ask_java(process, work, *words):
    """As jcmd does, which a JRE is without: a file and a signal open the socket, that is asked by protocol 1."""
    path, attach = f"/tmp/.java_pid{process.pid}", os.path.join(work, f".attach_pid{process.pid}")
    with open(attach, "w", encoding="ascii"):
        os.kill(process.pid, signal.SIGQUIT)
    until = time.monotonic() + PATIENCE
    while not os.path.exists(path) and time.monotonic() < until:
        time.sleep(0.1)
    os.unlink(attach)
    with socket.socket(socket.AF_UNIX) as java:
        java.connect(path)
        java.sendall(b"".join(word.encode() + b"\0" for word in ("1", "jcmd", *words, "", "")))
        with java.makefile("rb") as said:
            return said.read()


def check_java(program, work):
    """A tool that waits for a password; its map is asked for meanwhile."""
    process = subprocess.Popen(["java", "-Xcomp", "-XX:TieredStopAtLevel=1",
                                "sun.security.tools.keytool.Main", "-genkeypair", "-keystore", os.path.join(work, "none")],
                               stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=work)
    path = f"/tmp/perf-{process.pid}.map"
    try:
        process.stderr.read(1)
        looking = Looking(program, work, process.pid)
        said = ask_java(process, work, "Compiler.perfmap")
        tell(said.startswith(b"0\n"), "java: Compiler.perfmap", said)
        wanted = choose(entries(path))
        compare("java", "jvm", wanted, looking.frames(wanted))
        tell(any("java.lang" in name for name in wanted.values()), "java: its map has methods", sorted(wanted.values())[:20])
    finally:
        end(process, path, f"/tmp/.java_pid{process.pid}")


def check_python(program, work, root):
    loader = glob.glob(root + "/usr/lib*/ld-linux-*.so.*")[0]
    libraries, python = glob.glob(root + "/usr/lib/*-linux-gnu")[0], glob.glob(root + "/usr/bin/python3.*")[0]
    process = subprocess.Popen([loader, "--library-path", libraries, python, "-X", "perf", "-c", PYTHON],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=work, env=dict(os.environ, PYTHONHOME=root + "/usr"))
    path = f"/tmp/perf-{process.pid}.map"
    try:
        process.stdout.readline()
        looking = Looking(program, work, process.pid)
        found = entries(path)
        wanted = choose(found)
        compare(os.path.basename(python), "cpython", wanted, looking.frames(wanted))
        tell({"py::hot:<string>", "py::Cart.add:<string>"} <= {name for _, _, name in found}, "python: its map has functions of the script",
             found[-20:])
    finally:
        end(process, path)


def offsets(path):
    """Where functions are in the file: all are in one segment."""
    table = subprocess.run(["readelf", "-lW", path], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    segment = next(line.split() for line in table.splitlines() if line.startswith("  LOAD") and " R E " in line)
    offset, address = int(segment[1], 16), int(segment[2], 16)
    symbols = subprocess.run(["nm", path], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    return {words[2]: int(words[0], 16) - address + offset for words in map(str.split, symbols.splitlines()) if len(words) == 3}


def check_program(program, work, path, kind, names):
    found = offsets(path)
    process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        frames = Looking(program, work, process.pid, path).frames([found[name] + 1 for name in names])
        tell(frames == [(name, kind) for name in names], f"functions of {os.path.basename(path)} are {kind}", frames)
    finally:
        end(process)


def check_compiled(program, work):
    directory = os.path.join(work, "go")
    os.makedirs(directory)
    for name, text in (("go/main.go", GO), ("go/go.mod", "module example.test/work\n\ngo 1.18\n"), ("work.c", C)):
        with open(os.path.join(work, name), "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run(["go", "build", "-o", "in_go", "."], check=True, cwd=directory, env=dict(
        os.environ, GOCACHE=os.path.join(work, "cache"), GOFLAGS="-p=2", GOTOOLCHAIN="local", CGO_ENABLED="1"))
    subprocess.run(["gcc", "-O1", "-o", "in_c", "work.c"], check=True, cwd=work)
    check_program(program, work, os.path.join(directory, "in_go"), "go",
                  ["main.goWork", "main.main", "runtime.mallocgc", "fmt.Fprintln", "runtime.main"])
    check_program(program, work, os.path.join(directory, "in_go"), "native", ["c_in_go", "_start"])
    check_program(program, work, os.path.join(work, "in_c"), "native", ["c_work", "main"])


def main():
    program, work, python = sys.argv[1:]
    check_node(program, work)
    check_dump(program, work)
    check_java(program, work)
    check_python(program, work, python)
    check_compiled(program, work)
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CPU profile of Go through OTLP to default.pgo, by which Go's compiler inlines what it does not inline without.
It is asked itself, for one file, as `go build -pgo' compiles the whole standard library anew. TAP.

usage: pgo.py STACKTAP DIRECTORY
"""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from page import Tap  # noqa: E402

# step() is beyond the budget of an ordinary call, and within that of a hot one
HOT = """package main

type table struct{ cells [256]uint64 }

func (t *table) step(x uint64) uint64 {
	a := t.cells[x&255] ^ x<<7
	b := t.cells[a&255] + x>>9
	c := t.cells[b&255] ^ a<<3
	d := t.cells[c&255] + b>>5
	e := t.cells[d&255] ^ c<<11
	f := t.cells[e&255] + d>>13
	t.cells[f&255] = a + b + c + d + e + f
	return f*31 + e*17 + d*13 + c*11 + b*7 + a
}

func loop(t *table) (x uint64) {
	for i := 0; i < 60000000; i++ {
		x = t.step(x + uint64(i))
	}
	return x
}
"""
MAIN = """package main

import (
	"os"
	"runtime/pprof"
)

func main() {
	file, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(file)
	defer pprof.StopCPUProfile()
	println(loop(&table{}))
}
"""


def main():
    stacktap, work = sys.argv[1:]
    tap = Tap()
    found = re.search(r"go1\.(\d+)", subprocess.run(["go", "version"], capture_output=True, text=True).stdout) \
        if shutil.which("go") else None
    if not found or int(found.group(1)) < 21:
        tap.skip("go build -pgo inlines by a profile that was converted", "it needs Go 1.21; found: " + (found.group(0) if found else "none"))
        return tap.finish()
    place = os.path.join(work, "pgo")
    os.makedirs(place, exist_ok=True)
    for name, text in (("main.go", MAIN), ("hot.go", HOT), ("go.mod", "module pgo\n\ngo 1.21\n")):
        with open(os.path.join(place, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run(*command):
        return subprocess.run(command, cwd=place, check=True, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"})

    def inlined(*options):
        done = run("go", "tool", "compile", "-p", "main", "-m", *options, "-o", "/dev/null", "hot.go")
        return "inlining call to (*table).step" in done.stdout + done.stderr

    run("go", "build", "-pgo=off", "-o", "plain", ".")
    run("./plain", "cpu.pb.gz")
    run(stacktap, "convert", "-o", "cpu.otlp", "cpu.pb.gz")
    run(stacktap, "convert", "-o", "default.pgo", "cpu.otlp")
    tap.check("without a profile the hot call is not inlined", not inlined())
    tap.check("by default.pgo out of OTLP it is", inlined("-pgoprofile=default.pgo"))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

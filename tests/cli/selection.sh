#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One selection for all views: each option selects the same samples in each view, of a recording, of a store and of
# standard input.
# usage: selection.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: selection.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64
stacktap=$output/user-$arch/stacktap
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ -x "$stacktap" ] || {
	echo "not ok 1 - there is $stacktap (make user)"
	exit 1
}

python3 -B tests/otlp/make_sample.py --payloads 3 --events 20 "$scratch/sample.otlp"
python3 -B - "$stacktap" "$scratch" <<'PYTHON'
import json
import os
import subprocess
import sys
import urllib.request

stacktap, scratch = sys.argv[1:]
FILE = f"{scratch}/sample.otlp"
STORE = f"{scratch}/store"

COPY = 69
# what is selected, and the samples of cpu that these are: of each 15 seconds 43 of burn and 23 of copy
CASES = (
    (["--process", "burn"], 129), (["--process", "4712"], COPY), (["--thread", "copy"], COPY),
    (["--container", "0123456789ab"], 198), (["--service", "svc-burn"], 129),
    (["--cgroup", "/system.slice/svc-copy.service"], COPY), (["--cgroup", "/system.slice"], 198),
    (["--cgroup", "/sys/fs/cgroup/system.slice/svc-burn.service/"], 129),
    (["--from", "15"], 132), (["--to", "15"], 66), (["--from", "15", "--to", "30"], 66),
    (["--since", "16"], 66), (["--from", "@1700000015", "--process", "burn"], 86),
)


def run(arguments, stdin=None):
    with open(stdin or os.devnull, "rb") as file:
        return subprocess.run([stacktap, *arguments], stdin=file, capture_output=True, cwd=scratch, timeout=60)


def value_of(arguments, stdin=None):
    result = run(arguments, stdin)
    assert result.returncode == 0, (arguments, result.stderr)
    return json.loads(result.stdout)


def report(options, path, stdin):
    return sum(event["samples"] for event in value_of(["report", "--json", *options, path], stdin)["events"])


def flamegraph(options, path, stdin):
    return value_of(["flamegraph", "--json", "-o", "x.html", *options, path], stdin)["samples"]


def svg(options, path, stdin):
    return value_of(["flamegraph", "--json", "-o", "x.svg", *options, path], stdin)["samples"]


def convert(options, path, stdin):
    return value_of(["convert", "--json", "-o", "x.folded", *options, path], stdin)["samples"]


def diff(options, path, stdin):
    value = value_of(["diff", "--json", *options, FILE, path], stdin)
    assert value["before"]["samples"] == value["after"]["samples"], value
    return value["after"]["samples"]


def annotate(options, path, stdin):
    """Of code that is not here, so it does no more than find a function that burn alone has."""
    result = run(["annotate", *options, "alpha", path], stdin)
    text = result.stderr.decode()
    assert result.returncode == 1 and ("no function" in text) != ("binary" in text), text
    return "binary" in text


def serve(options, path, stdin):
    with open(stdin or os.devnull, "rb") as file, \
            subprocess.Popen([stacktap, "serve", "--json", *options, path], stdin=file, stdout=subprocess.PIPE) as child:
        try:
            address = json.loads(child.stdout.readline())["address"]
            with urllib.request.urlopen(f"{address.rstrip('/')}/report.json") as answer:
                value = json.load(answer)
        finally:
            child.terminate()
    return sum(event["samples"] for event in value["events"])


def store_export(options, path, stdin):
    """Of times whole messages: each has 15 seconds here, so the last 16 seconds are two of them."""
    said = value_of(["store", "export", "--json", "-o", "export.otlp", *options, path], stdin)
    assert said["samples"] == report([], f"{scratch}/export.otlp", None), said
    return said["samples"] // (2 if "--since" in options else 1)


def ask(options, path, stdin):
    """What a query selects is what options do."""
    query = "&".join(f"{name[2:]}={value}" for name, value in zip(options[::2], options[1::2]))
    with open(stdin or os.devnull, "rb") as file, \
            subprocess.Popen([stacktap, "serve", "--json", path], stdin=file, stdout=subprocess.PIPE) as child:
        try:
            address = json.loads(child.stdout.readline())["address"]
            with urllib.request.urlopen(f"{address.rstrip('/')}/report.json?{query}") as answer:
                value = json.load(answer)
        finally:
            child.terminate()
    return sum(event["samples"] for event in value["events"])


def main():
    with open(FILE, "rb") as file:
        data = file.read()
    first = 4 + int.from_bytes(data[:4], "big")
    os.mkdir(STORE)
    for time, part in ((1700000000000, data[:first]), (1700000015000, data[first:])):
        with open(f"{STORE}/profiles-{time}.otlp", "wb") as file:
            file.write(part)
    number = failed = 0
    sources = (("a store", STORE, None), ("a recording", FILE, None), ("standard input", "-", FILE))
    for view in (report, flamegraph, svg, convert, diff, annotate, serve, ask, store_export):
        for name, path, stdin in sources[:1] if view is store_export else sources:
            wrong = []
            for options, samples in CASES:
                try:
                    found = view(["--event", "cpu", *options], path, stdin)
                except (AssertionError, OSError, ValueError, KeyError) as error:
                    found = repr(error)
                if found != (samples != COPY if view is annotate else samples):
                    wrong.append(f"{' '.join(options)}: {found}, not {samples}")
            number += 1
            failed += bool(wrong)
            print(f"{'not ' if wrong else ''}ok {number} - {view.__name__} of {name} selects as all views do")
            for line in wrong:
                print(f"# {line}")
    print(f"1..{number}")
    return bool(failed)


sys.exit(main())
PYTHON

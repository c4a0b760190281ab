#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names and types of frames of real runtimes, node, java, Python and Go, against their own perf maps and symbols.
# usage: tests/oracle/frame_types.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/frame_types.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# programs of other users, as the parser is, look into it
chmod 755 "$work"
# Debian 12's Python has no -X perf
packages=$(tests/setup --list python-perf)
# what makes trees of that suite removes its packages
mkdir -p "$output/vm"
exec 9>"$output/vm/.lock"
flock 9
# shellcheck disable=SC2086 # a list of names
LAB=$output/vm tests/vm/lab/apt --suite trixie "$(dpkg --print-architecture)" only $packages >"$work/packages"
while read -r package; do dpkg-deb -x "$package" "$work/python"; done <"$work/packages"
exec 9>&-
python3 -B tests/oracle/frame_types.py "$output/oracle/frame_types" "$work" "$work/python"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the daemon finds of DWARF that is in several files, while it records, against llvm-symbolizer.
# usage: tests/oracle/daemon_lines.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/daemon_lines.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -B tests/oracle/daemon_lines.py "$output/oracle/daemon_lines" "$output/oracle/line_names" "$work"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lines and inlined functions of stripped Go programs against Go's own addr2line and llvm-symbolizer on unstripped ones.
# usage: tests/oracle/go_lines.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/go_lines.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
# the program as it is shipped, whose parser is confined
make --no-print-directory O="$output" user >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -B tests/oracle/go_lines.py "$output/oracle/line_names" "$output/user-$(uname -m | sed 's/aarch64/arm64/')/stacktap" "$work"

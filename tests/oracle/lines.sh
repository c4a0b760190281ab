#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions, lines and inlined frames against llvm-symbolizer, and recordings that are named later.
# usage: tests/oracle/lines.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/lines.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
# the program as it is shipped, whose parser is confined
make --no-print-directory O="$output" user >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -B tests/oracle/lines.py "$output/oracle/line_names" "$output/user-$(uname -m | sed 's/aarch64/arm64/')/stacktap" "$work"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions, lines and inlined functions of stripped programs of older Go versions, which Go's own command fetches, against
# their addr2line, DWARF and, where it knows inlined functions, their runtime. Not in CI.
# usage: tests/oracle/go_versions.sh BUILD-DIRECTORY [VERSION...]
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/go_versions.sh BUILD-DIRECTORY [VERSION...]}")
shift
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
mkdir -p "$output/go-versions"
python3 -B tests/oracle/go_versions.py "$output/oracle/line_names" "$output/go-versions" "$@"

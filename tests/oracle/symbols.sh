#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names of functions against nm, addr2line and objdump, over the system's own programs.
# usage: tests/oracle/symbols.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/symbols.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 tests/oracle/symbols.py "$output/oracle/symbol_names" "$work"

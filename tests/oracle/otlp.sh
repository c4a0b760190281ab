#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the encoder writes, read by the tests' own decoder and checked against every known rule.
# usage: tests/oracle/otlp.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/otlp.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 tests/oracle/otlp_file.py "$output/oracle/encode_file" "$work"

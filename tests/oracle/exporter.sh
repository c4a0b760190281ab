#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The exporter against a receiver that misbehaves as scripted.
# usage: tests/oracle/exporter.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/exporter.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 tests/oracle/exporter_cases.py "$output/oracle/export_driver" "$work"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The exporter against a receiver that misbehaves as scripted, and a gRPC server.
# usage: tests/oracle/exporter.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/exporter.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Debian's own Python has Debian's grpcio and protobuf
python=python3
"$python" -c 'import grpc, google.protobuf' 2>/dev/null || python=/usr/bin/python3
"$python" tests/oracle/exporter_cases.py "$output/oracle/export_driver" "$work"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The table of counters, the daemon's status, the manual page, the dashboard and the documents name the same things.
# The parser of metrics is a module of Debian's python3.
# usage: tests/oracle/status.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/status.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build dashboard >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$output/oracle/status_files" "$work"
man/counters daemon/counter/counters.def <man/stacktap-counters.7.scd.in >"$work/page.scd"
scdoc <"$work/page.scd" >"$work/page.7"
cp "$output/grafana/stacktap.json" "$work/dashboard.json"
/usr/bin/python3 tests/oracle/status.py "$work"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Unwind tables and the walk against readelf, libdw and libdwfl, over a sample of the system's
# programs and the arm64 guest's; over all of them with UNWIND_ALL=1.
# usage: tests/oracle/unwind.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/unwind.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
make --no-print-directory O="$output" user >&2
python3 tests/oracle/unwind.py "$output/user-$(uname -m)/stacktap" "$output/oracle" \
	"$output/vm/arm64/root" ${UNWIND_ALL:+--all}

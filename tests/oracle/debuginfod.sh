#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recordings that are named by a debuginfod server, elfutils' own, and by servers that do what they should not.
# usage: tests/oracle/debuginfod.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/debuginfod.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
# the program as it is shipped, whose fetcher is confined
make --no-print-directory O="$output" user >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -B tests/oracle/debuginfod.py "$output/user-$(uname -m | sed 's/aarch64/arm64/')/stacktap" "$work"

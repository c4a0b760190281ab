#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lines of frames in kernel modules by their files, against llvm-symbolizer.
# usage: tests/oracle/kernel_modules.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/kernel_modules.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
# the program as it is shipped, whose parser is confined
make --no-print-directory O="$output" user >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -B tests/oracle/kernel_modules.py "$output/user-$(uname -m | sed 's/aarch64/arm64/')/stacktap" "$work"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names, lines and inlined frames of Debian's own libraries by their debug packages, for both architectures.
# usage: tests/oracle/debug_packages.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/debug_packages.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
make --no-print-directory O="$output" oracle-build >&2
make --no-print-directory O="$output" user >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages=$(tests/setup --list debug-files)
for arch in amd64 arm64; do
	# shellcheck disable=SC2086 # a list of names
	LAB=$output/vm tests/vm/lab/apt "$arch" only $packages >"$work/$arch.list"
	mkdir "$work/$arch"
	while read -r package; do dpkg-deb -x "$package" "$work/$arch"; done <"$work/$arch.list"
done
python3 -B tests/oracle/debug_packages.py "$output/oracle" "$output/user-$(uname -m | sed 's/aarch64/arm64/')/stacktap" "$work"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands of the documents that read recordings, typed as they stand there; and what the documents show of outputs.
# usage: shown.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: shown.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1

arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 -B tests/cli/shown.py "$output/user-$arch/stacktap" "$scratch" README.md docs/*.md

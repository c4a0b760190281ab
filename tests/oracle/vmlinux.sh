#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lines of a kernel's frames by its vmlinux, against llvm-symbolizer; with FULL=1 also of Debian's, whose package has 860 MB.
# usage: tests/oracle/vmlinux.sh BUILD-DIRECTORY
set -eu

output=$(realpath -m "${1:?usage: tests/oracle/vmlinux.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.."
# the program as it is shipped, whose parser is confined
make --no-print-directory O="$output" user >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
debian=
if [ -n "${FULL:-}" ]; then
	export LAB=$output/vm
	kernels=$(tests/vm/lab/apt amd64 kernel)
	release=${kernels%% *}
	debian=$output/vm/vmlinux-$release
	if [ ! -e "$debian" ]; then
		package=$(tests/vm/lab/apt amd64 only "linux-image-$release-dbg")
		# it is all of 860 MB, and unpacked for once
		dpkg-deb --fsys-tarfile "$package" | tar -xO "./usr/lib/debug/boot/vmlinux-$release" >"$debian.new"
		mv "$debian.new" "$debian"
		rm "$package"
	fi
fi
python3 -B tests/oracle/vmlinux.py "$output/user-$(uname -m | sed 's/aarch64/arm64/')/stacktap" "$work" ${debian:+"$debian"}

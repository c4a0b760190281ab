# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests here that need the lab, at the top of the tree and with $output set: arch, LAB, and the
# release of the guest's kernel.
# shellcheck shell=bash disable=SC2034,SC2154 # shared with those that source this

arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64
export LAB=$output/vm
release=$(cat "$LAB/$arch/kernel/release" 2>/dev/null) || {
	echo "not ok 1 - the lab is there (make lab)"
	exit 1
}

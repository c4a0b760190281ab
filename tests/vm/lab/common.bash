# SPDX-License-Identifier: Apache-2.0
# Sourced by the lab's scripts: names of architectures, where the lab is, messages.
# shellcheck shell=bash

# Some machines keep depmod and friends out of an ordinary user's PATH.
PATH=$PATH:/usr/sbin:/sbin

lab_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB=${LAB:-build/vm}
mkdir -p "$LAB"
LAB=$(cd "$LAB" && pwd)
export LAB

say() { printf 'lab: %s\n' "$*" >&2; }

die() {
	printf 'lab: %s\n' "$*" >&2
	exit 1
}

# room GIB WHAT: so much is free where the lab is; what runs out of it later fails in odd places.
room() {
	local free
	free=$(df --output=avail --block-size=M "$LAB" | tail -n 1 | tr -dc 0-9)
	((free >= $1 * 1024)) ||
		die "$2 needs $1 GiB below $LAB and $((free / 1024)) GiB are free: make room, or build elsewhere (make O=DIRECTORY)"
}

# arch_set NAME: ARCH as the project says it, DEB_ARCH as Debian does, LIB_ARCH as libraries do.
# shellcheck disable=SC2034 # read by those who source this
arch_set() {
	case $1 in
	amd64 | x86_64) ARCH=x86_64 DEB_ARCH=amd64 LIB_ARCH=x86_64-linux-gnu ;;
	arm64 | aarch64) ARCH=arm64 DEB_ARCH=arm64 LIB_ARCH=aarch64-linux-gnu ;;
	*) die "unknown architecture '$1': x86_64 or arm64" ;;
	esac
}

packages() { "$lab_here/../../setup" --list "$1"; }

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `make install` lays out for DKMS is added, built and installed by Debian's dkms, with Debian's
# headers package, in a tree of its own; a guest then loads that very module.
# usage: dkms.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: dkms.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=tap.bash
. tests/install/tap.bash
# shellcheck source-path=SCRIPTDIR source=lab.bash
. tests/install/lab.bash

version=$(sed -n 's/^#define STACKTAP_VERSION *"\(.*\)"/\1/p' include/stacktap/version.h)
scratch=$output/dkms-$arch
rm -rf "$scratch"
mkdir -p "$scratch"/{state,modules,log}

# An ordinary user is root in a namespace of its own; a container that allows none has a root.
enter=(unshare --user --map-root-user --mount --pid --fork)
"${enter[@]}" true 2>/dev/null || enter=(unshare --mount --pid --fork)
"${enter[@]}" true 2>/dev/null || {
	skip "dkms in a tree of its own" "no mount namespaces here: neither root nor user namespaces"
	finish
	exit 77
}

tests/vm/lab/prepare --userland dkms "$arch" dkms make gcc-12 passwd "linux-headers-$release" >&2 || {
	check "Debian's dkms and headers can be unpacked" false
	finish
	exit 1
}
tree=$(realpath "$LAB/$arch/userland-dkms")

check "make install lays out the sources" \
	make --no-print-directory O="$output" ARCH="$arch" DESTDIR="$scratch/root" PREFIX=/usr install
sources=$scratch/root/usr/src/stacktap-$version
check "they are where dkms looks" test -f "$sources/dkms.conf" || {
	finish
	exit 1
}
cp -a "$tree/usr/lib/modules/." "$scratch/modules/"
mkdir -p "$tree/usr/src/stacktap-$version"

# In the tree: what dkms writes goes to the scratch directory, the tree stays as it was unpacked.
cat >"$scratch/in" <<'IN'
set -e
tree=$1 scratch=$2 sources=$3
shift 3
mount --bind "$scratch/state" "$tree/var/lib/dkms"
mount --bind "$scratch/modules" "$tree/usr/lib/modules"
mount --bind "$sources" "$tree/usr/src/${sources##*/}"
mount -t tmpfs tmp "$tree/tmp"
mount --rbind /dev "$tree/dev"
mount -t proc proc "$tree/proc" 2>/dev/null || mount --rbind /proc "$tree/proc"
exec env -i PATH=/usr/sbin:/usr/bin LC_ALL=C chroot "$tree" "$@"
IN
in_tree() { "${enter[@]}" bash "$scratch/in" "$tree" "$scratch" "$sources" "$@"; }

check "dkms add" in_tree dkms add "stacktap/$version"
# dkms.conf's three conditions, one not met at a time: 77 is dkms's "should not be built"
excluded() {
	local status
	in_tree dkms build "stacktap/$version" "$@"
	status=$?
	[ $status -eq 77 ]
}
mkdir "$scratch/modules/no-cgroups"
sed '/^CONFIG_CGROUPS=/d' "$tree/usr/src/linux-headers-$release/.config" >"$scratch/modules/no-cgroups/.config"
headers=(--kernelsourcedir "/usr/src/linux-headers-$release")
check "dkms leaves out a kernel older than the oldest" excluded -k "5.9.0-8-amd64" "${headers[@]}"
check "dkms leaves out an architecture that there is no code for" \
	excluded -k "$release" -a riscv64 "${headers[@]}"
check "dkms leaves out a kernel without what the module needs" \
	excluded -k "$release" --kernelsourcedir /usr/lib/modules/no-cgroups
check "dkms build" in_tree dkms build "stacktap/$version" -k "$release" ||
	sed 's/^/#   /' "$scratch/state/stacktap/$version/build/make.log"
check "dkms install" in_tree dkms install "stacktap/$version" -k "$release"
same "dkms status says installed" "$(in_tree dkms status stacktap 2>&1)" \
	"stacktap/$version, $release, $(uname -m): installed"
same "modprobe finds it by name" \
	"$(in_tree modprobe -S "$release" -n --show-depends stacktap 2>&1 | sed 's/ *$//')" \
	"insmod /lib/modules/$release/updates/dkms/stacktap.ko"

module=$scratch/modules/$release/updates/dkms/stacktap.ko
# Debian's own modules say what this kernel accepts.
example=$(find "$LAB/$arch/kernel/usr/lib/modules/$release/kernel/net" -name '*.ko' | sort | head -n 1)
same "vermagic is that of Debian's own modules" "$(/sbin/modinfo -F vermagic "$module" 2>&1)" \
	"$(/sbin/modinfo -F vermagic "$example")"
same "MODULE_VERSION is the product's" "$(/sbin/modinfo -F version "$module" 2>&1)" "$version"

mkdir -p "$scratch/share"
cp "$module" "$scratch/share/" 2>/dev/null
cat >"$scratch/share/load" <<'LOAD'
set -e
insmod /share/stacktap.ko
test "$(cat /sys/module/stacktap/version)" = "$1"
test -c /dev/stacktap
rmmod stacktap
touch /share/loaded
LOAD
check "a guest loads that very module and unloads it" tests/vm/lab/boot --arch "$arch" \
	--timeout 120 --quiet --share "$scratch/share" -- sh /share/load "$version"
check "it came to the end of that" test -e "$scratch/share/loaded"

check "dkms remove" in_tree dkms remove "stacktap/$version" --all
same "and nothing is left of it" \
	"$(in_tree dkms status stacktap 2>&1; find "$scratch/modules" -name 'stacktap*')" ""
rmdir "$tree/usr/src/stacktap-$version"
finish

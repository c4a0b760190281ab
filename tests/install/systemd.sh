#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `make install` lays out, in a guest that systemd has booted: the module is loaded, udev gives the
# device to the group, the unit with all its restrictions starts, profiles, reloads, comes back and takes over the
# session of the one that was killed, stops.
# usage: systemd.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: systemd.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=tap.bash
. tests/install/tap.bash
# shellcheck source-path=SCRIPTDIR source=lab.bash
. tests/install/lab.bash

tests/vm/lab/prepare --userland systemd "$arch" systemd systemd-sysv udev >&2 || {
	check "Debian's systemd can be unpacked" false
	finish
	exit 1
}

scratch=$output/systemd-$arch
rm -rf "$scratch"
mkdir -p "$scratch"/share
check "make install lays everything out" make --no-print-directory O="$output" ARCH="$arch" \
	DESTDIR="$scratch/root" PREFIX=/usr install
check "the module and the workload are built" \
	make --no-print-directory O="$output" ARCH="$arch" stage
# where DKMS would put it
install -D "$output/stage-$arch/stacktap.ko" \
	"$scratch/root/usr/lib/modules/$release/updates/dkms/stacktap.ko"
cat >"$scratch/root/etc/stacktap/stacktap.conf" <<'CONF'
[profile]
rate = 199
window_seconds = 3
[symbols]
wait_seconds = 30
[metrics]
listen = 127.0.0.1:9470
CONF
# A system call that the unit's filter lacks ends the daemon here; a user's daemon would do without. An
# emulated CPU may need minutes for the tables that come before the first sample.
mkdir "$scratch/root/etc/systemd/system/stacktapd.service.d"
cat >"$scratch/root/etc/systemd/system/stacktapd.service.d/strict.conf" <<'CONF'
[Service]
SystemCallErrorNumber=kill
TimeoutStartSec=600
WatchdogSec=600
CONF
cp tests/install/tap.bash tests/install/systemd.guest "$output/stage-$arch/workload/no_frame_pointers" \
	"$scratch/share/"
cp -r tests/otlp "$scratch/share/otlp"
# a boot is many programs, which emulation translates once if they are always at the same addresses
tests/vm/lab/boot --arch "$arch" --root systemd --systemd "$scratch/root" --share "$scratch/share" \
	--timeout 1800 --quiet --append norandmaps -- bash /share/systemd.guest "$tap_number" >"$scratch/tap"
status=$?
grep -v '^1\.\.' "$scratch/tap"
tap_failed=$((tap_failed + $(grep -c '^not ok' "$scratch/tap")))
tap_number=$((tap_number + $(grep -cE '^(not )?ok' "$scratch/tap")))
check "the guest came to its end, without a complaint of its kernel" test "$status" -eq 0
finish

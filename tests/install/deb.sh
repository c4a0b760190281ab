#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Debian package of the module's sources: its scripts, run in a tree of their own with Debian's dkms,
# build and install the module, complain aloud where headers are missing, and take all of it away.
# usage: deb.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: deb.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=tap.bash
. tests/install/tap.bash
# shellcheck source-path=SCRIPTDIR source=lab.bash
. tests/install/lab.bash

version=$(sed -n 's/^#define STACKTAP_VERSION *"\(.*\)"/\1/p' include/stacktap/version.h)
scratch=$output/deb-$arch
rm -rf "$scratch"
mkdir -p "$scratch"/{state,modules}

tests/vm/lab/prepare --userland dkms "$arch" dkms make gcc-12 passwd "linux-headers-$release" >&2 || {
	check "Debian's dkms and headers can be unpacked" false
	finish
	exit 1
}
tree=$(realpath "$LAB/$arch/userland-dkms")
tests/vm/lab/inside "$tree" -- true || {
	skip "the package's scripts" "no mount namespaces here: neither root nor user namespaces"
	finish
	exit 77
}

check "make deb" make --no-print-directory O="$output" deb
package=$output/deb/stacktap-dkms_${version}_all.deb
check "there is a package of this version" test -s "$package" || {
	finish
	exit 1
}
dpkg-deb -x "$package" "$scratch/data"
dpkg-deb -e "$package" "$scratch/control"
check "its checksums are right" sh -c "cd '$scratch/data' && md5sum --quiet -c ../control/md5sums"
check "rules of udev, the group and modules-load are in it" test -s "$scratch/data/lib/udev/rules.d/70-stacktap.rules" \
	-a -s "$scratch/data/usr/lib/sysusers.d/stacktap.conf" -a -s "$scratch/data/usr/lib/modules-load.d/stacktap.conf"
same "it depends on dkms" "$(dpkg-deb -f "$package" Depends)" "dkms, kmod, passwd"

cp -a "$tree/usr/lib/modules/." "$scratch/modules/"
cp -a "$tree/etc" "$scratch/etc"
script() {
	tests/vm/lab/inside "$tree" "$scratch/state:/var/lib/dkms" "$scratch/modules:/usr/lib/modules" \
		"$scratch/etc:/etc" "$scratch/control:/mnt" \
		"$scratch/data/usr/src/stacktap-$version:/usr/src/stacktap-$version" -- "$@"
}
status() { script dkms status stacktap 2>&1; }

# what an earlier make install of another version has left registered
mkdir -p "$scratch/state/stacktap/0.0.9"
cp -a "$scratch/data/usr/src/stacktap-$version" "$scratch/control/earlier"
sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="0.0.9"/' "$scratch/control/earlier/dkms.conf"
ln -s /mnt/earlier "$scratch/state/stacktap/0.0.9/source"
same "an earlier version is registered" "$(status)" "stacktap/0.0.9: added"
check "postinst configure" script sh /mnt/postinst configure
same "the module is installed for the kernel whose headers are there, the earlier one gone" "$(status)" \
	"stacktap/$version, $release, $(uname -m): installed"
check "the group was made" grep -q '^stacktap:' "$scratch/etc/group"
check "and the user, who cannot log in" grep -q '^stacktap:.*:/usr/sbin/nologin$' "$scratch/etc/passwd"
check "postinst configure again, as dpkg-reconfigure does" script sh /mnt/postinst configure "$version"
# running RELEASE: postinst, as it is where that kernel runs
running() {
	mkdir -p "$scratch/control/bin"
	printf '#!/bin/sh\n[ "$1" = -r ] && echo %s || exec /usr/bin/uname "$@"\n' "$1" >"$scratch/control/bin/uname"
	chmod +x "$scratch/control/bin/uname"
	script env PATH=/mnt/bin:/usr/sbin:/usr/bin sh /mnt/postinst configure >"$scratch/said" 2>&1
}
running "$release"
check "no complaint about headers that are there" sh -c "! grep -q 'no headers' '$scratch/said'"
running 6.1.0-99-amd64
check "headers of the running kernel are missed aloud" \
	grep -q "no headers of the running kernel, 6.1.0-99-amd64" "$scratch/said"
check "and how to get them is said" grep -q "apt install linux-headers-6.1.0-99-amd64" "$scratch/said"
check "prerm remove" script sh /mnt/prerm remove
check "postrm remove" script sh /mnt/postrm remove
same "nothing is left" "$(status; find "$scratch/modules" -name 'stacktap*')" ""

# A source that does not compile must not leave dpkg half way, and must not go unnoticed.
sed -i '1i #error broken on purpose' "$scratch/data/usr/src/stacktap-$version/kmod/main.c"
script sh /mnt/postinst configure >"$scratch/said" 2>&1
same "postinst ends well where the build fails" "$?" 0
check "and says so aloud" grep -q "the module was not built for $release" "$scratch/said"
check "with what the compiler says" grep -q "broken on purpose" "$scratch/said"
same "dkms-module tells it by its exit status" "$(running "$release"
	script env PATH=/mnt/bin:/usr/sbin:/usr/bin \
		sh "/usr/src/stacktap-$version/packaging/dkms-module" install "$version" >/dev/null 2>&1
	echo $?)" 1
# the next version takes the place of one that could not be built, too
check "prerm upgrade" script sh /mnt/prerm upgrade
same "nothing of dkms is left" "$(status)" ""
rmdir "$tree/usr/src/stacktap-$version" 2>/dev/null
finish

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make install` below a DESTDIR lays out exactly what it says, what it lays out works, and
# `make uninstall` takes all of it away again, but not a configuration that somebody changed.
# usage: install.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: install.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=tap.bash
. tests/install/tap.bash

root=$output/install-root
version=$(sed -n 's/^#define STACKTAP_VERSION *"\(.*\)"/\1/p' include/stacktap/version.h)
installing() { make --no-print-directory O="$output" DESTDIR="$root" PREFIX=/usr "$1"; }
files() { (cd "$root" && find . ! -type d -printf '/%P %m\n' | sort); }

rm -rf "$root"
check "make install" installing install
commands=$("$root/usr/bin/stacktap" --help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
# shellcheck disable=SC2086 # words
same "every file is in its place with its mode" "$(files | grep -v ^/usr/src/)" "$(sort <<LIST
/etc/modules-load.d/stacktap.conf 644
/etc/stacktap/stacktap.conf 600
/etc/systemd/system/stacktapd.service 644
/etc/sysusers.d/stacktap.conf 644
/etc/udev/rules.d/70-stacktap.rules 644
/usr/bin/stacktap 755
/usr/sbin/stacktap-soak 755
/usr/sbin/stacktapd 755
/usr/share/bash-completion/completions/stacktap 644
/usr/share/bash-completion/completions/stacktap-soak 644
/usr/share/bash-completion/completions/stacktapd 644
/usr/share/doc/stacktap/secure-boot.md 644
/usr/share/fish/vendor_completions.d/stacktap-soak.fish 644
/usr/share/fish/vendor_completions.d/stacktap.fish 644
/usr/share/fish/vendor_completions.d/stacktapd.fish 644
/usr/share/man/man4/stacktap.4 644
/usr/share/man/man5/stacktap-formats.5 644
/usr/share/man/man5/stacktap.conf.5 644
/usr/share/man/man7/stacktap-counters.7 644
/usr/share/man/man8/stacktap-soak.8 644
/usr/share/man/man8/stacktap.8 644
/usr/share/man/man8/stacktapd.8 644
$(printf '/usr/share/man/man8/stacktap-%s.8 644\n' $commands)
/usr/share/zsh/vendor-completions/_stacktap 644
/usr/share/zsh/vendor-completions/_stacktap-soak 644
/usr/share/zsh/vendor-completions/_stacktapd 644
LIST
)"
same "the sources for DKMS are all of the module's, what builds them, and no others" \
	"$(files | sed -n "s|^/usr/src/stacktap-$version/||p")" \
	"$(find Kbuild dkms.conf packaging/dkms-module kmod include -path kmod/kmod.mk -o -type f -printf '%p 644\n' | sort)"
same "dkms.conf has the product's version" \
	"$(sed -n 's/^PACKAGE_VERSION=//p' "$root/usr/src/stacktap-$version/dkms.conf")" "\"$version\""

for program in usr/bin/stacktap usr/sbin/stacktapd; do
	said=$("$root/$program" --version 2>&1)
	check "$program --version says $version ($said)" grep -qwF "$version" <<<"$said"
done
while read -r page; do
	command -v groff >/dev/null || {
		skip "${page##*/} formats without a complaint" "no groff here"
		continue
	}
	same "${page##*/} formats without a complaint" "$(groff -man -Kutf8 -Tutf8 -ww -z "$page" 2>&1)" ""
	while IFS='(' read -r name section; do
		check "${page##*/} refers to $name($section), which is there" \
			test -e "$root/usr/share/man/man$section/$name.$section"
	done < <(groff -man -Kutf8 -Tascii -P-cbou -rLL=1000n "$page" | sed -n '/^SEE ALSO/,$p' |
		grep -oE '\bstacktap[a-z.-]*\([0-9]' | sort -u)
done < <(find "$root/usr/share/man" -type f | sort)
# missing PAGE: which lines of standard input it has not
missing() {
	awk 'NR == FNR { text = text $0 "\n"; next } !index(text, $0)' \
		<(groff -man -Kutf8 -Tutf8 -P-cbou -rLL=1000n "$root/usr/share/man/$1") -
}
if command -v groff >/dev/null; then
	same "stacktap(4) has each name of the ABI's header" \
		"$(grep -oE '\bSTACKTAP_[A-Z0-9_]*[A-Z0-9]\b' include/uapi/linux/stacktap.h | missing man4/stacktap.4)" ""
	same "stacktap-formats(5) has all that docs/formats.md names" \
		"$(grep -oE '`[^`]+`' docs/formats.md | tr -d '`' | missing man5/stacktap-formats.5)" ""
else
	skip "stacktap(4) and stacktap-formats(5) are whole" "no groff here"
fi
for file in "$root"/usr/share/bash-completion/completions/*; do
	check "completion for ${file##*/} is bash" bash -n "$file"
done
same "no file names the place it was staged in" "$(grep -rIlF -e "$root" "$root")" ""
same "no placeholder is left" "$(grep -rIlE '@[A-Z]+@' "$root")" ""

if command -v systemd-analyze >/dev/null; then
	unit=$output/install-unit/stacktapd.service
	mkdir -p "${unit%/*}"
	# the unit starts what is not installed here
	sed "s|=\([-!]\?\)/usr/sbin/|=\1$root/usr/sbin/|" "$root/etc/systemd/system/stacktapd.service" >"$unit"
	same "systemd accepts the unit" "$(systemd-analyze verify --man=no "$unit" 2>&1 | grep -F stacktapd)" ""
else
	skip "systemd accepts the unit" "no systemd-analyze here"
fi
if command -v systemd-sysusers >/dev/null; then
	mkdir -p "$output/install-users/etc"
	: >"$output/install-users/etc/group"
	check "systemd-sysusers makes the user and its group" \
		systemd-sysusers --root="$output/install-users" "$root/etc/sysusers.d/stacktap.conf"
	check "the group is there" grep -q '^stacktap:' "$output/install-users/etc/group"
	check "and the user, who cannot log in" \
		grep -q '^stacktap:.*:/usr/sbin/nologin$' "$output/install-users/etc/passwd"
	rm -rf "$output/install-users"
else
	skip "systemd-sysusers makes the user and its group" "no systemd-sysusers here"
fi

check "make uninstall" installing uninstall
same "not a file is left" "$(files)" ""

check "make install, once more" installing install
echo '# a change' >>"$root/etc/stacktap/stacktap.conf"
check "make install over it" installing install
check "keeps a configuration that was changed" grep -q '^# a change' "$root/etc/stacktap/stacktap.conf"
check "make uninstall" installing uninstall
same "leaves that alone" "$(files)" "/etc/stacktap/stacktap.conf 600"
finish

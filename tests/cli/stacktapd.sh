#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# stacktapd without a module: options, the configuration file, the manual's agreement with both.
# usage: stacktapd.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: stacktapd.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64
stacktapd=$output/user-$arch/stacktapd
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

[ -x "$stacktapd" ] || {
	echo "not ok 1 - there is $stacktapd (make user)"
	exit 1
}

run() {
	local want=$1 have
	shift
	timeout 30 "$stacktapd" "$@" </dev/null >"$scratch/out" 2>"$scratch/err"
	have=$?
	[ "$have" -eq "$want" ] || {
		echo "exit status $have, not $want"
		cat "$scratch/out" "$scratch/err"
		return 1
	}
}

# What reads files of others, shows or disassembles is not in it.
links_few() {
	! readelf -d "$stacktapd" | grep -E 'NEEDED.*\[lib(dw|elf|capstone|ncurses|tinfo)'
}

says() {
	grep -qF -- "$1" "$scratch/err" || {
		echo "no '$1' in:"
		cat "$scratch/err"
		return 1
	}
}

check "--help" run 0 --help
check "--help fits 80 columns" test "$(wc -L <"$scratch/out")" -le 80
while read -r option; do
	check "the manual knows $option" grep -qF -- "*$option*" man/stacktapd.8.scd
done < <(grep -oE -- '--[a-z-]+' "$scratch/out" | sort -u)
check "--version" run 0 --version
check "an unknown option" run 2 --bogus
check "an argument" run 2 extra
check "the argument is named" says extra
check "an unknown log level" run 2 --log-level loud
check "the log level is named" says loud

check "a missing file that was named" run 2 --config "$scratch/none.conf"
check "it is named" says "$scratch/none.conf: No such file"
check "--dump-config" run 0 --dump-config --config packaging/stacktap.conf
cp "$scratch/out" "$scratch/defaults.conf"
check "--dump-config of its own output" run 0 --dump-config --config "$scratch/defaults.conf"
same "is the same" "$(cat "$scratch/out")" "$(cat "$scratch/defaults.conf")"
: >"$scratch/empty.conf"
check "an empty file" run 0 --dump-config --config "$scratch/empty.conf"
same "is the default" "$(cat "$scratch/out")" "$(cat "$scratch/defaults.conf")"

# what the shipped file shows as defaults is what they are
sed 's/^#\([a-z_]* =\)/\1/' packaging/stacktap.conf >"$scratch/shipped.conf"
check "the shipped file with all comments taken away" run 0 --dump-config --config "$scratch/shipped.conf"
same "is the default too" "$(cat "$scratch/out")" "$(cat "$scratch/defaults.conf")"
while read -r option; do
	check "the manual knows $option" grep -qE "^\*$option\*|, \*$option\*" man/stacktap.conf.5.scd
	check "the shipped file shows $option" grep -qE "^#$option =" packaging/stacktap.conf
done < <(sed -n 's/^\([a-z_]*\) =.*/\1/p' "$scratch/defaults.conf" | sort -u)

bad() {
	printf '%b' "$2" >"$scratch/bad.conf"
	check "$1: --check-config" run 1 --check-config --config "$scratch/bad.conf"
	check "$1: says '$3'" says "$3"
}
bad "rate 0" '[profile]\nrate = 0\n' "bad.conf:2: rate must be a number from 1 to 10000"
bad "unknown event" '[profile]\nevent = cylces\n' "did you mean \`cycles'"
bad "unknown option" '[export]\n\nurl = x\n' "bad.conf:3: unknown option \`url' in section [export]"
bad "an option with a letter too many" '[export]\nendpoints = x\n' "did you mean \`endpoint'?"
bad "an empty unknown section" '[profile]\n[stores]\n' "bad.conf:2: unknown section [stores]; did you mean \`store'?"
bad "a section that resembles none" '[x]\n' "bad.conf:1: unknown section [x]"
check "and proposes none" bash -c '! grep -q "did you mean" "$1"' - "$scratch/err"
bad "no such cgroup" '[filter]\ncgroups = no/such.slice\n' "cgroup"
check "which hinders nobody from printing it" run 0 --dump-config --config "$scratch/bad.conf"
bad "no ini file" 'hello, world\n' "bad.conf:1:"
printf '' >"$scratch/bad.conf"
OTEL_EXPORTER_OTLP_PROTOCOL=thrift check "a wrong variable: --check-config" run 1 --check-config --config "$scratch/bad.conf"
check "a wrong variable is named" says 'OTEL_EXPORTER_OTLP_PROTOCOL is "thrift"'
OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318 check "a daemon does not start with one" run 2 --no-load-module --config "$scratch/bad.conf"
check "and says why it does not" says "OTEL_EXPORTER_OTLP_ENDPOINT does not start with http://"
check "a good file" run 0 --check-config --config packaging/stacktap.conf
check "a good file says nothing" test ! -s "$scratch/err" -a ! -s "$scratch/out"

if [ -e /sys/module/stacktap ]; then
	skip "without a module" "the module is loaded here"
elif [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
	skip "without a module" "needs root and a mount namespace"
else
	printf '[store]\ndirectory = %s/store\n' "$scratch" >"$scratch/store.conf"
	# a /run of its own: nothing is left on this machine
	# shellcheck disable=SC2016 # the inner shell expands it
	check "without a module it ends" unshare --mount sh -c 'mount -t tmpfs tmp /run &&
		"$1" --no-load-module --config "$2" >"$3/out" 2>"$3/err"; test $? -eq 1' - \
		"$stacktapd" "$scratch/store.conf" "$scratch"
	check "and says why" says "modprobe stacktap"
fi
check "it is linked with no reader of debugging information, screen or disassembler" links_few
finish

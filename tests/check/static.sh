#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Warnings are errors: both compilers, W=1, sparse, checkpatch, coccicheck, shellcheck, licences; with FULL=1 gcc's
# analyzer. TAP.
# usage: tests/check/static.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: static.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
log=$output/logs/static
mkdir -p "$log"
number=0 failed=0

# verdict TEXT COMMAND...: passes when the command does and prints no warning
verdict() {
	local text=$1
	shift
	number=$((number + 1))
	if "$@" >"$log/$number.log" 2>&1 && ! grep -qE '(warning|WARNING|error|ERROR|CHECK):' "$log/$number.log"; then
		echo "ok $number - $text"
	else
		echo "not ok $number - $text"
		grep -E 'warning|WARNING|error|ERROR|CHECK|\*\*\*|^not ok' "$log/$number.log" | head -20 | sed 's/^/# /'
		failed=1
	fi
}

files() { git ls-files --cached --others --exclude-standard -- "$@"; }

spdx() {
	local bad=0 file
	while read -r file; do
		[ -f "$file" ] && [ -s "$file" ] || continue
		grep -Iq . "$file" || { echo "error: built, not written, or a sample for tests/data: $file"; bad=1; continue; }
		head -3 "$file" | grep -q SPDX-License-Identifier || { echo "error: no SPDX line: $file"; bad=1; }
	done < <(files ':!LICENSES' ':!tests/data' ':!tests/fuzz/corpus')
	return $bad
}

scripts() {
	local all=() file
	while read -r file; do
		[ -f "$file" ] || continue
		head -1 "$file" | grep -qE '^#!/bin/(ba)?sh' && all+=("$file")
	done < <(files)
	shellcheck -x -S warning "${all[@]}"
}

python_compiles() {
	local file
	while read -r file; do
		python3 -B -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || return 1
	done < <(files '*.py' tests/vm/run tests/vm/lab/boot tests/faults/run tests/check/uapi)
}

tools=$output/vm/checkpatch

# Of the kernel's packages only the source has checkpatch and coccicheck's rules.
kernel_tools() {
	local deb
	[ -s "$tools/scripts/checkpatch.pl" ] && [ -d "$tools/scripts/coccinelle" ] && return
	rm -rf "$tools" "$tools.tmp"
	deb=$(LAB=$output/vm tests/vm/lab/apt amd64 only linux-source-6.1 | tail -n 1) && mkdir -p "$tools.tmp" &&
		dpkg-deb --fsys-tarfile "$deb" | tar -xOf - ./usr/src/linux-source-6.1.tar.xz |
		tar -xJf - -C "$tools.tmp" --strip-components=1 --wildcards '*/scripts/checkpatch.pl' \
			'*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' \
			'*/scripts/coccinelle' || return
	mv "$tools.tmp" "$tools"
}

checkpatch() {
	kernel_tools || return
	# Not asked for: LINUX_VERSION_CODE, compat/ is made of it; CONSTANT_COMPARISON, takes
	# that and sizes for constants on the wrong side; NR_CPUS, bounds a netlink policy, which is a constant;
	# LONG_LINE_COMMENT, prose of up to 110 columns.
	files 'kmod/*.c' 'kmod/*.h' 'include/*.h' | xargs perl "$tools/scripts/checkpatch.pl" --strict \
		--no-tree --no-summary --terse --quiet --max-line-length=100 --file --ignore \
		LINUX_VERSION_CODE,CONSTANT_COMPARISON,NR_CPUS,LONG_LINE_COMMENT
}

# A unit test that cannot run says so, and skips: one that returns would pass.
no_silent_skip() {
	! grep -A1 -H 'print_message(' tests/unit/test_*.c | grep -E '\breturn( 0)?;' | sed 's/^/error: skip() instead: /' | grep .
}

# one rule of coccicheck, as the kernel's own script runs it
rule() {
	# shellcheck disable=SC2046 # several options
	spatch -D report --no-show-diff --very-quiet --cocci-file "$1" \
		$(sed -n 's/^.*Options://p' "$1") --dir kmod 2>"$2/rule-$(basename "$1").log" ||
		echo "$1 does not run"
}
export -f rule

# Two rules are scripts that take an OCaml compiler: one is for a driver's table, and sparse sees what the
# other looks for, 0 for a null pointer.
coccicheck() {
	local found
	kernel_tools || return
	found=$(find "$tools/scripts/coccinelle" -name '*.cocci' -print0 | sort -z | xargs -0 grep -LZ '@ *script:ocaml' |
		xargs -0 -P 2 -I '{}' bash -c 'rule "$1" "$2"' rule '{}' "$log") || return
	[ -z "$found" ] || { sed 's/^/error: /' <<<"$found"; return 1; }
}

# gcc 12 loses what is stored through a pointer to memory it knows nothing of, and calls that a leak;
# leaks of these files are the sanitizers' to find. At -O0 it judges what stands in the source.
analyzer() {
	set -o pipefail
	rm -rf "$output/check-analyzer" # it speaks when it compiles
	MAKEFLAGS='' LC_ALL=C make -s -j2 O="$output/check-analyzer" \
		CFLAGS='-O0 -U_FORTIFY_SOURCE -fanalyzer -fno-analyzer-state-purge -Wno-error' user 2>&1 |
		sed -E '/leak of/s,^(daemon/(base/macro\.h|export/cut_reader\.c|service/config\.c|helper/opener_process\.c|profile/aggregator\.c|symbol/disassemble\.c|symbol/dwarf_file\.c|symbol/lines\.c|symbol/elf\.c|symbol/kallsyms\.c):.*) warning:,\1 known:,'
	local status=$?
	set +o pipefail
	return $status
}

# claims MIN TESTED OBJECT VARIABLE=...: make one of the module's as if these were the kernels that it is
# made for, and say what #warning and #error say
claims() {
	local dir=$output/check-claims
	rm -rf "$dir"
	mkdir -p "$dir"
	cp -a --parents Kbuild kmod include "$dir"
	sed -i "s/\(KERNEL_MIN KERNEL_VERSION\).*/\1($1)/; s/\(KERNEL_TESTED KERNEL_VERSION\).*/\1($2)/" \
		"$dir/kmod/compat/kernels.h"
	if MAKEFLAGS='' LC_ALL=C make -s -C "$output/vm/x86_64/kdir" M="$dir" "kmod/$3" "${@:4}" >"$dir/log" 2>&1; then
		echo built
	else
		echo refused
	fi
	sed -n 's/.*: #\(warning\|error\) "\(.*\)".*/\2/p' "$dir/log"
}

# as by hand; as DKMS does, for a kernel whose own warnings are errors
claims_newer() {
	local by
	for by in STACKTAP_DKMS= STACKTAP_DKMS=1; do
		[ "$(claims '5, 10, 0' '5, 10, 0' main.o $by CONFIG_WERROR=y)" = "built
this kernel is newer than those that this version of stacktap was tested with" ] || return
	done
}

claims_older() {
	[ "$(claims '9, 0, 0' '9, 1, 0' defer.o)" = "refused
this kernel is older than COMPAT_KERNEL_MIN in kmod/compat/kernels.h" ]
}

# What differs from kernel to kernel stands in one directory.
# An x86 kernel with CONFIG_UNWINDER_GUESS, which Debian has none of.
guess() {
	local dir=$output/check-guess
	rm -rf "$dir"
	mkdir -p "$dir"
	cp -a --parents Kbuild kmod include "$dir"
	{
		printf '#undef CONFIG_UNWINDER_ORC\n#define CONFIG_UNWINDER_GUESS 1\n'
		cat kmod/stack_x86.c
		echo 'static_assert((int)STACK_OUTERMOST == STACKTAP_END_GUESSED);'
	} >"$dir/kmod/stack_x86.c"
	MAKEFLAGS='' KCFLAGS='-Werror -g0' make -s -C "$output/vm/x86_64/kdir" M="$dir" kmod/stack_x86.o
}

versions_apart() {
	! git grep -nE 'LINUX_VERSION_CODE|KERNEL_VERSION|RHEL_RELEASE' -- Kbuild kmod include ':!kmod/compat' |
		sed 's/^/error: /' | grep .
}

# what is compiled to be warned of needs no debug information
kbuild() { KCFLAGS='-Werror -g0' make -s O="$output/check" ARCH="$1" KDIR="$output/vm/$1/kdir" KBUILD_ARGS="${*:2}" module; }

verdict "user space, gcc" make -s O="$output" user
# clang warns of what stands in the source, however it optimizes
verdict "user space, clang" make -s O="$output/check-clang" CC=clang CFLAGS='-O0 -g0 -U_FORTIFY_SOURCE' user
verdict "fuzzers, clang" make -s O="$output/check-clang" CC=clang CFLAGS='-O0 -g0 -U_FORTIFY_SOURCE' fuzz-syntax
[ -z "${FULL-}" ] || verdict "user space, gcc's analyzer" analyzer
# x86_64's with its tests' hooks is more of the same code
for arch in ${FULL:+x86_64} arm64; do
	rm -rf "$output/check/kmod-$arch"*
	verdict "module, $arch, W=1 and sparse" kbuild $arch W=1 C=2 CF=-Wsparse-error
done
rm -rf "$output/check/kmod-x86_64"*
export STACKTAP_TEST=1
verdict "module with its tests' hooks, W=1 and sparse" kbuild x86_64 W=1 C=2 CF=-Wsparse-error
unset STACKTAP_TEST
verdict "kernels: one range in dkms.conf, documents and the matrix" packaging/kernels check
verdict "module on a kernel newer than tested: a warning" claims_newer
verdict "module on a kernel older than the oldest: refused" claims_older
verdict "module, kernel stacks that the kernel guesses are none that are complete" guess
verdict "module, kernel versions only in kmod/compat" versions_apart
verdict "module, checkpatch" checkpatch
verdict "module, coccicheck" coccicheck
verdict "uapi header in C++ and 32-bit C" sh -c '
	echo "#include <linux/stacktap.h>" | g++ -x c++ -std=c++17 -Wall -Wextra -Werror -Iinclude/uapi -fsyntax-only - &&
	echo "#include <linux/stacktap.h>" | gcc -x c -std=c99 -Wall -Wextra -Werror -Wpadded -Iinclude/uapi -fsyntax-only -'
verdict "uapi header's layout is that of its version" tests/check/uapi
verdict "uapi: another layout asks for another version" tests/check/uapi --self-test
verdict "scripts, shellcheck" scripts
verdict "Python compiles" python_compiles
verdict "unit tests that cannot run are skipped" no_silent_skip
verdict "rooms include each other one way, no files in a circle" tests/check/rooms
verdict "words of CONTRIBUTING.md alone" tests/check/words
verdict "docs/troubleshooting.md quotes what is printed" tests/check/messages
verdict "planted faults apply" tests/faults/run --check
verdict "SPDX on every file" spdx
echo "1..$number"
exit $failed

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Warnings are errors: both compilers, W=1, sparse, checkpatch, shellcheck, licences. TAP.
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
	if "$@" >"$log/$number.log" 2>&1 && ! grep -qE '(warning|WARNING|error|ERROR):' "$log/$number.log"; then
		echo "ok $number - $text"
	else
		echo "not ok $number - $text"
		grep -E 'warning|WARNING|error|ERROR|\*\*\*|^not ok' "$log/$number.log" | head -20 | sed 's/^/# /'
		failed=1
	fi
}

files() { git ls-files --cached --others --exclude-standard -- "$@"; }

spdx() {
	local bad=0 file
	while read -r file; do
		[ -f "$file" ] && [ -s "$file" ] || continue
		grep -Iq . "$file" || continue
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

checkpatch() {
	# Of the kernel's packages only the source has it; the three files are kept, the rest is not.
	local tools=$output/vm/checkpatch deb
	if [ ! -s "$tools/scripts/checkpatch.pl" ]; then
		deb=$(LAB=$output/vm tests/vm/lab/apt amd64 only linux-source-6.1 | tail -n 1) && mkdir -p "$tools" &&
			dpkg-deb --fsys-tarfile "$deb" | tar -xOf - ./usr/src/linux-source-6.1.tar.xz |
			tar -xJf - -C "$tools" --strip-components=1 --wildcards '*/scripts/checkpatch.pl' \
				'*/scripts/spelling.txt' '*/scripts/const_structs.checkpatch' || return 1
		rm -f "$deb"
	fi
	# NR_CPUS bounds a netlink policy, which is a constant
	files 'kmod/*.c' 'kmod/*.h' 'include/*.h' | xargs perl "$tools/scripts/checkpatch.pl" --no-tree \
		--no-summary --terse --quiet --max-line-length=100 --file --ignore \
		FILE_PATH_CHANGES,SPDX_LICENSE_TAG,LINUX_VERSION_CODE,CONSTANT_COMPARISON,SPLIT_STRING,NR_CPUS
}

kbuild() { make -s O="$output/check" ARCH="$1" KDIR="$output/vm/$1/kdir" KBUILD_ARGS="${*:2}" module; }

verdict "user space, gcc" make -s O="$output/check" user
verdict "user space, clang" make -s O="$output/check-clang" CC=clang user
verdict "module, x86_64, W=1" kbuild x86_64 W=1 KCFLAGS=-Werror
rm -rf "$output/check/kmod-x86_64"
verdict "module, x86_64, sparse" kbuild x86_64 C=2 CF=-Wsparse-error
verdict "module, arm64, W=1" kbuild arm64 W=1 KCFLAGS=-Werror
verdict "module, checkpatch" checkpatch
verdict "uapi header in C++ and 32-bit C" sh -c '
	echo "#include <linux/stacktap.h>" | g++ -x c++ -std=c++17 -Wall -Wextra -Werror -Iinclude/uapi -fsyntax-only - &&
	echo "#include <linux/stacktap.h>" | gcc -x c -std=c99 -Wall -Wextra -Werror -Wpadded -Iinclude/uapi -fsyntax-only -'
verdict "uapi header's layout is that of its version" tests/check/uapi
verdict "scripts, shellcheck" scripts
verdict "Python compiles" python_compiles
verdict "planted faults apply" tests/faults/run --check
verdict "SPDX on every file" spdx
echo "1..$number"
exit $failed

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What --json prints is what docs/json.md says of it, without a module. (status, top, events, start, stop, set: case top)
# usage: json.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: json.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

top=$PWD
arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64
stacktap=$output/user-$arch/stacktap
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ -x "$stacktap" ] || {
	echo "not ok 1 - there is $stacktap (make user)"
	exit 1
}

# is TYPE ARGUMENT...: what the command prints is of that type of the page
is() {
	local type=$1
	shift
	check "$* is a $type" printed "$type" "$@"
}

printed() {
	local type=$1
	shift
	(cd "$scratch" && timeout 60 "$stacktap" "$@") </dev/null >"$scratch/out" 2>"$scratch/err"
	# 1 is a failure, which has a type of its own, and doctor's and diff's answer
	[ $? -le 3 ] && [ ! -s "$scratch/err" ] || { cat "$scratch/err"; return 1; }
	python3 -B tests/otlp/json_types.py "$type" "$scratch/out"
}

fails() {
	printf '%s' "$2" >"$scratch/bad"
	! python3 -B "$top/tests/otlp/json_types.py" "$1" "$scratch/bad" >/dev/null
}

check "a member that is missing is noticed" fails Sessions '{}'
check "one that is not documented is noticed" fails Sessions '{"sessions":[],"more":1}'
check "another type is noticed" fails Sessions '{"sessions":["1"]}'
check "another word is noticed" fails ReportSummary '{"file":"x","view":"tree","lines":[]}'
check "nothing is noticed" fails Sessions ''

python3 -B tests/otlp/make_sample.py --payloads 3 --events 20 "$scratch/a.otlp"
python3 -B tests/otlp/make_sample.py --payloads 3 --events 40 "$scratch/b.otlp"
mkdir "$scratch/store"
cp "$scratch/a.otlp" "$scratch/store/profiles-1700000000000.otlp"
is Failure report --json /no/such.otlp
is Failure report --json --jsn a.otlp
is Report report --json a.otlp
is Report report --json --lines a.otlp
for by in function object process thread container service cgroup; do
	is ReportBy report --json --by "$by" a.otlp
	is Diff diff --json --by "$by" --all a.otlp b.otlp
done
is ReportBy report --json --by line a.otlp
is ReportTree report --json --tree a.otlp
is ReportTree report --json --tree --filter a a.otlp
is ReportBy report --json --by function --filter a a.otlp
is Diff diff --json --all --filter a a.otlp b.otlp
is ReportTree report --json --callers a.otlp
is ReportSummary report --json --summary a.otlp
is Diff diff --json --fail-over 99 a.otlp b.otlp
is Diff diff --json --before-to 15 --from 15 a.otlp
is Flamegraph flamegraph --json -o x.html a.otlp
is Flamegraph flamegraph --json -o x.svg a.otlp
is Flamegraph flamegraph --json -o x.html --diff a.otlp b.otlp
is Flamegraph flamegraph --json -o x.html --before-to 15 --from 15 a.otlp
for file in x.pb.gz x.folded x.speedscope.json x.firefox.json x.perf; do
	is Convert convert --json -o "$file" a.otlp
done
is ConvertToOtlp convert --json -o y.otlp x.pb.gz
is ConvertToOtlp convert --json -o y.otlp x.perf
is Objects objects --json a.otlp
is Symbolize symbolize --json -o z.otlp a.otlp
is StoreList store list --json store
is StoreExport store export --json -o e.otlp store
is StorePrune store prune --json -n --older-than 1000h store
is Doctor doctor --json
is UnwindInfo unwind-info --json /bin/true
is UnwindInfo unwind-info --json --summary /bin/true
timeline() {
	coproc serve { exec "$stacktap" serve --json "$scratch/a.otlp"; }
	local line address
	IFS= read -r line <&"${serve[0]}"
	printf '%s' "$line" >"$scratch/address"
	address=$(sed 's/.*"address":"\([^"]*\)".*/\1/' <<<"$line")
	curl -sf "${address%/}/timeline.json" >"$scratch/timeline"
	curl -sf "${address%/}/report.json" >"$scratch/report"
	# shellcheck disable=SC2154 # coproc sets it
	kill "$serve_PID"
	for type in Serve:address Timeline:timeline Report:report; do
		python3 -B tests/otlp/json_types.py "${type%:*}" "$scratch/${type#*:}" || return 1
	done
}
check "serve, its timeline and its report" timeline
finish

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Send profiles through a real OpenTelemetry Collector and compare what comes out, in TAP.
# usage: tests/collector/lane.sh [OUTPUT [FILE...]]
# Without files: a made-up one, and whatever the demo and the tests have received under OUTPUT. Not what the
# view lane draws from, nor the peer's of make bench-bytes: no stacktap made these, and the former is larger than any payload may be.
# With FULL=1 through the oldest Collector that speaks this version of the protocol as well, through one with more processors,
# and through Kafka: minutes of CPU time to build.
# PROFCHECK=program, or one of that name in PATH, is the signal's conformance checker: the module
# proxy does not hand it out, so it has to be there already.
set -eu

output=$(realpath -m "${1:-build}")
[ $# -eq 0 ] || shift
here=$(dirname "$0")

versions=("${COLLECTOR_VERSION:-}")
[ -z "${FULL:-}" ] || versions+=(0.148.0)

mkdir -p "$output/collector"
files=("$@")
options=()
if [ $# -eq 0 ]; then
	python3 -B "$here/../otlp/make_sample.py" --payloads 3 --events 500 \
		"$output/collector/made-up.otlp"
	mapfile -d '' -t files < <(find "$output" \( -path "$output/collector" -o -path "$output/view" \) -prune -o \
		-name '*.otlp' ! -name 'eBPF-profiler.otlp' -size +0 -print0 | sort -z)
	[ ${#files[@]} -gt 0 ] || options+=(--missing "none under $output yet: make demo, make test")
	files+=("$output/collector/made-up.otlp")
fi

make --no-print-directory -C "$here/../.." O="$output" oracle-build >&2
options+=(--driver "$output/oracle/export_driver" --push-driver "$output/oracle/push_driver" --collector "$output/collector/otelcol")
if [ -n "${FULL:-}" ]; then
	contrib=github.com/open-telemetry/opentelemetry-collector-contrib/processor
	# the newest release of which the module proxy hands out all three
	COLLECTOR_VERSION=0.161.0 COLLECTOR_NAME=processors \
		COLLECTOR_MORE="$contrib/resourceprocessor@v0.161.0 $contrib/filterprocessor@v0.161.0 $contrib/transformprocessor@v0.161.0" \
		"$here/build" "$output" >&2
	options+=(--processors "$output/collector/otelcol-processors")
fi
! program=$(command -v "${PROFCHECK:-profcheck}") || options+=(--profcheck "$program")
status=0
for version in "${versions[@]}"; do
	COLLECTOR_VERSION=$version "$here/build" "$output" >&2 || {
		status=$?
		[ $status -ne 77 ] || echo "ok 1 - Collector lane # SKIP no Go 1.26 or later"
		exit $status
	}
	echo "# Collector $(readlink "$output/collector/otelcol" | sed 's|^otelcol-||; s|/.*||')"
	"$here/run-collector" -o "$output/collector" python3 -B "$here/replay.py" "${options[@]}" "${files[@]}" || status=$?
done
[ -z "${FULL:-}" ] || "$here/kafka.sh" "$output" || status=$?
exit $status

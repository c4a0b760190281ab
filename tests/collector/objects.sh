#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build a Collector with the exporter for files and an S3 server from Go modules, and run objects.py.
# usage: tests/collector/objects.sh [OUTPUT [FILE...]]
# FILE: recordings, beside made-up payloads.
set -eu

output=$(realpath -m "${1:-build}")
[ $# -eq 0 ] || shift
here=$(dirname "$0")
# The newest release of which the module proxy hands out the exporter and the Collector.
export COLLECTOR_VERSION=${COLLECTOR_VERSION:-0.161.0}
COLLECTOR_NAME=files \
	COLLECTOR_MORE=github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter@v$COLLECTOR_VERSION \
	"$here/build" "$output" >&2 || {
	status=$?
	[ $status -ne 77 ] || echo "ok 1 - object storage # SKIP no Go 1.26 or later"
	exit $status
}
PATH=$PATH:/usr/local/go/bin
GOBIN=$output/collector GOFLAGS=-mod=mod CGO_ENABLED=0 go install -trimpath github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0 >&2
exec python3 -B "$here/objects.py" -o "$output/collector/objects" --collector "$output/collector/otelcol-files" \
	--server "$output/collector/gofakes3" "$@"

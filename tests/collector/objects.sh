#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build a Collector with the exporter for files and an S3 server from Go modules, and run objects.py.
# usage: tests/collector/objects.sh [OUTPUT [FILE...]]
# FILE: recordings, beside made-up payloads.
set -eu

output=$(realpath -m "${1:-build}")
[ $# -eq 0 ] || shift
here=$(dirname "$0")
"$here/stores" "$output" >&2 || {
	status=$?
	[ $status -ne 77 ] || echo "ok 1 - object storage # SKIP no Go 1.26 or later"
	exit $status
}
PATH=$PATH:/usr/local/go/bin
GOBIN=$output/collector GOFLAGS=-mod=mod CGO_ENABLED=0 go install -trimpath github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0 >&2
exec python3 -B "$here/objects.py" -o "$output/collector/objects" --collector "$output/collector/otelcol-stores" \
	--server "$output/collector/gofakes3" "$@"

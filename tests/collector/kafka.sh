#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build what kafka.py needs from Go modules, and run it.
# usage: tests/collector/kafka.sh [OUTPUT [FILE...]]
# FILE: recordings, beside made-up payloads.
set -eu

output=$(realpath -m "${1:-build}")
[ $# -eq 0 ] || shift
here=$(dirname "$0")
contrib=github.com/open-telemetry/opentelemetry-collector-contrib
export COLLECTOR_VERSION=${COLLECTOR_VERSION:-0.165.0}

COLLECTOR_NAME=kafka \
	COLLECTOR_MORE="$contrib/receiver/kafkareceiver@v$COLLECTOR_VERSION $contrib/exporter/kafkaexporter@v$COLLECTOR_VERSION" \
	"$here/build" "$output" >&2 || {
	status=$?
	[ $status -ne 77 ] || echo "ok 1 - Kafka # SKIP no Go 1.26 or later"
	exit $status
}
PATH=$PATH:/usr/local/go/bin
mkdir -p "$output/collector/broker"
cp "$here/broker/go.mod" "$here/broker/main.go" "$output/collector/broker"
(cd "$output/collector/broker" && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -trimpath -o ../kafka-broker . >&2)
exec python3 -B "$here/kafka.py" -o "$output/collector/kafka" --collector "$output/collector/otelcol-kafka" \
	--broker "$output/collector/kafka-broker" "$@"

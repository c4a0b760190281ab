#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build a Collector with the exporter for ClickHouse, fetch ClickHouse's engine from PyPI, and run clickhouse.py.
# usage: tests/collector/clickhouse.sh [OUTPUT [FILE...]]
# FILE: recordings, beside made-up payloads. CHDB_PYTHON: a Python that has chdb, instead of the one that this makes.
set -eu

output=$(realpath -m "${1:-build}")
[ $# -eq 0 ] || shift
here=$(dirname "$0")
# The newest release of which the module proxy hands out the exporter and the Collector.
export COLLECTOR_VERSION=${COLLECTOR_VERSION:-0.165.0}
COLLECTOR_NAME=clickhouse \
	COLLECTOR_MORE=github.com/open-telemetry/opentelemetry-collector-contrib/exporter/clickhouseexporter@v$COLLECTOR_VERSION \
	"$here/build" "$output" >&2 || {
	status=$?
	[ $status -ne 77 ] || echo "ok 1 - ClickHouse # SKIP no Go 1.26 or later"
	exit $status
}
python=${CHDB_PYTHON:-}
if [ -z "$python" ]; then
	python=$output/collector/chdb/bin/python3
	[ -x "$python" ] || python3 -m venv "$output/collector/chdb"
	"$python" -m pip install --quiet --disable-pip-version-check chdb==4.4.0 chdb-core==26.9.0 >&2
fi
exec "$python" -B "$here/clickhouse.py" -o "$output/collector/clickhouse" --collector "$output/collector/otelcol-clickhouse" "$@"

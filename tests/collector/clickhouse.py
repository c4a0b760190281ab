#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Profiles through a Collector's exporter into ClickHouse's engine, and read back by SQL, in TAP.

The exporter makes its own table. Each row has to be a Sample that was sent, with everything that the table has a column for.
"""

import argparse
import base64
import collections
import json
import os
import sys
import tempfile
import threading

import chdb_server
import compare
import documented
import kafka
import replay

import model  # noqa: E402  compare has put its folder on the path
import wire  # noqa: E402

COLUMNS = ("ServiceName", "toUnixTimestamp64Nano(Timestamp)", "DurationNano", "lower(ProfileId)", "SampleType", "SampleUnit",
           "PeriodType", "PeriodUnit", "Period", "ScopeName", "ScopeVersion", "FunctionNames", "FileNames", "LineNumbers",
           "MappingFileNames", "Addresses", "Values", "TimestampsUnixNano", "ResourceAttributes", "ProfileAttributes",
           "SampleAttributes", "lower(TraceId)", "lower(SpanId)")
# without quotes, 64-bit numbers are as exact as Python's
SETTINGS = " SETTINGS output_format_json_quote_64bit_integers = 0"


def text(value):
    """An attribute's, as the exporter writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(value, separators=(",", ":"))
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def freeze(value):
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return tuple(value) if isinstance(value, list) else value


def attributes(pairs):
    return tuple(sorted((key, text(value)) for key, value in pairs))


def row(sample):
    """In the order of COLUMNS."""
    profile, stack = sample.profile, sample.stack
    trace, span = sample.link or (b"", b"")
    return (sample.process.service_name, profile.start, profile.duration, profile.profile_id.hex(), *profile.sample_type,
            *profile.period_type, profile.period, *profile.scope, tuple(frame.function for frame in stack),
            tuple(frame.file for frame in stack), tuple(frame.line for frame in stack), tuple(frame.mapping for frame in stack),
            tuple(frame.address for frame in stack), tuple(sample.values), tuple(sample.timestamps),
            attributes(sample.process.attributes), attributes(profile.attributes), attributes(sample.attributes),
            trace.hex(), span.hex())


def differences(want, found):
    notes = [f"{want.total()} Samples were sent, {found.total()} rows are there"] if want.total() != found.total() else []
    for number, name in enumerate(COLUMNS):
        before, after = (collections.Counter({}) for _ in range(2))
        for key, count in want.items():
            before[key[number]] += count
        for key, count in found.items():
            after[key[number]] += count
        if before != after:
            notes.append(f"{name}: {list(before - after)[:1]} sent only, {list(after - before)[:1]} there only")
    return notes or ([] if want == found else ["each column is right, rows are not"])


def through(tap, chain, server, payloads):
    (config,), (query,) = (documented.blocks("backends.md", "ClickHouse", 1, kind) for kind in ("yaml", "sql"))
    port, grpc = chain.run.free_port(), chain.run.free_port()
    chain.collector("clickhouse", documented.at(config, {
        "0.0.0.0:4317": f"127.0.0.1:{grpc}", "0.0.0.0:4318": f"127.0.0.1:{port}",
        "clickhouse:8123": f"127.0.0.1:{server.server_port}"}), port)
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
    os.environ["STACKTAP_RECEIVED"] = ""
    sent = replay.send(replay.Collector(), payloads)
    samples = model.load_payloads(payloads)
    count = "SELECT count() FROM default.otel_profiles" + SETTINGS
    kafka.until(lambda: server.refused or server.run(count)[1][0][0] >= len(samples))
    version = server.run("SELECT version()")[1][0][0]
    tap.result(f"ClickHouse's engine {version} takes {len(payloads)} payloads from the exporter, and its table",
               sent + server.refused)
    rows = server.run(f"SELECT {', '.join(COLUMNS)} FROM default.otel_profiles" + SETTINGS)[1]
    found = collections.Counter(tuple(map(freeze, line)) for line in rows)
    tap.result(f"each of {len(samples)} Samples is a row: names, values, times, services, attributes",
               differences(collections.Counter(map(row, samples)), found))
    want = collections.Counter()
    for sample in samples:
        want[tuple(frame.function for frame in sample.stack)] += sample.profile.period * (
            sum(sample.values) if sample.values else len(sample.timestamps))
    got = {tuple(names): value for names, value in server.run(query.strip().rstrip(";") + SETTINGS)[1]}
    tap.result(f"the documented query has the sum of each of {len(want)} stacks, {sum(want.values())} in all",
               [f"{' < '.join(names)}: {got.get(names)}, not {value}" for names, value in want.items() if got.get(names) != value])


def main():
    parser = argparse.ArgumentParser(description="send OTLP files through a Collector into ClickHouse's engine, in TAP")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--collector", required=True, help="program with the exporter clickhouse")
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    tap = replay.Tap()
    payloads = kafka.made_up()
    for path in args.files:
        payloads += wire.read(path)
    with tempfile.TemporaryDirectory() as directory, kafka.Chain(args, kafka.beside()) as chain:
        server = chdb_server.Server(directory)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        through(tap, chain, server, payloads)
        server.shutdown()
        server.session.close()
    print(f"1..{tap.number}")
    return bool(tap.failed)


if __name__ == "__main__":
    sys.exit(main())

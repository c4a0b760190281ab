#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Send files of OTLP profiles through the Collector of run-collector; says how it went in TAP."""

import argparse
import dataclasses
import gzip
import http.client
import importlib.machinery
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse

import compare
import documented

# compare has put the folder of these on the path.
import check  # noqa: E402
import model  # noqa: E402
import wire  # noqa: E402

PATH = "/v1development/profiles"
HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip",
           "OTLP-Profiles-Development-Version": "1"}
NOTES = 20


class Tap:
    def __init__(self):
        self.number = 0
        self.failed = 0

    def result(self, title, notes):
        """One line; notes say what is wrong, none that nothing is."""
        self.number += 1
        self.failed += bool(notes)
        print(f"{'not ok' if notes else 'ok'} {self.number} - {title}")
        for note in notes[:NOTES]:
            for line in str(note).splitlines():
                print(f"# {line}")
        if len(notes) > NOTES:
            print(f"# and {len(notes) - NOTES} more")
        sys.stdout.flush()

    def skip(self, title, reason):
        self.number += 1
        print(f"ok {self.number} - {title} # SKIP {reason}", flush=True)


class Collector:
    """One kept-alive connection to it, and the file of what it exported."""

    def __init__(self, endpoint=None):
        url = urllib.parse.urlsplit(endpoint or os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"])
        self.client = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        self.path = os.environ["STACKTAP_RECEIVED"]

    def post(self, payload):
        self.client.request("POST", PATH, gzip.compress(payload, 6), HEADERS)
        response = self.client.getresponse()
        return response.status, response.read()

    def received(self):
        """All payloads it has exported so far."""
        if not os.path.exists(self.path) or not os.path.getsize(self.path):
            return []
        return wire.read(self.path)


def profcheck(program, payloads):
    notes = []
    with tempfile.NamedTemporaryFile() as file:
        for number, payload in enumerate(payloads):
            file.seek(0)
            file.truncate()
            file.write(payload)
            file.flush()
            result = subprocess.run(
                [program, "-check-dupes", "-check-orphans", file.name], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, check=False)
            if result.returncode:
                notes.append(f"payload {number}: {result.stdout.strip()}")
    return notes


def send(collector, payloads):
    notes = []
    for number, payload in enumerate(payloads):
        status, body = collector.post(payload)
        if status != 200:
            text = wire.decode(body, "Status")[0].message if body else ""
            notes.append(f"payload {number}: status {status} {text}")
            continue
        partial = wire.decode(body, "ExportProfilesServiceResponse")[0].partial_success
        if partial.fields:
            notes.append(f"payload {number}: {partial.rejected_profiles} rejected, "
                         f"{partial.error_message}")
    return notes


def replay(tap, collector, name, path, program):
    try:
        payloads = wire.read(path)
    except (OSError, wire.WireError) as error:
        tap.result(f"{name} can be read", [error])
        return
    count = f"{len(payloads)} payload{'s' * (len(payloads) != 1)}"
    if program:
        tap.result(f"profcheck accepts {name}, {count}", profcheck(program, payloads))
    else:
        print(f"# {name}, {count}: profcheck is not here, check.py (stricter) stands alone")
    tap.result(f"{name} keeps every rule that receivers have", [
        f"payload {number}: {text}" for number, payload in enumerate(payloads)
        for text in check.check(payload)])
    before = len(collector.received())
    tap.result(f"the Collector accepts {name}", send(collector, payloads))
    try:
        sent = model.load_payloads(payloads)
        received = model.load_payloads(collector.received()[before:])
        notes = compare.compare(sent, received) if sent else ["there is no sample in it"]
    except wire.WireError as error:
        notes = [error]
    events = sum(sample.count for sample in sent) if not notes else 0
    tap.result(f"the Collector exports what {name} holds, {events} events", notes)


GRPC_PATH = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"


def by_exporter(tap, collector, driver):
    """One payload by the exporter itself, in each way that it has beside protobuf with gzip over HTTP."""
    grpc = os.environ["STACKTAP_GRPC_ENDPOINT"] + GRPC_PATH
    http = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1development/profiles"
    for name, url, *options in (("over gRPC", grpc, "grpc=1"), ("over gRPC, compressed by zstd", grpc, "grpc=1", "compress=2"),
                                ("compressed by zstd", http, "compress=2"), ("as JSON", http, "json=1")):
        before = len(collector.received())
        done = subprocess.run([driver, url, "1", "10000", *options], capture_output=True, text=True, check=False)
        told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        samples = model.load_payloads(collector.received()[before:])
        notes = [] if told.get("payloads_sent") == "1" and told.get("bad_responses") == "0" and not done.stderr else [
            done.stdout, done.stderr]
        count = sum(sample.count for sample in samples)
        if str(count) != told.get("samples_sent"):
            notes.append(f"{count} events came out of the Collector, {told.get('samples_sent')} were sent")
        tap.result(f"the Collector takes a payload {name}, {count} events", notes)


def by_push(tap, driver):
    """The daemon's own counters as metrics, in each protocol."""
    path = os.environ["STACKTAP_METRICS"]
    for protocol in ("http/protobuf", "grpc", "http/json"):
        before = len(wire.read(path)) if os.path.exists(path) else 0
        environment = dict(os.environ)
        if protocol == "grpc":
            environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = os.environ["STACKTAP_GRPC_ENDPOINT"]
        done = subprocess.run([driver, protocol], env=environment, capture_output=True, text=True, check=False)
        notes = [] if done.returncode == 0 and not done.stderr else [done.stdout, done.stderr]
        values, points = {}, 0
        for payload in (wire.read(path) if os.path.exists(path) else [])[before:]:
            data, complaints = wire.decode(payload, "MetricsData")
            notes += complaints
            for resource in data.resource_metrics:
                names = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
                if names.get("service.name") != "stacktapd":
                    notes.append(f"the resource is {names}")
                for metric in resource.scope_metrics[0].metrics:
                    found = (metric.sum if "sum" in metric.fields else metric.gauge).data_points
                    points += len(found)
                    values[metric.name] = found[0].as_double or found[0].as_int
        for name, value in (("stacktap.windows.samples", 4711), ("stacktap.cpu", 2.5), ("stacktap.exporter.retries", 3)):
            if values.get(name) != value:
                notes.append(f"{name} is {values.get(name)}, not {value}")
        if str(points) != done.stdout.strip():
            notes.append(f"{points} data points came out of the Collector, {done.stdout.strip()} were sent")
        tap.result(f"the Collector takes metrics by {protocol}, {points} data points", notes)


RUN = importlib.machinery.SourceFileLoader("run_collector", os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                                          "run-collector")).load_module()


def through(program, text, payloads):
    """What a Collector with this configuration has against the payloads."""
    port, grpc = RUN.free_port(), RUN.free_port()
    with tempfile.TemporaryDirectory() as directory:
        config, log = (os.path.join(directory, name) for name in ("config.yaml", "log"))
        with open(config, "w", encoding="utf-8") as file:
            file.write(documented.at(text, {"0.0.0.0:4317": f"127.0.0.1:{grpc}", "0.0.0.0:4318": f"127.0.0.1:{port}"}))
            file.write("  telemetry: { metrics: { level: none }, logs: { level: warn } }\n")
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen([program, "--config", f"file:{config}", "--feature-gates=+service.profilesSupport"],
                                       stdout=file, stderr=file)
        deadline = time.monotonic() + RUN.START_LIMIT
        while process.poll() is None and not RUN.answers(port) and time.monotonic() < deadline:
            time.sleep(0.05)
        notes = send(Collector(f"http://127.0.0.1:{port}"), payloads) if process.poll() is None else []
        # what its queue holds it sends before it ends
        if RUN.stop(process, "a Collector of the documents"):
            with open(log, encoding="utf-8") as file:
                notes.append(file.read()[-2000:])
    return notes


def as_documented(tap, collector, program, path):
    """A Collector with each of the configurations that need no more than this one has, in front of the one that is there."""
    next_grpc = urllib.parse.urlsplit(os.environ["STACKTAP_GRPC_ENDPOINT"]).netloc
    payloads = wire.read(path)
    sent = model.load_payloads(payloads)
    for page, section, places in (
            ("fleet.md", "The way to a backend", {"https://backend.example": os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]}),
            ("backends.md", "OpenTelemetry Collector", {"pyroscope:4040": next_grpc})):
        before = len(collector.received())
        notes = through(program, documented.at(documented.blocks(page, section)[0], places), payloads)
        if not notes:
            notes = compare.compare(sent, model.load_payloads(collector.received()[before:]))
        tap.result(f"a Collector with the configuration of docs/{page} passes on what it gets", notes)


def by_processors(tap, collector, program, path):
    """They do what the documents' configuration says, to Resources alone, and leave out those of one program."""
    payloads = wire.read(path)
    samples = model.load_payloads(payloads)
    noisy = samples[0].process.executable
    sent = []
    for sample in samples:
        if sample.process.executable != noisy:
            attributes = (*sample.process.attributes, ("deployment.environment.name", "production"), ("team", "storage"))
            sent.append(dataclasses.replace(sample, process=dataclasses.replace(
                sample.process, attributes=tuple(sorted(attributes, key=repr)))))
    before = len(collector.received())
    notes = through(program, documented.at(documented.blocks("backends.md", "Processors")[0], {
        "https://backend.example": os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"], '"noisy"': json.dumps(noisy)}), payloads)
    if not notes:
        notes = compare.compare(sent, model.load_payloads(collector.received()[before:])) if sent else ["one program alone"]
    tap.result(f"processors change Resources as docs/backends.md says and leave out {noisy}: "
               f"{sum(sample.count for sample in sent)} of {sum(sample.count for sample in samples)} events", notes)


def main():
    parser = argparse.ArgumentParser(description="send OTLP files through a Collector, in TAP")
    parser.add_argument("--profcheck", help="program to run on each payload")
    parser.add_argument("--driver", help="tests/oracle/export_driver, to send one payload in each way")
    parser.add_argument("--push-driver", help="tests/oracle/push_driver, to send metrics")
    parser.add_argument("--collector", help="program that the documents' configurations are for")
    parser.add_argument("--processors", help="program that has more of them")
    parser.add_argument("--missing", metavar="REASON", help="why there are none of the daemon")
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args()
    tap = Tap()
    collector = Collector()
    status, _ = collector.post(b"\x0a\x7f")
    tap.result("the Collector refuses what is no profile",
               [] if status == 400 else [f"status {status}"])
    if args.driver:
        by_exporter(tap, collector, args.driver)
    if args.push_driver:
        by_push(tap, args.push_driver)
    if args.collector:
        as_documented(tap, collector, args.collector, args.files[-1])
    if args.processors:
        by_processors(tap, collector, args.processors, args.files[-1])
    if args.missing:
        tap.skip("the Collector exports what the daemon sends", args.missing)
    for path in args.files:
        here = os.path.join(os.getcwd(), "")
        replay(tap, collector, path.removeprefix(here), path, args.profcheck)
    print(f"1..{tap.number}")
    return bool(tap.failed)


if __name__ == "__main__":
    sys.exit(main())

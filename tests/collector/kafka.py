#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Profiles through a Collector into Kafka's protocol, and out of it by another Collector, in TAP.

Both have the configurations that docs/fleet.md shows, with addresses of this machine. The one that consumes starts after the
messages are in the broker, as after an outage of all that follows it.
"""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import time

import compare
import documented
import replay

import make_sample  # noqa: E402  compare has put its folder on the path
import model  # noqa: E402
import wire  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 90
MESSAGE_BYTES = 4194304


def beside():
    """What run-collector has of use."""
    loader = importlib.machinery.SourceFileLoader("run_collector", os.path.join(HERE, "run-collector"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_collector", loader))
    loader.exec_module(module)
    return module


class Chain:
    def __init__(self, args, run):
        self.args, self.run = args, run
        self.stack = contextlib.ExitStack()
        self.failed = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def broker(self, bytes_at_most):
        process = subprocess.Popen([self.args.broker, "otlp_profiles", str(bytes_at_most)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.stack.callback(process.wait)
        self.stack.callback(process.stdin.close)
        return process.stdout.readline().strip()

    def receiver(self):
        process, port = self.run.start_receiver(self.args.output)
        self.stack.callback(self.run.stop, process, "receiver")
        return port

    def collector(self, name, text, port=None):
        """With this configuration, once it listens; without a port of its own it is there at once."""
        config = os.path.join(self.args.output, f"{name}.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text + "  telemetry: { metrics: { level: none }, logs: { level: warn } }\n")
        log = self.stack.enter_context(open(os.path.join(self.args.output, f"{name}.log"), "w", encoding="utf-8"))
        process = subprocess.Popen([self.args.collector, "--config", f"file:{config}",
                                    "--feature-gates=+service.profilesSupport"], stdout=log, stderr=log)
        self.stack.callback(self.run.stop, process, name)
        until(lambda: process.poll() is not None or not port or self.run.answers(port))
        if process.poll() is not None:
            with open(log.name, encoding="utf-8") as file:
                sys.exit(f"the Collector `{name}' did not start: {file.read()[-1500:]}")


def until(condition):
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def whole(path):
    try:
        return wire.read(path) if os.path.exists(path) and os.path.getsize(path) else []
    except wire.WireError:
        return []       # it is being written


def producer(chain, text, broker):
    port = chain.run.free_port()
    grpc = chain.run.free_port()
    chain.collector("gateway", documented.at(text, {"0.0.0.0:4317": f"127.0.0.1:{grpc}", "0.0.0.0:4318": f"127.0.0.1:{port}",
                                                    "kafka-1:9092": broker}), port)
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"


def through(tap, chain, payloads):
    produces, consumes = documented.blocks("fleet.md", "Kafka", 2)
    broker = chain.broker(MESSAGE_BYTES)
    os.environ["STACKTAP_RECEIVED"] = received = os.path.join(chain.args.output, "received.otlp")
    port = chain.receiver()
    producer(chain, produces, broker)
    largest = max(len(payload) for payload in payloads)
    tap.result(f"a gateway puts {len(payloads)} payloads, up to {largest >> 10} KiB, into the broker",
               replay.send(replay.Collector(), payloads))
    started = time.monotonic()
    chain.collector("consumer", documented.at(consumes, {"kafka-1:9092": broker, "https://backend.example": f"http://127.0.0.1:{port}"}))
    sent = model.load_payloads(payloads)
    count = sum(sample.count for sample in sent)
    until(lambda: sum(sample.count for sample in model.load_payloads(whole(received))) >= count)
    notes = compare.compare(sent, model.load_payloads(whole(received)))
    tap.result(f"a Collector that starts later takes all of them out, the same {count} events, in "
               f"{time.monotonic() - started:.1f} s", notes)


def made_up():
    """A few of the usual size, and one as large as a payload gets."""
    return [make_sample.encode(make_sample.build(seed, events)) for seed, events in enumerate([500, 500, 500, 60000])]


def main():
    parser = argparse.ArgumentParser(description="send OTLP files through Collectors and a broker, in TAP")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--collector", required=True, help="program with receiver and exporter for Kafka")
    parser.add_argument("--broker", required=True, help="program of tests/collector/broker")
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    tap = replay.Tap()
    payloads = made_up()
    for path in args.files:
        payloads += wire.read(path)
    run = beside()
    with Chain(args, run) as chain:
        through(tap, chain, payloads)
    print(f"1..{tap.number}")
    return bool(tap.failed)


if __name__ == "__main__":
    sys.exit(main())

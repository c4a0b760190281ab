#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Profiles through a Collector into files, which go to an S3 server when they are full, and out of its bucket again, in TAP.

The Collector has the configuration of docs/fleet.md, with files that are full early. Requests are signed by curl.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import compare
import documented
import kafka
import replay

import model  # noqa: E402  compare has put its folder on the path
import wire  # noqa: E402

BUCKET = "profiles"
USER = "key:secret"


class Bucket:
    def __init__(self, chain, program):
        self.port = chain.run.free_port()
        process = subprocess.Popen([program, "-backend", "memory", "-host", f"127.0.0.1:{self.port}", "-initialbucket", BUCKET],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        chain.stack.callback(process.wait)
        chain.stack.callback(process.kill)
        kafka.until(lambda: process.poll() is not None or chain.run.answers(self.port))

    def ask(self, path, *options):
        return subprocess.run(["curl", "-sS", "--fail-with-body", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", USER, *options,
                               f"http://127.0.0.1:{self.port}/{BUCKET}{path}"], capture_output=True, check=True).stdout

    def upload(self, path):
        self.ask("/" + os.path.basename(path), "-T", path)
        os.unlink(path)

    def keys(self):
        root = xml.etree.ElementTree.fromstring(self.ask("?list-type=2"))
        return sorted(entry.text for entry in root.iter() if entry.tag.rpartition("}")[2] == "Key")


def through(tap, args, payloads, directory):
    with kafka.Chain(args, kafka.beside()) as chain:
        bucket = Bucket(chain, args.server)
        with kafka.Chain(args, chain.run) as gateway:
            port, grpc = chain.run.free_port(), chain.run.free_port()
            gateway.collector("objects", documented.at(documented.blocks("fleet.md", "Object storage")[0], {
                "0.0.0.0:4317": f"127.0.0.1:{grpc}", "0.0.0.0:4318": f"127.0.0.1:{port}",
                "/var/lib/otelcol": directory, "max_megabytes: 64": "max_megabytes: 2"}), port)
            os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
            os.environ["STACKTAP_RECEIVED"] = ""
            tap.result(f"a gateway puts {len(payloads)} payloads into files", replay.send(replay.Collector(), payloads))
            for path in glob.glob(os.path.join(directory, "profiles-*.otlp")):
                bucket.upload(path)     # those that were renamed
        bucket.upload(os.path.join(directory, "profiles.otlp"))
        keys = bucket.keys()
        received = []
        for key in keys:
            path = os.path.join(directory, "object")
            with open(path, "wb") as file:
                file.write(bucket.ask("/" + key))
            received += wire.read(path)
    sent = model.load_payloads(payloads)
    tap.result(f"{len(keys)} objects of the bucket hold the same {sum(sample.count for sample in sent)} events",
               compare.compare(sent, model.load_payloads(received)) + (["one object alone"] if len(keys) < 2 else []))


def main():
    parser = argparse.ArgumentParser(description="send OTLP files through a Collector into a bucket, in TAP")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--collector", required=True, help="program with the exporter file")
    parser.add_argument("--server", required=True, help="gofakes3")
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    os.makedirs(args.output, exist_ok=True)
    tap = replay.Tap()
    payloads = kafka.made_up() * 2
    for path in args.files:
        payloads += wire.read(path)
    with tempfile.TemporaryDirectory() as directory:
        through(tap, args, payloads, directory)
    print(f"1..{tap.number}")
    return bool(tap.failed)


if __name__ == "__main__":
    sys.exit(main())

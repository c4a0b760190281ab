#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exporter against a receiver that misbehaves: TAP on stdout.

usage: exporter_cases.py EXPORT_DRIVER DIRECTORY
"""

import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OTLP = os.path.join(HERE, os.pardir, "otlp")
sys.dont_write_bytecode = True
sys.path.insert(0, OTLP)

import grpc  # noqa: E402
import wire  # noqa: E402

PATH = "/v1development/profiles"
GRPC_PATH = "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
SAMPLES = 2500      # in each payload of the driver
RUN_MS = 40000      # that no run takes, even where the host has little time for it
RESULTS = []


class Receiver:
    """receiver.py as a process of its own, with a script."""

    def __init__(self, directory, name, script, port=0, options=()):
        self.ledger_path = os.path.join(directory, name + ".ledger")
        self.output = os.path.join(directory, name + ".otlp")
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(OTLP, "receiver.py"), "--port", str(port),
             "--script", script, "--ledger", self.ledger_path, "--output", self.output,
             "--require-version", *options], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}{PATH}"

    def stop(self):
        self.process.terminate()
        out, _ = self.process.communicate(timeout=20)
        return json.loads(out)

    def ledger(self):
        with open(self.ledger_path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def taken(receiver):
    """Payloads that the receiver took."""
    return wire.read(receiver.output) if os.path.getsize(receiver.output) else []


def drive(program, url, count, run_ms, **options):
    """What the exporter counted, and what it said last."""
    arguments = [program, url, str(count), str(run_ms)]
    for name, value in options.items():
        arguments += [f"{name}={one}" for one in (value if isinstance(value, list) else [value])]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=120)
    stats = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    stats = {name: value if name == "last_error" else int(value) for name, value in stats.items()}
    stats["warnings"] = sum(done.stderr.count(f"the receiver {what}")
                            for what in ("did not accept", "refused", "did not confirm"))
    stats["no_zstd"] = done.stderr.count("does not accept zstd")
    return stats


def tell(name, wrong):
    """@wrong: list of (what, have, want) that differ."""
    RESULTS.append(not wrong)
    print(f"{'not ok' if wrong else 'ok'} {len(RESULTS)} - exporter: {name}")
    for what, have, want in wrong:
        print(f"#   {what}: {have!r}, wanted {want!r}")
    sys.stdout.flush()


def differ(have, want):
    return [(name, have.get(name), value) for name, value in want.items()
            if have.get(name) != value]


def played(program, directory, name, script, count, want, statuses, run_ms=RUN_MS, least_ms=0,
           pauses=(), **options):
    """
    Run against a script and compare the exporter's counts and the receiver's ledger. No pause that the exporter
    makes is longer than that of @pauses; how long the host takes for all the rest does not matter.
    """
    receiver = Receiver(directory, name.replace(" ", "-"), script)
    try:
        stats = drive(program, receiver.url, count, run_ms, **options)
    finally:
        totals = receiver.stop()
    rows = receiver.ledger()
    wrong = differ(stats, want)
    wrong += differ({"statuses": [row["status"] for row in rows]}, {"statuses": statuses})
    if stats["elapsed_ms"] < least_ms:
        wrong.append(("elapsed_ms", stats["elapsed_ms"], least_ms))
    # not a last try at the end
    if run_ms == RUN_MS and stats["waiting_at_end"]:
        wrong.append(("waiting_at_end", stats["waiting_at_end"], 0))
    # between the first try and the first look at its pause that may have gone by
    wrong += [(f"pause {i}", stats.get(f"pause.{i}"), most) for i, most in enumerate(pauses)
              if stats.get(f"pause.{i}", most if not i else -1) not in range(most + 1)]
    if any(row["violations"] for row in rows):
        wrong.append(("violations", [row["violations"] for row in rows], None))
    if len(taken(receiver)) != totals["accepted"]:
        wrong.append(("payloads in the file", len(taken(receiver)), totals))
    tell(name, wrong)
    return stats, rows, totals


def expected(sent, dropped, **others):
    return {"payloads_sent": sent, "payloads_dropped": dropped, "payloads_waiting": 0,
            "samples_sent": sent * SAMPLES, "samples_dropped": dropped * SAMPLES,
            "payloads_unconfirmed": 0, "samples_unconfirmed": 0, **others}


def unconfirmed(sent, count, **others):
    """As many of which nobody knows whether they were taken."""
    return expected(sent, 0, payloads_unconfirmed=count, samples_unconfirmed=count * SAMPLES, bad_responses=count, retries=0,
                    **others)


def scripted(program, directory):
    stats, rows, _ = played(program, directory, "all is well", "", 5,
                            expected(5, 0, retries=0, connections=1, bad_responses=0), [200] * 5,
                            headers="x-tenant=a%20b,X-Empty=,content-type=text/html")
    headers = {name.lower(): value for name, value in rows[0]["headers"].items()}
    tell("what a request says of itself", differ(headers, {
        "content-type": "application/x-protobuf", "content-encoding": "gzip",
        "otlp-profiles-development-version": "1", "x-tenant": "a b", "x-empty": ""}) +
        ([] if headers["user-agent"].startswith("OTel-OTLP-Exporter-stacktap/") and
         "expect" not in headers else [("headers", headers, None)]) +
        differ(stats, {"bytes_sent": sum(row["bytes_compressed"] for row in rows),
                       "bytes_raw": sum(row["bytes_uncompressed"] for row in rows)}))
    _, rows, _ = played(program, directory, "without compression", "", 1, expected(1, 0), [200],
                        compress=0)
    tell("then no encoding is named", [("header", row["headers"], None) for row in rows
                                       if "Content-Encoding" in row["headers"]])
    played(program, directory, "503 with Retry-After", "503:retry-after=1", 1,
           expected(1, 0, retries=1, throttled=0), [503, 200], least_ms=900, pauses=[1000])
    played(program, directory, "429 with a date", "429:retry-after-date=2", 1,
           expected(1, 0, retries=1, throttled=1), [429, 200], least_ms=500, pauses=[2000])
    played(program, directory, "502 and 504 without a word", "502,504", 1,
           expected(1, 0, retries=2), [502, 504, 200], least_ms=50, pauses=[50, 100])
    for status in (400, 401, 403, 404, 413, 500, 501):
        stats, _, _ = played(program, directory, f"{status} is final", f"ok,{status}", 2,
                             expected(1, 1, retries=0), [200, status])
        tell(f"{status} is told with its reason", [] if stats["last_error"] ==
             f"HTTP {status}: scripted: {status}" else [("last_error", stats["last_error"], "")])
    stats, _, _ = played(program, directory, "an error that is over", "500", 2,
                         expected(1, 1, retries=0), [500, 200])
    tell("is not told any more", differ(stats, {"last_error": ""}))
    played(program, directory, "a redirect is not followed", "redirect", 1, expected(0, 1), [307])
    played(program, directory, "partial success", "partial:rejected=3,partial-warning", 2,
           expected(2, 0, retries=0, partial_rejected=3, partial_warnings=1), [200, 200])
    played(program, directory, "garbage in a 200 is no acceptance, nor sent again, and is said once", "garbage*3", 3,
           unconfirmed(0, 3, warnings=1, last_error="HTTP 200 with a body that is not an OTLP response"), [200] * 3)
    played(program, directory, "and is over with the next that is taken", "garbage,ok", 2,
           unconfirmed(1, 1, last_error=""), [200] * 2)
    played(program, directory, "a page in a 200 is no answer", "page*2", 1,
           expected(1, 0, retries=2, bad_responses=2), [200, 200, 200])
    stats, _, _ = played(program, directory, "a reason in plain text", "ok,plain:400", 2,
                         expected(1, 1, retries=0), [200, 400])
    tell("is told", differ(stats, {"last_error": "HTTP 400: no sample type of that name"}))
    played(program, directory, "closed before the answer", "close-before-response", 1,
           expected(1, 0, retries=1), [None, 200])
    played(program, directory, "closed inside the answer", "close-mid-response", 1,
           expected(1, 0, retries=1), [200, 200])
    played(program, directory, "no answer in time", "hang:5", 1, expected(1, 0, retries=1),
           [None, 200], least_ms=1500, timeout=1500)
    played(program, directory, "no answer, twice, is said once", "hang:5*2", 1,
           expected(1, 0, retries=2, warnings=1), [None, None, 200], least_ms=3000, timeout=1500)
    played(program, directory, "later payloads wait in order", "503:retry-after=1", 4,
           expected(4, 0, retries=4), [503, 200, 200, 200, 200], least_ms=900)
    # never a storm: 50, 100, 200, 400 ms, then 400 ms again, each at least half of it
    limits = [50, 100, 200, 400, 400, 400, 400]
    stats, rows, _ = played(program, directory, "back-off grows to its limit", "503*7", 1,
                            expected(1, 0, retries=7, warnings=1), [503] * 7 + [200], least_ms=775,
                            backoff_max=400, pauses=limits)
    gaps = [b["time"] - a["judged"] for a, b in zip(rows, rows[1:])]
    tell("and each pause is half of it at least", [
        ("pause", gap, limit) for gap, limit in zip(gaps, limits)
        if gap < limit / 2000 - 0.002])
    # three quarters of it are the exporter's: four payloads and half of one, their sizes are never the same
    _, rows, _ = played(program, directory, "a queue that is full", "503*2", 12,
                        {"payloads_waiting": 0, "payloads_sent": 4, "payloads_dropped": 8},
                        [503, 503] + [200] * 4, queue=len_of_body(program, directory) * 6)
    played(program, directory, "what is left at the end gets one more try", "503:retry-after=60", 3,
           expected(3, 0, retries=3), [503, 200, 200, 200], run_ms=100, stop=30000)
    played(program, directory, "and is counted when that fails", "503:retry-after=60*", 3,
           expected(0, 3, retries=3), [503] * 4, run_ms=100, stop=30000)


def len_of_body(program, directory):
    receiver = Receiver(directory, "measure", "")
    drive(program, receiver.url, 1, 1000)
    receiver.stop()
    return receiver.ledger()[0]["bytes_compressed"]


def with_zstd(program, directory):
    """zstd where it is taken, gzip where it is not, which is found out once."""
    receiver = Receiver(directory, "zstd", "", options=["--zstd"])
    stats = drive(program, receiver.url, 3, 8000, compress=2)
    receiver.stop()
    rows = receiver.ledger()
    tell("zstd: taken", differ(stats, expected(3, 0, retries=0, bytes_sent=sum(row["bytes_compressed"] for row in rows))) +
         differ({"encodings": {row["headers"].get("Content-Encoding") for row in rows}, "taken": len(taken(receiver))},
                {"encodings": {"zstd"}, "taken": 3}))
    for status in (400, 415):
        receiver = Receiver(directory, f"zstd-{status}", "ok,503", options=["--unknown-encoding", str(status)])
        stats = drive(program, receiver.url, 3, 8000, compress=2)
        receiver.stop()
        rows = receiver.ledger()
        tell(f"zstd: a {status} brings gzip, for good", differ(stats, expected(
            3, 0, retries=stats["retries"], last_error="", no_zstd=1,
            bytes_sent=sum(row["bytes_compressed"] for row in rows if row["stored"]))) +
            differ({"encodings": [row["headers"].get("Content-Encoding") for row in rows]},
                   {"encodings": ["zstd"] + ["gzip"] * 4}))
    receiver = Receiver(directory, "zstd-then-400", "ok,400", options=["--zstd"])
    stats = drive(program, receiver.url, 3, 8000, compress=2)
    receiver.stop()
    tell("zstd: a 400 of a receiver that took it is for the payload", differ(stats, expected(2, 1, no_zstd=0)))
    # as grpc-go's servers say it; grpcio's look into no message
    server, port, got, _ = grpc_server("127.0.0.1:0", [(
        grpc.StatusCode.UNIMPLEMENTED, 'grpc: Decompressor is not installed for grpc-encoding "zstd"')])
    stats = drive(program, f"http://127.0.0.1:{port}/{GRPC_PATH}", 3, 8000, grpc=1, compress=2)
    server.stop(0)
    tell("zstd: a gRPC server without it", differ(stats, expected(3, 0, no_zstd=1)) +
         differ({"got": len(got), "whole": all(not wire.decode(one)[1] for one in got)}, {"got": 3, "whole": True}))


def as_json(program, directory):
    """OTLP's JSON, read by protobuf's own parser of JSON: the message that the store has in binary."""
    modules, store = os.path.join(directory, "protos"), os.path.join(directory, "json-store")
    protos = os.path.join(HERE, os.pardir, os.pardir, "daemon", "export", "proto")
    os.mkdir(modules)
    subprocess.run(["protoc", f"--proto_path={protos}", f"--python_out={modules}"] +
                   [os.path.join(protos, name) for name in ("profiles.proto", "common.proto", "resource.proto")], check=True)
    receiver = Receiver(directory, "json", "", options=["--json", modules, "--zstd"])
    for compress, encoding in ((1, "gzip"), (0, None), (2, "zstd")):
        stats = drive(program, receiver.url, 1, 8000, json=1, compress=compress, store=store)
        row = receiver.ledger()[-1]
        tell(f"JSON, compressed by {encoding}: taken", differ(stats, expected(1, 0, retries=0, bad_responses=0)) + differ(
            {"status": row["status"], "encoding": row["headers"].get("Content-Encoding"), "why": row["verdict"]},
            {"status": 200, "encoding": encoding, "why": "accepted"}))
    receiver.stop()
    sys.path.insert(0, modules)
    profiles = __import__("profiles_pb2")
    have = [profiles.ProfilesData.FromString(payload) for payload in taken(receiver)]
    want = [profiles.ProfilesData.FromString(payload) for name in sorted(os.listdir(store))
            for payload in wire.read(os.path.join(store, name))]
    tell("JSON: it is the message in binary", [] if len(have) == 3 and have == want else
         [("messages", len(have), len(want))])
    receiver = Receiver(directory, "json-answers", "ok,partial:rejected=3,partial-warning,400", options=["--json", modules])
    stats = drive(program, receiver.url, 4, 8000, json=1)
    receiver.stop()
    tell("JSON: answers are read", differ(stats, expected(3, 1, partial_rejected=3, partial_warnings=1, bad_responses=0,
                                                          last_error="HTTP 400: scripted: 400")))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def down_at_start(program, directory):
    port = free_port()
    receivers = []

    def start():
        # by then the driver has begun, on a busy host as well
        time.sleep(1.5)
        receivers.append(Receiver(directory, "late", "", port))
    starter = threading.Thread(target=start)
    starter.start()
    stats = drive(program, f"http://127.0.0.1:{port}{PATH}", 3, RUN_MS, backoff_max=200)
    starter.join()
    receivers[0].stop()
    tell("down at start, then there", differ(stats, expected(3, 0)) +
         differ({"received": len(taken(receivers[0]))}, {"received": 3}) +
         ([] if stats["retries"] >= 3 else [("retries", stats["retries"], ">= 3")]))
    stats = drive(program, f"http://127.0.0.1:{free_port()}{PATH}", 2, 300)
    tell("never there: dropped and counted", differ(stats, expected(0, 2)))


def other_protocol(program):
    """A gRPC server, which begins with HTTP/2's SETTINGS and says GOAWAY to anything else."""
    def serve(listener):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00"
                                   b"\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01")

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        stats = drive(program, f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}", 1, 600)
    tell("a gRPC port is named", [] if "gRPC port" in stats["last_error"] and stats["payloads_dropped"] == 1
         else [("stats", stats, "the port named, one dropped at the end")])


def hostile(program):
    """A receiver that answers with far too much: the daemon takes 4 MiB and no more."""
    def serve(listener, answers):
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(10)
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                head, _, body = data.partition(b"\r\n\r\n")
                length = int([line.split(b":")[1] for line in head.split(b"\r\n")
                              if line.lower().startswith(b"content-length")][0])
                while len(body) < length:
                    body += connection.recv(65536)
                try:
                    connection.sendall(answer)
                except OSError:
                    pass

    kind = b"Content-Type: application/x-protobuf\r\n"
    many = b"\x0a\x00" * 1000000
    answers = [
        # more than is taken
        b"HTTP/1.1 200 OK\r\n" + kind + b"Content-Length: 9000000\r\n\r\n" + b"\x0a" * 9000000,
        # few bytes that unpack to many
        b"HTTP/1.1 200 OK\r\n" + kind + b"Content-Length: %d\r\n\r\n" % len(many) + many,
        b"HTTP/1.1 200 OK\r\n" + kind + b"Content-Length: 6\r\n\r\n\x1a\x02\x1a\x00\x7a\x00",
        # text of the answer ends up in logs and on terminals
        b"HTTP/1.1 400 Bad\r\n" + kind + b"Content-Length: 9\r\n\r\n\x12\x07\x1b[31m\n\xff",
        b"HTTP/1.1 503 Busy\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n",
    ]
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(listener, answers), daemon=True)
    thread.start()
    # for all five; it waits until then as the last one wants
    stats = drive(program, f"http://127.0.0.1:{listener.getsockname()[1]}/", 5, 2000, stop=0)
    thread.join(10)
    tell("answers made to harm", differ(stats, {
        "payloads_sent": 3 - stats["bad_responses"], "payloads_unconfirmed": stats["bad_responses"], "payloads_dropped": 2,
        "retries": 0, "last_error": "HTTP 503"}) +
        ([] if 1 <= stats["bad_responses"] <= 2 else [("bad", stats["bad_responses"], "1 or 2")]))


def grpc_server(address, answers, compression=None):
    """A real gRPC server that gives these answers, then takes all: (server, payloads that it took, the calls' metadata)."""
    taken_by, calls = [], []

    def export(request, context):
        calls.append({pair.key: pair.value for pair in context.invocation_metadata()})
        answer = answers.pop(0) if answers else None
        if not answer:
            taken_by.append(request)
            return b""
        if isinstance(answer, bytes):
            taken_by.append(request)
            return answer
        code, text, *trailers = answer
        context.set_trailing_metadata(trailers)
        context.abort(code, text)

    service = "opentelemetry.proto.collector.profiles.v1development.ProfilesService"
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), compression=compression)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        service, {"Export": grpc.unary_unary_rpc_method_handler(export)}),))
    port = server.add_insecure_port(address)
    server.start()
    return server, port, taken_by, calls


def over_grpc(program, directory):
    """OTLP/gRPC, by a server that is not ours."""
    def url(port):
        return f"http://127.0.0.1:{port}/{GRPC_PATH}"

    server, port, got, calls = grpc_server("127.0.0.1:0", [])
    stats = drive(program, url(port), 5, 8000, grpc=1, headers="x-tenant=a%20b")
    tell("gRPC: all is well", differ(stats, expected(5, 0, retries=0, bad_responses=0)) +
         differ({"payloads": len(got), "whole": all(not wire.decode(one)[1] for one in got),
                 "tenant": calls[0].get("x-tenant"), "version": calls[0].get("otlp-profiles-development-version")},
                {"payloads": 5, "whole": True, "tenant": "a b", "version": "1"}))
    stats = drive(program, url(port), 1, 8000, grpc=1, compress=0)
    tell("gRPC: without compression", differ(stats, expected(1, 0, retries=0)) + differ({"got": len(got)}, {"got": 6}))
    server.stop(0)

    code = grpc.StatusCode
    for name, answer, want, least_ms in (
            ("UNAVAILABLE is sent again", (code.UNAVAILABLE, "not now"), expected(1, 0, retries=1), 25),
            ("RESOURCE_EXHAUSTED with RetryInfo, too, in its time", (code.RESOURCE_EXHAUSTED, "slow down",
             ("grpc-status-details-bin", retry_info(1))), expected(1, 0, retries=1, throttled=1), 900),
            ("RESOURCE_EXHAUSTED without it is final", (code.RESOURCE_EXHAUSTED, "too large"),
             expected(0, 1, retries=0, last_error="gRPC 8 RESOURCE_EXHAUSTED: too large"), 0),
            ("INVALID_ARGUMENT is final", (code.INVALID_ARGUMENT, "süß\n%"),
             expected(0, 1, retries=0, last_error="gRPC 3 INVALID_ARGUMENT: süß?%"), 0),
            ("partial success", b"\x0a\x06\x08\x02\x12\x02no", expected(1, 0, partial_rejected=2, last_error="no"), 0),
            ("garbage in an answer that is well is no acceptance", b"\xff\xff\xff",
             unconfirmed(0, 1, last_error="gRPC 0 OK with a message that is not an OTLP response"), 0)):
        server, port, _, _ = grpc_server("127.0.0.1:0", [answer])
        stats = drive(program, url(port), 1, 8000, grpc=1)
        server.stop(0)
        tell(f"gRPC: {name}", differ(stats, want) +
             ([] if stats["elapsed_ms"] >= least_ms else [("elapsed_ms", stats["elapsed_ms"], least_ms)]))
    # as grpc-go's servers do whenever the request is compressed
    answer = b"\x0a\x40\x08\x02\x12\x3c" + b"no" * 30
    server, port, _, _ = grpc_server("127.0.0.1:0", [answer], grpc.Compression.Gzip)
    stats = drive(program, url(port), 1, 8000, grpc=1)
    server.stop(0)
    tell("gRPC: a compressed answer", differ(stats, expected(1, 0, partial_rejected=2, bad_responses=0,
                                                             last_error="no" * 30)))
    for compress in (0, 1):
        server, port, _, _ = grpc_server("127.0.0.1:0", [])
        stats = drive(program, url(port), 1, 8000, grpc=1, compress=compress, pad=4300000,
                      log=os.path.join(directory, f"large{compress}.log"))
        server.stop(0)
        tell(f"gRPC: a payload above the server's limit is final, compress={compress}",
             [] if "8 RESOURCE_EXHAUSTED" in stats["last_error"] and stats["payloads_dropped"] == 1 and
             not stats["retries"] else [("stats", stats, "RESOURCE_EXHAUSTED, dropped")])
    server, port, _, _ = grpc_server("127.0.0.1:0", [])
    stats = drive(program, f"http://127.0.0.1:{port}/no.such.Service/Export", 1, 600, grpc=1)
    server.stop(0)
    tell("gRPC: a server without the service", [] if "12 UNIMPLEMENTED" in stats["last_error"] and
         stats["payloads_dropped"] == 1 else [("stats", stats, "UNIMPLEMENTED, dropped")])
    path = os.path.join(directory, "grpc.sock")
    server, _, got, _ = grpc_server(f"unix:{path}", [])
    stats = drive(program, f"unix://{path}", 2, 8000, grpc=1)
    server.stop(0)
    tell("gRPC: through a unix socket", differ(stats, expected(2, 0)) + differ({"got": len(got)}, {"got": 2}))
    receiver = Receiver(directory, "not-grpc", "")
    stats = drive(program, url(receiver.port), 1, 300, grpc=1)
    receiver.stop()
    tell("gRPC: a port of HTTP/1.1 is named", [] if "does not speak HTTP/2" in stats["last_error"] and
         stats["payloads_dropped"] == 1 else [("stats", stats, "the port named, one dropped at the end")])


def retry_info(seconds):
    """grpc-status-details-bin: google.rpc.Status with RetryInfo."""
    def field(number, data):
        return bytes((number << 3 | 2, len(data))) + data
    delay = field(1, bytes((8, seconds)))
    return field(3, field(1, b"type.googleapis.com/google.rpc.RetryInfo") + field(2, delay))


def held_until(ready):
    """A receiver that says nothing to its first request until ready(): (listener, what it has seen)."""
    seen = {"requests": 0, "held": None}

    def serve(listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                head, _, body = data.partition(b"\r\n\r\n")
                length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
                while len(body) < length:
                    body += connection.recv(65536)
                seen["requests"] += 1
                for _ in range(3000 if seen["held"] is None else 0):
                    if ready():
                        break
                    time.sleep(0.01)
                seen["held"] = ready() if seen["held"] is None else seen["held"]
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    return listener, seen


def several(program, directory):
    """Several destinations: none waits for another one's receiver."""
    well, refusing = Receiver(directory, "several-well", ""), Receiver(directory, "several-400", "400*")
    slow, seen = held_until(lambda: len(well.ledger()) >= 6)
    dead, spool = free_port(), os.path.join(directory, "several-spool")
    log = os.path.join(directory, "several.log")
    try:
        stats = drive(program, well.url, 6, 60000, log=log, timeout=50000, backoff_max=100, until=18, stop=0, pause=20, to=[
            f"dead,{spool},http://127.0.0.1:{dead}{PATH}", f"slow,,http://127.0.0.1:{slow.getsockname()[1]}{PATH}",
            f"refusing,,{refusing.url}"])
    finally:
        well.stop()
        refusing.stop()
    slow.close()
    tell("several destinations: one that says nothing delays no other", differ(seen, {"requests": 6, "held": True}))
    tell("each has its own fate", differ(stats, {
        "first.payloads_sent": 6, "first.payloads_waiting": 0, "first.payloads_dropped": 0,
        "slow.payloads_sent": 6, "slow.payloads_dropped": 0, "refusing.payloads_sent": 0, "refusing.payloads_dropped": 6,
        "dead.payloads_sent": 0, "dead.payloads_dropped": 0, "dead.payloads_waiting": 6,
        "payloads_sent": 12, "payloads_dropped": 6, "payloads_waiting": 6}) +
        differ({"order": [int(NUMBER.search(payload)[1]) for payload in taken(well)]}, {"order": [1, 2, 3, 4, 5, 6]}))
    late = Receiver(directory, "several-late", "", dead)
    stats = drive(program, well.url, 0, 20000, until=6, to=[f"dead,{spool},{late.url}"])
    late.stop()
    tell("and its own spool", differ(stats, {"dead.payloads_sent": 6, "first.payloads_sent": 0}) + differ(
        {"order": [int(NUMBER.search(payload)[1]) for payload in taken(late)]}, {"order": [1, 2, 3, 4, 5, 6]}))
    # three quarters are the exporter's: four and a half, for both together, as they share what waits
    nobody = f"http://127.0.0.1:{free_port()}{PATH}"
    size = len_of_body(program, directory)
    stats = drive(program, nobody, 12, 20000, stop=0, until=16, pause=5, queue=size * 6, to=[f"other,,{nobody}"])
    tell("one limit for what waits in memory, and one copy", [] if 5 <= stats["waiting_at_end"] <= 8 and
         stats["queue_peak"] <= size * 6 // 4 * 3 else [("stats", stats, "about 4 waiting of each")])


def stored(program, directory):
    store = os.path.join(directory, "store")
    stats = drive(program, "", 3, 100, store=store)
    files = sorted(os.listdir(store))
    payloads = [payload for name in files for payload in wire.read(os.path.join(store, name))]
    tell("no endpoint: everything is in the local store", differ(stats, {
        "payloads_stored": 3, "payloads_sent": 0, "payloads_dropped": 0}) +
        differ({"payloads": len(payloads)}, {"payloads": 3}))


NUMBER = re.compile(rb"\x0a\x06number\x12.{2,8}x(\d{5})", re.DOTALL)


def numbers(receiver):
    """How often each of the driver's numbered payloads was taken."""
    return collections.Counter(int(number) for payload in taken(receiver) for number in NUMBER.findall(payload))


def kill_after(driver, log, dice):
    """kill -9 after none to five payloads more, and a while; on a host that is busy the driver takes long to start."""
    wanted, end = size_of(log) + dice.randrange(6), time.monotonic() + 10
    while size_of(log) < wanted and time.monotonic() < end:
        time.sleep(0.002)
    time.sleep(dice.uniform(0, 0.05))
    driver.kill()
    driver.wait()


def killed(program, directory, kills):
    """kill -9 at random points, a receiver that comes and goes: each payload arrives."""
    spool, log = os.path.join(directory, "spool"), os.path.join(directory, "spool.log")
    script = "ok*7,503*2,close-mid-response:store=1,close-before-response,ok*3,429,502:store=1"
    receiver = Receiver(directory, "killed", ",".join([script] * 1000))
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    arguments = [f"spool={spool}", f"log={log}", "pad=20000", "pause=3", "backoff_min=4", "backoff_max=16"]
    try:
        for _ in range(kills):
            driver = subprocess.Popen([program, receiver.url, "1000000", "1000000", *arguments],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            kill_after(driver, log, dice)
        stats = drive(program, receiver.url, 0, 60000, spool=spool, backoff_min=4, backoff_max=16)
    finally:
        receiver.stop()
    count = os.path.getsize(log)
    got = numbers(receiver)
    missing = [number for number in range(1, count + 1) if number not in got]
    # sent twice: what was under way at a kill, what the log had not yet, what only the receiver knew of
    again = sum(got.values()) - len(got)
    unanswered = sum(row["stored"] and row["step"] != "ok"
                     for row in receiver.ledger())
    wrong = differ(stats, {"payloads_waiting": 0, "spool_full_messages": 0, "samples_waiting": 0})
    if missing or count < kills:
        wrong.append((f"missing of {count}", missing[:9], []))
    # a kill may cut off the message that was being written, and nothing else
    if stats["spool_damaged_messages"] > 1:
        wrong.append(("damaged", stats["spool_damaged_messages"], "one at most"))
    if again > 2 * kills + unanswered:
        wrong.append(("sent again", again, f"at most 2 * {kills} + {unanswered}"))
    tell(f"killed {kills} times: all of {count} payloads arrive, {again} of them twice", wrong +
         ([("seed", seed, "")] if wrong else []))
    tell("and the spool is empty", differ({"files": os.listdir(spool)}, {"files": []}))


def killed_several(program, directory, kills):
    """The same with two destinations, whose receivers come and go each in its own time."""
    spools, log = [os.path.join(directory, f"spool-{name}") for name in "ab"], os.path.join(directory, "several-killed.log")
    scripts = ["ok*7,503*2,close-mid-response:store=1,ok*3,429", "503*5,ok*2,close-before-response,ok*9,502:store=1"]
    receivers = [Receiver(directory, f"killed-{i}", ",".join([script] * 1000)) for i, script in enumerate(scripts)]
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    arguments = [f"spool={spools[0]}", f"to=b,{spools[1]},{receivers[1].url}", "backoff_min=4", "backoff_max=16"]
    try:
        for _ in range(kills):
            driver = subprocess.Popen([program, receivers[0].url, "1000000", "1000000", *arguments, f"log={log}", "pad=20000",
                                       "pause=3"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            kill_after(driver, log, dice)
        stats = drive(program, receivers[0].url, 0, 60000, spool=spools[0], to=[f"b,{spools[1]},{receivers[1].url}"],
                      backoff_min=4, backoff_max=16)
    finally:
        for receiver in receivers:
            receiver.stop()
    count = os.path.getsize(log)
    wrong = differ(stats, {"payloads_waiting": 0, "spool_full_messages": 0, "first.payloads_waiting": 0, "b.payloads_waiting": 0})
    again, limit = 0, 4 * kills
    for receiver in receivers:
        got = numbers(receiver)
        limit += sum(row["stored"] and row["step"] != "ok" for row in receiver.ledger())
        missing = [number for number in range(1, count + 1) if number not in got]
        again += sum(got.values()) - len(got)
        if missing or count < kills:
            wrong.append((f"missing of {count}", missing[:9], []))
    # by the rules of killed(), for each
    wrong += [("sent again", again, f"at most {limit}")] if again > limit else []
    tell(f"two destinations, killed {kills} times: all of {count} payloads arrive at both, {again} of them twice", wrong +
         ([("seed", seed, "")] if wrong else []))
    tell("and both spools are empty", differ({"files": [os.listdir(spool) for spool in spools]}, {"files": [[], []]}))


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def journal_files(directory):
    return [name for name in (os.listdir(directory) if os.path.isdir(directory) else ())
            if name.startswith("journal-")]


def journalled(program, directory, kills):
    """kill -9 while windows are open: each part that was written arrives, by itself or in its window."""
    parts = 6
    spool, log = os.path.join(directory, "journal"), os.path.join(directory, "journal.log")
    receiver = Receiver(directory, "journalled", ",".join(["ok*5,503*2,close-before-response"] * 1000))
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    arguments = [f"spool={spool}", f"log={log}", "pad=2000", "pause=2", "backoff_min=4", "backoff_max=16",
                 f"journal={parts}"]
    seen_open = 0
    try:
        for _ in range(kills):
            driver = subprocess.Popen([program, receiver.url, "1000000", "1000000", *arguments],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before, until = size_of(log), time.monotonic() + 10
            while size_of(log) == before and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(dice.uniform(0, 0.06))
            driver.kill()
            driver.wait()
            seen_open += bool(journal_files(spool))
        stats = drive(program, receiver.url, 0, 60000, spool=spool, backoff_min=4, backoff_max=16, journal=1)
    finally:
        receiver.stop()
    count = os.path.getsize(log)
    got = numbers(receiver)
    missing = [number for number in range(1, count + 1) if number not in got]
    # by the spool's rules as in killed(), and what was in the spool before its journal was removed
    again = sum(got.values()) - len(got)
    limit = parts * (3 * kills + sum(row["stored"] and row["step"] != "ok" for row in receiver.ledger()))
    wrong = differ(stats, {"payloads_waiting": 0, "samples_waiting": 0})
    wrong += [(f"missing of {count}", missing[:9], [])] if missing or count < kills else []
    wrong += [("sent again", again, f"at most {limit}")] if again > limit else []
    wrong += [("kills with an open window", seen_open, f"most of {kills}")] if seen_open < kills / 2 else []
    tell(f"killed {kills} times, {seen_open} in an open window: all of {count} parts arrive, {again} of them twice",
         wrong + ([("seed", seed, "")] if wrong else []))
    tell("and no journal is left", differ({"files": os.listdir(spool)}, {"files": []}))
    # without an endpoint the store takes them over
    store, log = os.path.join(directory, "journal-store"), os.path.join(directory, "store.log")
    driver = subprocess.Popen([program, "", "1", "1000", f"store={store}", f"log={log}", "pause=50", "journal=100"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while size_of(log) < 5:
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    before = journal_files(store)
    drive(program, "", 0, 10, store=store, journal=1)
    payloads = [payload for name in sorted(os.listdir(store)) for payload in wire.read(os.path.join(store, name))]
    got = sorted(int(number) for payload in payloads for number in NUMBER.findall(payload))
    tell("killed with a store: the next run finds the parts", differ(
        {"journals": len(before), "left": journal_files(store), "whole": all(not wire.decode(one)[1] for one in payloads),
         "all": set(range(1, os.path.getsize(log) + 1)) - set(got)},
        {"journals": 1, "left": [], "whole": True, "all": set()}))


def after_waiting(program, directory):
    """Another process has the spool open at first."""
    spool, log = os.path.join(directory, "late"), os.path.join(directory, "late.log")
    drive(program, f"http://127.0.0.1:{free_port()}{PATH}", 3, 100, spool=spool, log=log, stop=0)
    receiver = Receiver(directory, "late-spool", "")
    holder = os.open(spool, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    driver = subprocess.Popen([program, receiver.url, "1", "4000", f"spool={spool}", f"log={log}",
                               "spool_retry=100", "wait=600"], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    os.close(holder)
    driver.wait(30)
    receiver.stop()
    return {"order": [int(NUMBER.search(payload)[1]) for payload in taken(receiver)]}


def refused(program, directory):
    """What waits while every request is answered with 401."""
    spool = os.path.join(directory, "refused")
    drive(program, f"http://127.0.0.1:{free_port()}{PATH}", 30, 100, spool=spool, stop=0)
    receiver = Receiver(directory, "refusing", "401*")
    stats = drive(program, receiver.url, 0, 600, spool=spool, backoff_min=100)
    receiver.stop()
    return stats


def poisoned(program, directory):
    """One body that breaks the connection each time does not hold up the others."""
    spool, log = os.path.join(directory, "poison"), os.path.join(directory, "poison.log")
    drive(program, f"http://127.0.0.1:{free_port()}{PATH}", 4, 100, spool=spool, log=log, stop=0, pad=20000)
    got = []

    def serve(listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                head, _, body = data.partition(b"\r\n\r\n")
                length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
                while len(body) < length:
                    body += connection.recv(65536)
                number = int(NUMBER.search(body)[1])
                if number == 2:
                    continue
                got.append(number)
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    stats = drive(program, f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}", 20, 8000, spool=spool, log=log,
                  pad=20000, pause=40, backoff_min=10, backoff_max=20, compress=0)
    listener.close()
    tell("one that is never taken does not hold up the others", differ(stats, {
        "payloads_dropped": 1, "payloads_waiting": 0}) +
        differ({"got": sorted(set(got))}, {"got": [n for n in range(1, 25) if n != 2]}))


def spooled(program, directory):
    """What a run leaves the next one sends; what the disk does not take waits in memory."""
    spool = os.path.join(directory, "left")
    log = os.path.join(directory, "left.log")
    nobody = f"http://127.0.0.1:{free_port()}{PATH}"
    stats = drive(program, nobody, 5, 200, spool=spool, log=log, stop=0)
    tell("never there: the spool keeps it", differ(stats, {
        "payloads_waiting": 5, "payloads_dropped": 0, "samples_waiting": 5 * SAMPLES, "spool_messages": 5}))
    messages = [message for name in sorted(os.listdir(spool))
                for message in wire.read(os.path.join(spool, name))]
    tell("as a file that any reader of OTLP takes", differ({"payloads": len(messages)}, {"payloads": 5}))
    receiver = Receiver(directory, "after", "")
    stats = drive(program, receiver.url, 1, 8000, spool=spool, log=log)
    receiver.stop()
    order = [int(NUMBER.search(payload)[1]) for payload in taken(receiver)]
    tell("the next run sends it first, in order", differ(stats, expected(6, 0)) +
         differ({"order": order}, {"order": [1, 2, 3, 4, 5, 6]}))
    stats = drive(program, nobody, 40, 100, spool=spool, spool_max=1 << 20, stop=0)
    tell("a full spool drops the oldest and counts", [] if stats["spool_full_messages"] > 0 and
         stats["payloads_dropped"] == stats["spool_full_messages"] == 40 - stats["payloads_waiting"]
         else [("stats", stats, "40 in all")])
    order = after_waiting(program, directory)
    tell("a spool that is opened late is sent first", differ(order, {"order": [1, 2, 3, 4]}))
    stats = refused(program, directory)
    tell("a token that expired costs one payload per pause", [] if 1 <= stats["payloads_dropped"] <= 6 and
         stats["payloads_dropped"] + stats["payloads_waiting"] == 30 else [("stats", stats, "a few of 30")])
    poisoned(program, directory)
    receiver = Receiver(directory, "no-spool", "503")
    stats = drive(program, receiver.url, 2, 8000, spool="/proc/nowhere")
    receiver.stop()
    tell("without its disk payloads wait in memory", differ(stats, expected(2, 0)))


def pipe(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@contextlib.contextmanager
def front(port, context=None):
    """A port that passes on to another one: by TLS, or as a proxy to where CONNECT says. Yields it and how often that happened."""
    passed = []

    def serve(connection):
        try:
            if context:
                connection, to = context.wrap_socket(connection, server_side=True), ("127.0.0.1", port)
            else:
                words = connection.recv(65536).split()
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                to = ("127.0.0.1", int(words[1].rpartition(b":")[2])) if words[0] == b"CONNECT" else None
            other = socket.create_connection(to)
        except OSError:
            return connection.close()
        passed.append(to[1])
        threading.Thread(target=pipe, args=(other, connection), daemon=True).start()
        return pipe(connection, other)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], passed


def over_tls(program, directory):
    """Both sides show a certificate, and take none that the other one's is not signed by."""
    def certificate(name, *options):
        path = os.path.join(directory, name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", path + ".key", "-out",
                        path + ".crt", "-subj", f"/CN={name}", *options], stderr=subprocess.DEVNULL, check=True)
        return path
    server, client, other = (certificate(name, "-addext", "subjectAltName=IP:127.0.0.1") for name in ("server", "client", "other"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server + ".crt", server + ".key")
    context.load_verify_locations(client + ".crt")
    context.verify_mode = ssl.CERT_REQUIRED
    ours = {"client_certificate": client + ".crt", "client_key": client + ".key"}
    receiver = Receiver(directory, "tls", "")
    try:
        with front(receiver.port, context) as (port, _), front(0) as (proxy, proxied):
            url = f"https://127.0.0.1:{port}{PATH}"
            for name, sent, options in (
                    ("a certificate of the receiver that nobody vouches for is not taken", 0, {"certificate": other + ".crt", **ours}),
                    ("a receiver that wants one gets ours", 1, {"certificate": server + ".crt", **ours}),
                    ("and takes no other", 0, {"certificate": server + ".crt", "client_certificate": other + ".crt",
                                               "client_key": other + ".key"})):
                stats = drive(program, url, 1, RUN_MS if sent else 600, **options)
                tell("TLS: " + name, differ(stats, {"payloads_sent": sent, "payloads_dropped": 1 - sent}))
            os.environ["https_proxy"] = f"http://127.0.0.1:{proxy}"
            try:
                stats = drive(program, url, 1, RUN_MS, certificate=server + ".crt", **ours)
            finally:
                del os.environ["https_proxy"]
            tell("TLS: through a proxy", differ({**stats, "proxied": proxied}, {"payloads_sent": 1, "proxied": [port]}))
    finally:
        receiver.stop()
    tell("TLS: what was sent is there", [] if len(taken(receiver)) == 2 else [("payloads", len(taken(receiver)), 2)])


def main():
    program, directory = sys.argv[1:]
    scripted(program, directory)
    over_tls(program, directory)
    down_at_start(program, directory)
    other_protocol(program)
    hostile(program)
    over_grpc(program, directory)
    with_zstd(program, directory)
    as_json(program, directory)
    several(program, directory)
    stored(program, directory)
    spooled(program, directory)
    killed(program, directory, 200)
    killed_several(program, directory, 40)
    journalled(program, directory, 60)
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An OTLP/HTTP receiver of profiles for tests, on the loopback address only.

Accepted requests are appended to a file of length-prefixed messages; each request becomes one JSON
line in a ledger, written before it is answered. A script makes it misbehave (see script.py).
"""

import argparse
import base64
import email.utils
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

import check
import make_sample
import script
import wire
from wire import Message

PATH = "/v1development/profiles"
METRICS_PATH = "/v1/metrics"
CONTENT_TYPE = "application/x-protobuf"
JSON_TYPE = "application/json"
VERSION_HEADER = "OTLP-Profiles-Development-Version"
BODY_LIMIT = 20 << 20
IDLE_TIMEOUT = 120
DRAIN_TIMEOUT = 10
# The codes of google.rpc that a Collector puts into the body of such an answer.
RPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 3, 429: 8, 502: 14, 503: 14,
             504: 4}
GARBAGE = bytes((0xff, 0xff, 0xff, 0xff, 0x0a, 0x99, 0x07)) * 3


class Refused(Exception):
    """A request is answered with an error, without any script saying so."""

    def __init__(self, status, reason, close=False):
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.close = close


def gunzip(data, limit):
    """All members of a gzip body, never more than limit + 1 bytes of it."""
    out = bytearray()
    while data:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            out += inflater.decompress(data, limit + 1 - len(out))
        except zlib.error as error:
            raise Refused(400, f"body is not gzip: {error}") from None
        if len(out) > limit:
            break
        if not inflater.eof:
            raise Refused(400, "gzip body is cut off")
        data = inflater.unused_data
    return bytes(out)


def unzstd(data, limit):
    """By the program that comes with the library, never more than limit + 1 bytes."""
    done = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False)
    if done.returncode:
        raise Refused(400, "body is not zstd")
    return done.stdout[:limit + 1]


def from_json(body, directory):
    """The message in binary, by protobuf's own parser of JSON; ids are in hex there."""
    sys.path.insert(0, directory)
    from google.protobuf import json_format
    import profiles_pb2
    text = re.sub(rb'"(profileId|traceId|spanId)":"([0-9a-f]*)"', lambda found: b'"%s":"%s"' % (
        found[1], base64.b64encode(bytes.fromhex(found[2].decode()))), body)
    try:
        message = json_format.Parse(text, profiles_pb2.ProfilesData())
    except json_format.ParseError as error:
        raise Refused(400, f"body is not OTLP's JSON: {error}") from None
    return message.SerializeToString()


class Store:
    """The output file, the ledger and the totals; one writer at a time."""

    def __init__(self, output, ledger):
        self.lock = threading.Lock()
        self.output = open(output, "ab") if output else None
        self.ledger = open(ledger, "a", encoding="utf-8") if ledger else None
        self.totals = {"requests": 0, "accepted": 0, "refused": 0, "connections": 0,
                       "bytes_compressed": 0, "bytes_uncompressed": 0, "violations": 0}

    def connection(self):
        with self.lock:
            self.totals["connections"] += 1
            return self.totals["connections"]

    def add(self, row, payload):
        with self.lock:
            totals = self.totals
            totals["requests"] += 1
            totals["accepted" if row["stored"] else "refused"] += 1
            totals["bytes_compressed"] += row["bytes_compressed"]
            totals["bytes_uncompressed"] += row["bytes_uncompressed"]
            totals["violations"] += len(row["violations"] or ())
            if self.output and row["stored"]:
                self.output.write(wire.frame(payload))
                self.output.flush()
            if self.ledger:
                self.ledger.write(json.dumps(row) + "\n")
                self.ledger.flush()

    def close(self):
        for file in (self.output, self.ledger):
            if file:
                file.close()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, store, steps, options):
        super().__init__(address, Handler)
        self.store = store
        self.script = steps
        self.script_lock = threading.Lock()
        self.options = options
        self.stopping = threading.Event()
        self.idle = threading.Condition()
        self.active = 0

    def next_step(self):
        with self.script_lock:
            return self.script.next()

    def drain(self, timeout):
        """Take no more requests and wait for those that are being answered."""
        with self.idle:
            self.stopping.set()
            return self.idle.wait_for(lambda: self.active == 0, timeout)

    def handle_error(self, request, client_address):
        """A client that goes away in the middle is what many of the tests are about."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "stacktap-test-receiver"
    sys_version = ""
    timeout = IDLE_TIMEOUT
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.connection_id = self.server.store.connection()

    def log_message(self, format, *args):
        pass

    def read_chunks(self, limit):
        body = bytearray()
        while True:
            try:
                size = int(self.rfile.readline(64).split(b";")[0], 16)
            except ValueError:
                raise Refused(400, "chunk has no length", close=True) from None
            if size < 0 or len(body) + size > limit:
                raise Refused(413, f"body is over {limit} bytes", close=True)
            body += self.rfile.read(size)
            if size == 0:
                while self.rfile.readline(1024).strip():
                    pass
                return bytes(body)
            self.rfile.readline(8)

    def read_body(self, limit):
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self.read_chunks(limit)
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            raise Refused(411, "Content-Length is missing", close=True)
        if int(length) > limit:
            raise Refused(413, f"body is over {limit} bytes", close=True)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise Refused(400, "body is cut off", close=True)
        return body

    def payload(self, body, limit):
        """The uncompressed body of a request that a Collector would take."""
        if self.path != PATH:
            raise Refused(404, f"there is nothing at {self.path}")
        if self.command != "POST":
            raise Refused(405, "only POST is for profiles")
        if self.headers.get("Content-Type") != (JSON_TYPE if self.server.options.json else CONTENT_TYPE):
            raise Refused(415, f"Content-Type is {self.headers.get('Content-Type')}")
        versions = self.headers.get_all(VERSION_HEADER, [])
        if versions != ["1"] and (versions or self.server.options.require_version):
            raise Refused(400, f"{VERSION_HEADER} is {versions}, not one \"1\"")
        encoding = self.headers.get("Content-Encoding", "identity")
        if encoding == "gzip":
            body = gunzip(body, limit)
        elif encoding == "zstd" and self.server.options.zstd:
            body = unzstd(body, limit)
        elif encoding != "identity":
            raise Refused(self.server.options.unknown_encoding, f"Content-Encoding {encoding!r} is not known")
        if len(body) > limit:
            raise Refused(413, f"body is over {limit} bytes uncompressed")
        return from_json(body, self.server.options.json) if self.server.options.json else body

    def receive_metrics(self):
        limit = self.server.options.body_limit
        body = self.read_body(limit)
        if self.headers.get("Content-Encoding") == "gzip":
            body = gunzip(body, limit)
        with self.server.store.lock, open(self.server.options.metrics, "ab") as file:
            file.write(wire.frame(body))
        self.answer(200, b"")

    def receive(self):
        options = self.server.options
        if options.metrics and self.path == METRICS_PATH:
            self.receive_metrics()
            return
        headers = {name: ", ".join(self.headers.get_all(name)) for name in self.headers.keys()}
        row = {"time": time.time(), "connection": self.connection_id, "method": self.command,
               "path": self.path, "headers": headers, "bytes_compressed": 0,
               "bytes_uncompressed": 0, "step": None, "status": None, "verdict": "",
               "stored": False, "violations": None}
        payload = b""
        try:
            body = self.read_body(options.body_limit)
            row["bytes_compressed"] = len(body)
            payload = self.payload(body, options.body_limit)
            row["bytes_uncompressed"] = len(payload)
            try:
                wire.decode(payload)
            except wire.WireError as error:
                raise Refused(400, str(error)) from None
            if options.check:
                row["violations"] = check.check(payload)
        except Refused as refused:
            row.update(status=refused.status, verdict=refused.reason)
            self.close_connection |= refused.close
            self.server.store.add(row, payload)
            self.answer_error(refused.status, refused.reason)
            return
        step = self.server.next_step()
        row.update(step=step.text, stored=step.store, judged=time.time(),
                   verdict="accepted" if step.store else "scripted",
                   status=int(step.name) if step.name.isdigit() else step.options.get("status") or (
                   307 if step.name == "redirect" else
                   None if step.name in ("hang", "close-before-response") else 200))
        self.server.store.add(row, payload)
        self.play(step)

    def answer(self, status, body, headers=(), kind=CONTENT_TYPE, text=None):
        if self.server.options.json and kind == CONTENT_TYPE:
            kind, body = JSON_TYPE, json.dumps(text or {}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def answer_error(self, status, text, headers=()):
        self.answer(status, make_sample.encode(Message(
            "Status", code=RPC_CODES.get(status, 13), message=text)), headers,
                    text={"code": RPC_CODES.get(status, 13), "message": text})

    def cut(self):
        """Close at once; the client sees the end of the connection, not a reset."""
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def play(self, step):
        options = step.options
        if step.name == "ok":
            self.answer(200, b"")
        elif step.name in ("partial", "partial-warning"):
            rejected = options.get("rejected", 1) if step.name == "partial" else 0
            self.answer(200, make_sample.encode(Message(
                "ExportProfilesServiceResponse", partial_success=Message(
                    "ExportProfilesPartialSuccess", rejected_profiles=rejected,
                    error_message=f"scripted: {rejected} profiles rejected"))), text={
                        "partialSuccess": {"rejectedProfiles": str(rejected),
                                           "errorMessage": f"scripted: {rejected} \"profiles\" rejected"}})
        elif step.name == "garbage":
            self.answer(200, GARBAGE)
        elif step.name == "page":
            self.answer(200, b"<!DOCTYPE html><title>Welcome</title>", kind="text/html; charset=utf-8")
        elif step.name == "plain":
            self.answer(options["status"], b"no sample type of that name\nand more\n", kind="text/plain")
        elif step.name == "redirect":
            port = self.server.server_address[1]
            self.answer(307, b"", [("Location", f"http://127.0.0.1:{port}{PATH}")])
        elif step.name == "close-before-response":
            self.cut()
        elif step.name == "close-mid-response":
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"\x0a")
            self.cut()
        elif step.name == "hang":
            self.server.stopping.wait(options["seconds"])
            self.cut()
        else:
            headers = []
            if "retry-after" in options:
                headers.append(("Retry-After", str(options["retry-after"])))
            if "retry-after-date" in options:
                moment = time.time() + options["retry-after-date"]
                headers.append(("Retry-After", email.utils.formatdate(moment, usegmt=True)))
            self.answer_error(int(step.name), f"scripted: {step.text}", headers)

    def do_POST(self):
        server = self.server
        with server.idle:
            if server.stopping.is_set():
                self.close_connection = True
                return
            server.active += 1
        try:
            self.receive()
        finally:
            with server.idle:
                server.active -= 1
                server.idle.notify_all()

    do_GET = do_PUT = do_POST


def read_script(argument):
    """A script by file name, or written out."""
    if os.path.exists(argument):
        with open(argument, encoding="utf-8") as file:
            return script.Script(file.read())
    return script.Script(argument)


def write_port(path, port):
    """The file appears complete: whoever waits for it may read it at once."""
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.rename(path + ".new", path)


def parse_arguments():
    parser = argparse.ArgumentParser(description="receive OTLP profiles over HTTP, for tests")
    parser.add_argument("--port", type=int, default=0, help="0: any free one (default)")
    parser.add_argument("--port-file", help="write the port there when ready")
    parser.add_argument("--output", help="append accepted requests there, length-prefixed")
    parser.add_argument("--metrics", help=f"append what comes to {METRICS_PATH} there; without it nothing is there")
    parser.add_argument("--ledger", help="append one JSON line per request there")
    parser.add_argument("--script", default="", help="steps, or a file of them; see script.py")
    parser.add_argument("--json", metavar="DIRECTORY",
                        help="take JSON instead, by the modules that protoc made there of the .proto files")
    parser.add_argument("--zstd", action="store_true", help="take Content-Encoding: zstd")
    parser.add_argument("--unknown-encoding", type=int, default=400, help="status for any other one")
    parser.add_argument("--body-limit", type=int, default=BODY_LIMIT)
    parser.add_argument("--require-version", action="store_true",
                        help=f"refuse requests without {VERSION_HEADER}")
    parser.add_argument("--no-check", dest="check", action="store_false",
                        help="do not run the conformance checker on requests")
    return parser.parse_args()


def main():
    options = parse_arguments()
    try:
        steps = read_script(options.script)
        store = Store(options.output, options.ledger)
        server = Server(("127.0.0.1", options.port), store, steps, options)
    except (OSError, ValueError) as error:
        print(f"receiver: {error}", file=sys.stderr)
        return 1
    # Set before the port is told: whoever knows it may already want us to stop.
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    port = server.server_address[1]
    if options.port_file:
        write_port(options.port_file, port)
    print(port, flush=True)
    stop.wait()
    server.shutdown()
    thread.join()
    drained = server.drain(DRAIN_TIMEOUT)
    print(json.dumps(store.totals), flush=True)
    if drained:
        store.close()
    return 0 if drained else 1


if __name__ == "__main__":
    sys.exit(main())

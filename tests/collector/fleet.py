#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What a fleet costs one Collector: many connections, each of which sends the payloads of a real recording as a daemon does,
gzipped over OTLP/HTTP, at a moment of its own in each interval. The Collector passes them on to a sink that stores nothing.
Prints requests and bytes a second, the Collector's CPU time and memory.

usage: fleet.py --collector PROGRAM [--hosts N] [--interval SECONDS] [--seconds N] RECORDING"""

import argparse
import asyncio
import gzip
import os
import random
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from importlib.machinery import SourceFileLoader  # noqa: E402

RUN = SourceFileLoader("run_collector", os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                     "run-collector")).load_module()
PATH = "/v1development/profiles"
ANSWER_LIMIT = 30
SUFFIX = b"\xfa\xff\xff\xff\x0f\x10"    # of our own files: a seal that no receiver gets


def payloads(path):
    """[gzipped request body]"""
    found = []
    with open(path, "rb") as file:
        while head := file.read(4):
            body = file.read(struct.unpack(">I", head)[0])
            if body[-22:-16] == SUFFIX:
                body = body[:-22]
            found.append(gzip.compress(body, 6))
    return found


async def read_message(reader):
    """(first line, body) of a request or an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    size, chunked = 0, False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            size = int(line[15:])
        chunked |= line.startswith(b"transfer-encoding:") and b"chunked" in line
    body = await reader.readexactly(size) if size else b""
    while chunked:
        size = int(await reader.readline(), 16)
        await reader.readexactly(size + 2)
        chunked = size > 0
    return head.split(b"\r\n", 1)[0], body


class Sink:
    """Takes what the Collector sends."""

    def __init__(self):
        self.requests = 0

    async def serve(self, reader, writer):
        try:
            while True:
                await read_message(reader)
                self.requests += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


class Fleet:
    def __init__(self, port, bodies, interval):
        self.port, self.bodies, self.interval = port, bodies, interval
        self.sent = self.bytes = 0
        self.waits = []
        self.failures = {}

    async def host(self, number, end):
        """One daemon: a connection that is kept, a payload in each interval."""
        moment = random.Random(number)
        reader = writer = None
        await asyncio.sleep(moment.random() * self.interval)
        while time.monotonic() < end:
            began = time.monotonic()
            body = self.bodies[moment.randrange(len(self.bodies))]
            try:
                if not writer:
                    reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(f"POST {PATH} HTTP/1.1\r\nHost: collector\r\nContent-Type: application/x-protobuf\r\n"
                             f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                status, _ = await asyncio.wait_for(read_message(reader), ANSWER_LIMIT)
                if b" 200 " not in status:
                    raise ConnectionError(status.decode())
                self.sent += 1
                self.bytes += len(body)
                self.waits.append(time.monotonic() - began)
            except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as e:
                name = str(e) or type(e).__name__
                self.failures[name] = self.failures.get(name, 0) + 1
                writer = None
            await asyncio.sleep(max(0, began + self.interval - time.monotonic()))
        if writer:
            writer.close()


def usage(pid):
    """(CPU seconds, resident bytes, the most so far)"""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = dict(line.split(":", 1) for line in file)
    kib = {name: int(status[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM")}
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), kib["VmRSS"], kib["VmHWM"]


async def measure(args, directory):
    sink = Sink()
    server = await asyncio.start_server(sink.serve, "127.0.0.1", 0)
    sink_port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    collector, port, _ = await loop.run_in_executor(None, RUN.start_collector, args.collector, directory, sink_port)
    try:
        bodies = payloads(args.recording)
        fleet = Fleet(port, bodies, args.interval)
        cpu = usage(collector.pid)[0]
        began = time.monotonic()
        await asyncio.gather(*(fleet.host(n, began + args.seconds) for n in range(args.hosts)))
        seconds = time.monotonic() - began
        after, resident, most = usage(collector.pid)
    finally:
        collector.terminate()
        await loop.run_in_executor(None, collector.wait)
        server.close()
    if not fleet.sent:
        print(f"nothing was taken: {fleet.failures}", file=sys.stderr)
        return 1
    waits = sorted(fleet.waits)
    print(f"{args.hosts} hosts, a payload each {args.interval:g} s, {sum(map(len, bodies)) / len(bodies):,.0f} bytes: "
          f"{fleet.sent / seconds:.1f} requests/s, {fleet.bytes / seconds:,.0f} bytes/s, "
          f"{1000 * (after - cpu) / fleet.sent:.2f} ms of the Collector's CPU a request, "
          f"{100 * (after - cpu) / seconds:.1f} % of a CPU, resident {resident >> 20} MiB, at most {most >> 20}, "
          f"answered in {1000 * waits[len(waits) // 2]:.0f} ms, 99 % within {1000 * waits[len(waits) * 99 // 100]:.0f}, "
          f"passed on {sink.requests}, failed {sum(fleet.failures.values())} {fleet.failures or ''}".rstrip())
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collector", required=True)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=15)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("recording")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(measure(args, directory))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: Apache-2.0
"""What a fleet costs one Collector and one backend: many connections, each of which sends a payload of a real recording as a
daemon does, gzipped over OTLP/HTTP, at a moment of its own in each interval. The Collector, with the configuration of
docs/fleet.md, passes them on to a sink that stores nothing; or, with that of docs/backends.md, over gRPC to a Pyroscope, where
each connection is a host of its own and times are of now; what that holds at the end is compared with what it took. Prints
requests and bytes a second, CPU time and memory of each program, by request and by host.

usage: fleet.py --collector PROGRAM [--pyroscope PROGRAM] [--hosts N] [--interval SECONDS] [--seconds N] RECORDING
In front of Pyroscope the Collector is 0.162 at most, see docs/backends.md."""

import argparse
import asyncio
import collections
import contextlib
import gzip
import os
import random
import struct
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "backends"))
from importlib.machinery import SourceFileLoader  # noqa: E402
import lane  # noqa: E402
import documented  # noqa: E402  lane has put its folder on the path, and
import wire  # noqa: E402  this one's

RUN = SourceFileLoader("run_collector", os.path.join(HERE, "run-collector")).load_module()
PATH = "/v1development/profiles"
ANSWER_LIMIT = 30
SUFFIX = b"\xfa\xff\xff\xff\x0f\x10"    # of our own files: a seal that no receiver gets


def template(page, section, old, new):
    """A documented configuration as run-collector wants it."""
    text = documented.blocks(page, section)[0].replace("{", "{{").replace("}", "}}")
    return documented.at(text, {"0.0.0.0:4317": "127.0.0.1:{grpc_port}", "0.0.0.0:4318": "127.0.0.1:{port}", old: new}) + \
        "  telemetry: {{ metrics: {{ level: none }}, logs: {{ level: error }} }}\n"


def payloads(path):
    """[request body]"""
    found = []
    with open(path, "rb") as file:
        while head := file.read(4):
            body = file.read(struct.unpack(">I", head)[0])
            if body[-22:-16] == SUFFIX:
                body = body[:-22]
            found.append(body)
    return found


def as_host(payload, number):
    """The payload with another host's name and id, of the same length, so that no other length in it changes."""
    host = {pair.key: pair.value.string_value for pair in wire.decode(payload)[0].resource_profiles[0].resource.attributes}
    for key, text in (("host.name", f"h{number:x}"), ("host.id", f"{number:x}")):
        value = host.get(key, "").encode()
        before = key.encode() + bytes((0x12, len(value) + 2, 0x0a, len(value)))
        if len(value) >= len(text):
            payload = payload.replace(before + value, before + text.rjust(len(value), "0").encode())
    return payload


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

    pid = None
    config = template("fleet.md", "The way to a backend", "https://backend.example", "http://127.0.0.1:{receiver}")

    def __init__(self):
        self.requests = 0
        self.port = 0

    @contextlib.asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    def bodies(self, path, hosts):
        del hosts
        return [gzip.compress(payload, 6) for payload in payloads(path)]

    def report(self, fleet, seconds):
        del seconds
        return f"passed on {self.requests} of {fleet.sent}"

    async def serve(self, reader, writer):
        try:
            while True:
                await read_message(reader)
                self.requests += 1
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


class Backend:
    """A Pyroscope that takes them."""

    config = template("backends.md", "OpenTelemetry Collector", "pyroscope:4040", "127.0.0.1:{receiver}")

    def __init__(self, program, options, directory):
        self.directory = os.path.join(directory, "pyroscope")
        os.mkdir(self.directory)
        self.server = lane.Pyroscope(os.path.abspath(program), self.directory)
        self.server.command += options
        self.port = self.server.port
        self.pid = self.sent = self.before = None

    @contextlib.asynccontextmanager
    async def running(self):
        loop = asyncio.get_running_loop()
        with lane.running(self.server.command, self.directory) as process:
            self.pid = process.pid
            await loop.run_in_executor(None, lane.wait_for, self.server.is_ready, lane.READY_LIMIT, "Pyroscope")
            yield self

    def bodies(self, path, hosts):
        self.sent = lane.Sent([payloads(path)], 120)
        early = lane.Sent([payloads(path)[:1]], 3000).payloads[0]
        lane.wait_for(lambda: not lane.send(self.port, early, False), lane.READY_LIMIT, "Pyroscope takes a payload")
        found = [gzip.compress(as_host(self.sent.payloads[number % len(self.sent.payloads)], number), 6)
                 for number in range(hosts)]
        self.before = usage(self.pid)[0]
        return found

    def totals(self):
        """type -> what each payload holds of it"""
        found = collections.defaultdict(list)
        for payload in self.sent.payloads:
            one = lane.Sent.__new__(lane.Sent)
            one.samples = lane.model.load_payloads([payload])
            for kind in self.sent.types():
                found[kind].append(sum(one.stacks(kind).values()))
        return found

    def holds(self, kind):
        """The flame graph's total would lack stacks in which no frame has a name."""
        profile = self.server.call("SelectMergeProfile", self.sent, profileTypeID=self.server.types(self.sent)[kind],
                                   labelSelector="{}", maxNodes="0")
        return sum(int(sample["value"][0]) for sample in profile.get("sample", ()))

    def shows(self, kind):
        answer = self.server.call("SelectMergeStacktraces", self.sent, profileTypeID=self.server.types(self.sent)[kind],
                                  labelSelector="{}", maxNodes="1")
        return int(answer["flamegraph"]["total"])

    def report(self, fleet, seconds):
        cpu, resident, most = usage(self.pid)
        cpu -= self.before
        stored = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(self.directory) for name in names)
        words = [f"Pyroscope: {1000 * cpu / fleet.sent:.2f} ms of CPU a request, {100 * cpu / seconds:.1f} % of a CPU, "
                 f"resident {resident >> 20} MiB, at most {most >> 20}, {stored / fleet.sent:,.0f} bytes of disk a request"]
        for kind, each in self.totals().items():
            want = sum(count * each[number % len(each)] for number, count in fleet.taken.items())
            with contextlib.suppress(RuntimeError):
                lane.wait_for(lambda kind=kind, want=want: self.holds(kind) >= want, lane.SHOWN_LIMIT, "what was sent")
            words.append(f"{kind[0]}: {self.holds(kind)} stored, {want} taken, {self.shows(kind)} in its flame graph")
        return "; ".join(words)


class Fleet:
    def __init__(self, port, bodies, interval):
        self.port, self.bodies, self.interval = port, bodies, interval
        self.sent = self.bytes = 0
        self.taken = collections.Counter()
        self.waits = []
        self.failures = {}

    async def ask(self, connection, body):
        """Status, by a connection that is kept; one that was closed while it was idle is opened anew, as curl does."""
        while True:
            is_new = not connection
            if is_new:
                connection[:] = await asyncio.open_connection("127.0.0.1", self.port)
            reader, writer = connection
            try:
                writer.write(f"POST {PATH} HTTP/1.1\r\nHost: collector\r\nContent-Type: application/x-protobuf\r\n"
                             f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                return (await asyncio.wait_for(read_message(reader), ANSWER_LIMIT))[0]
            except (ConnectionError, asyncio.IncompleteReadError):
                connection.clear()
                if is_new:
                    raise

    async def host(self, number, end):
        """One daemon: a payload in each interval."""
        moment = random.Random(number)
        connection = []
        await asyncio.sleep(moment.random() * self.interval)
        while time.monotonic() < end:
            began = time.monotonic()
            body = self.bodies[number % len(self.bodies)]
            try:
                status = await self.ask(connection, body)
                if b" 200 " not in status:
                    raise ConnectionError(status.decode())
                self.sent += 1
                self.taken[number] += 1
                self.bytes += len(body)
                self.waits.append(time.monotonic() - began)
            except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as e:
                name = str(e) or type(e).__name__
                self.failures[name] = self.failures.get(name, 0) + 1
                connection.clear()
            await asyncio.sleep(max(0, min(end, began + self.interval) - time.monotonic()))
        for writer in connection[1:]:
            writer.close()


def waited(pid):
    """Seconds that its threads had to wait for a CPU."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[1])
    return total / 10**9


def usage(pid):
    """(CPU seconds, resident bytes, the most so far)"""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = dict(line.split(":", 1) for line in file)
    kib = {name: int(status[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM")}
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), kib["VmRSS"], kib["VmHWM"]


async def measure(args, directory):
    loop = asyncio.get_running_loop()
    end = Backend(args.pyroscope, args.option, directory) if args.pyroscope else Sink()
    async with end.running():
        bodies = await loop.run_in_executor(None, end.bodies, args.recording, args.hosts)
        collector, port, _ = await loop.run_in_executor(None, RUN.start_collector, args.collector, directory, end.port, end.config)
        try:
            fleet = Fleet(port, bodies, args.interval)
            cpu, wait = usage(collector.pid)[0], waited(collector.pid)
            began = time.monotonic()
            await asyncio.gather(*(fleet.host(n, began + args.seconds) for n in range(args.hosts)))
            seconds = time.monotonic() - began
            after, resident, most = usage(collector.pid)
            wait = waited(collector.pid) - wait
        finally:
            collector.terminate()
            await loop.run_in_executor(None, collector.wait)
        if not fleet.sent:
            print(f"nothing was taken: {fleet.failures}", file=sys.stderr)
            return 1
        waits = sorted(fleet.waits)
        print(f"{args.hosts} hosts, a payload each {args.interval:g} s, {sum(map(len, bodies)) / len(bodies):,.0f} bytes: "
              f"{fleet.sent / seconds:.1f} requests/s, {fleet.bytes / seconds:,.0f} bytes/s, "
              f"{1000 * (after - cpu) / fleet.sent:.2f} ms of the Collector's CPU a request, "
              f"{100 * (after - cpu) / seconds:.1f} % of a CPU, {100 * (after - cpu) / seconds / args.hosts:.4f} % a host, "
              f"{100 * wait / (wait + after - cpu):.0f} % of its time without a CPU, resident {resident >> 20} MiB, at most {most >> 20}, {(most >> 10) / args.hosts:.0f} KiB a host, "
              f"answered in {1000 * waits[len(waits) // 2]:.0f} ms, 99 % within {1000 * waits[len(waits) * 99 // 100]:.0f}, "
              f"failed {sum(fleet.failures.values())} {fleet.failures or ''}".rstrip(), flush=True)
        print(await loop.run_in_executor(None, end.report, fleet, seconds))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collector", required=True)
    parser.add_argument("--pyroscope", help="backend instead of the sink")
    parser.add_argument("--option", action="append", default=[], help="one more for Pyroscope, such as a limit")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=15)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("recording")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return asyncio.run(measure(args, directory))


if __name__ == "__main__":
    sys.exit(main())

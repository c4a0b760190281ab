#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Feed real servers with profiles, directly and through a Collector, and ask them by their own API what they hold: TAP.

The programs are given by path, as no package has them. Each listens on loopback alone, and its data is in a directory
that goes when this ends. Times are shifted to the last minutes, since servers refuse what is old.
"""

import argparse
import base64
import collections
import contextlib
import datetime
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zlib

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "otlp"))

import make_sample  # noqa: E402
import model  # noqa: E402
import wire  # noqa: E402

GRPC = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
HEADER = "OTLP-Profiles-Development-Version: 1"
READY_LIMIT = 180
SHOWN_LIMIT = 60
SPAN_LIMIT = 500        # between what is sent directly and through a Collector
CPU = ("cpu", "nanoseconds")


class Tap:
    def __init__(self):
        self.number = self.failed = 0

    def result(self, good, title, detail=""):
        self.number += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.number} - {title}")
        for line in str(detail).splitlines()[:20] if not good else ():
            print(f"# {line}")
        sys.stdout.flush()

    def skip(self, title, reason):
        self.number += 1
        print(f"ok {self.number} - {title} # SKIP {reason}", flush=True)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in sockets]


def ask(port, path, body=None):
    """Status and JSON, or text, of one request."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("POST" if body is not None else "GET", path,
                   None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    response = client.getresponse()
    data = response.read()
    client.close()
    with contextlib.suppress(ValueError):
        return response.status, json.loads(data)
    return response.status, data.decode(errors="replace")


def wait_for(question, limit, what):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException, RuntimeError):
            answer = question()
            if answer:
                return answer
        time.sleep(0.5)
    raise RuntimeError(f"{what}: not within {limit} s")


@contextlib.contextmanager
def running(command, directory):
    with open(os.path.join(directory, "log"), "w", encoding="utf-8") as log, \
            subprocess.Popen(command, cwd=directory, stdout=log, stderr=log) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def shift(payload, nanoseconds):
    data = wire.decode(payload)[0]
    for group in data.resource_profiles:
        for profile in (profile for scope in group.scope_profiles for profile in scope.profiles):
            profile.fields["time_unix_nano"] += nanoseconds
            for sample in profile.samples:
                sample.fields["timestamps_unix_nano"] = [at + nanoseconds for at in sample.timestamps_unix_nano]
    return make_sample.encode(data)


class Sent:
    """Payloads of recordings, the last window of each of which ends @ago seconds before now."""

    def __init__(self, recordings, ago):
        self.payloads = []
        for payloads in recordings:
            last = max(sample.profile.start + sample.profile.duration for sample in model.load_payloads(payloads))
            self.payloads += [shift(payload, time.time_ns() - ago * 10**9 - last) for payload in payloads]
        self.samples = model.load_payloads(self.payloads)
        starts = [sample.profile.start for sample in self.samples]
        self.start = min(starts) // 10**6 - 1000
        self.end = max(sample.profile.start + sample.profile.duration for sample in self.samples) // 10**6 + 1000

    def services(self):
        return {sample.process.service_name for sample in self.samples}

    def types(self):
        return {sample.profile.period_type for sample in self.samples}

    def stacks(self, period_type, service=None):
        """Names from the leaf, as far as there are any -> what the server should count."""
        sums = collections.Counter()
        for sample in self.samples:
            # neither server has those that were found stale, which have no stack
            if sample.profile.period_type != period_type or service not in (None, sample.process.service_name) or \
                    not sample.stack:
                continue
            names = tuple(frame.function for frame in sample.stack if frame.function)
            sums[names] += sum(sample.values) if sample.values else sample.count * sample.profile.period
        return sums


def send(port, payload, is_grpc):
    """What the server has against it."""
    with tempfile.TemporaryDirectory() as directory:
        body, headers = os.path.join(directory, "body"), os.path.join(directory, "headers")
        with open(body, "wb") as file:
            file.write((b"\0" + len(payload).to_bytes(4, "big") if is_grpc else b"") + payload)
        url = f"http://127.0.0.1:{port}" + (GRPC if is_grpc else "/v1development/profiles")
        options = ["--http2-prior-knowledge", "-H", "Content-Type: application/grpc", "-H", "TE: trailers"] \
            if is_grpc else ["-H", "Content-Type: application/x-protobuf"]
        done = subprocess.run(["curl", "-s", "-D", headers, "-H", HEADER, *options, "--data-binary", "@" + body, url],
                              capture_output=True, check=False)
        with open(headers, encoding="latin1") as file:
            told = file.read()
    good = "grpc-status: 0" in told.lower() if is_grpc else " 200" in told.split("\n", 1)[0]
    return "" if good else told + done.stdout.decode(errors="replace") + done.stderr.decode()


class Pyroscope:
    name = "Pyroscope"
    is_grpc = False

    def __init__(self, program, directory):
        self.port, grpc, raft, gossip = free_ports(4)
        raft = f"127.0.0.1:{raft}"
        self.command = [
            program, "-architecture.storage=v2", f"-server.http-listen-port={self.port}", f"-server.grpc-listen-port={grpc}",
            "-server.http-listen-address=127.0.0.1", "-server.grpc-listen-address=127.0.0.1",
            "-memberlist.bind-addr=127.0.0.1", f"-memberlist.bind-port={gossip}",
            f"-metastore.address=127.0.0.1:{grpc}", f"-query-backend.address=127.0.0.1:{grpc}", f"-metastore.raft.bind-address={raft}",
            f"-metastore.raft.advertise-address={raft}", f"-metastore.raft.server-id={raft}",
            f"-metastore.raft.dir={directory}/raft", f"-metastore.data-dir={directory}/meta",
            "-segment-writer.lifecycler.addr=127.0.0.1", "-distributor.ring.instance-addr=127.0.0.1",
            "-query-scheduler.ring.instance-addr=127.0.0.1", "-overrides-exporter.ring.instance-addr=127.0.0.1",
            "-storage.backend=filesystem", f"-storage.filesystem.dir={directory}/shared", f"-pyroscopedb.data-path={directory}/db",
            "-self-profiling.disable-push=true", "-usage-stats.enabled=false", "-log.level=warn"]

    def is_ready(self):
        return ask(self.port, "/ready")[0] == 200

    def call(self, method, sent, **body):
        status, answer = ask(self.port, "/querier.v1.QuerierService/" + method,
                             {"start": str(sent.start), "end": str(sent.end), **body})
        if status != 200:
            raise RuntimeError(f"{method}: {status} {answer}")
        return answer

    def types(self, sent):
        """(type, unit) of the period -> the server's name of it."""
        return {(entry["periodType"], entry["periodUnit"]): entry["ID"]
                for entry in self.call("ProfileTypes", sent).get("profileTypes", ())}

    def stacks(self, sent, kind, service):
        profile = self.call("SelectMergeProfile", sent, profileTypeID=kind,
                            labelSelector="{service_name=%s}" % json.dumps(service), maxNodes="0")
        strings = profile.get("stringTable", [])
        functions = {entry["id"]: strings[int(entry["name"])] for entry in profile.get("function", ())}
        locations = {entry["id"]: [functions[line["functionId"]] for line in entry.get("line", ())]
                     for entry in profile.get("location", ())}
        sums = collections.Counter()
        for sample in profile.get("sample", ()):
            sums[tuple(name for number in sample["locationId"] for name in locations[number])] += int(sample["value"][0])
        return sums

    def services(self, sent):
        return set(self.call("LabelValues", sent, name="service_name").get("names", ()))

    def check(self, tap, sent, way):
        wait_for(lambda: self.services(sent) >= sent.services() and set(self.types(sent)) >= sent.types(),
                 SHOWN_LIMIT, f"{way}: services and types")
        tap.result(self.services(sent) == sent.services(), f"{way}: the services are those that were sent", self.services(sent))
        types = self.types(sent)
        tap.result(set(types) == sent.types(), f"{way}: {len(types)} types of profiles: {', '.join(sorted(types.values()))}", types)
        for period_type, kind in sorted(types.items()):
            wrong, total = [], 0
            for service in sent.services():
                want = sent.stacks(period_type, service)
                found = self.stacks(sent, kind, service)
                total += sum(found.values())
                wrong += [f"{service}: {' < '.join(names)}: {found[names]}, not {want[names]}"
                          for names in sorted(set(found) | set(want)) if found[names] != want[names]]
            tap.result(not wrong and total, f"{way}: {kind}: each stack has its names and value, {total} in all", "\n".join(wrong))


class Parca:
    name = "Parca"
    is_grpc = True

    def __init__(self, program, directory):
        self.port, = free_ports(1)
        config = os.path.join(directory, "parca.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"object_storage": {"bucket": {"type": "FILESYSTEM", "config": {"directory": f"{directory}/data"}}}}, file)
        self.command = [program, f"--http-address=127.0.0.1:{self.port}", f"--config-path={config}",
                        f"--debuginfo-cache-dir={directory}", "--log-level=warn"]

    def is_ready(self):
        return ask(self.port, "/api/profiles/types")[0] == 200

    def types(self):
        status, answer = ask(self.port, "/api/profiles/types")
        if status != 200:
            raise RuntimeError(f"types: {status} {answer}")
        return {(entry["periodType"], entry["periodUnit"]): ":".join(
            entry[key] for key in ("name", "sampleType", "sampleUnit", "periodType", "periodUnit")) +
            (":delta" if entry.get("delta") else "") for entry in answer.get("types", ())}

    def stacks(self, sent, kind):
        """As Sent.stacks(): its table of functions is not asked for, as one Location without a Mapping ends the server there."""
        def moment(milliseconds):
            return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc).isoformat().replace("+00:00", "Z")
        query = urllib.parse.urlencode({
            "mode": "MODE_MERGE", "merge.query": kind + "{}", "merge.start": moment(sent.start), "merge.end": moment(sent.end),
            "reportType": "REPORT_TYPE_PPROF"})
        status, answer = ask(self.port, "/api/profiles/query?" + query)
        if status != 200:
            raise RuntimeError(f"query: {status} {answer}")
        return pprof_stacks(zlib.decompress(base64.b64decode(answer["pprof"]), 31))

    def check(self, tap, sent, way):
        wait_for(lambda: set(self.types()) >= sent.types(), SHOWN_LIMIT, f"{way}: types")
        types = self.types()
        tap.result(set(types) == sent.types(), f"{way}: {len(types)} types of profiles: {', '.join(sorted(types.values()))}", types)
        for period_type, kind in sorted(types.items()):
            want, found = sent.stacks(period_type), self.stacks(sent, kind)
            total = sum(found.values())
            tap.result(total and total == sum(want.values()), f"{way}: {kind}: the total, {total}", f"{sum(want.values())} were sent")
            # docs/backends.md says what is wrong with them; a release that has them right shall be noticed
            wrong = [names for names in set(found) | set(want) if found[names] != want[names]]
            print(f"# {way}: {kind}: {len(wrong)} of {len(want)} stacks have other names or values than were sent")


def fields(data):
    """(number, value) of a protobuf message's fields: integers, and bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift_by = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift_by
            shift_by += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 2:
            size = varint()
            at += size
            yield tag >> 3, data[at - size:at]
        else:
            yield tag >> 3, varint()


def integers(message, number):
    """A repeated field's, packed or not."""
    found = []
    for which, value in fields(message):
        if which == number:
            found += [value] if isinstance(value, int) else [item for _, item in fields(
                b"".join(b"\x08" + bytes(part) for part in varints(value)))]
    return found


def varints(data):
    """Their bytes, one after the other."""
    start = 0
    for at, byte in enumerate(data):
        if byte < 0x80:
            yield data[start:at + 1]
            start = at + 1


def pprof_stacks(data):
    """Names from the leaf -> value."""
    tables = collections.defaultdict(list)
    for number, value in fields(data):
        tables[number].append(value)
    strings = [text.decode() for text in tables[6]]
    functions = {dict(fields(entry)).get(1): strings[dict(fields(entry)).get(2, 0)] for entry in tables[5]}
    locations = {dict(fields(entry))[1]: [functions.get(dict(fields(line)).get(1), "") for number, line in fields(entry) if number == 4]
                 for entry in tables[4]}
    sums = collections.Counter()
    for sample in tables[2]:
        names = tuple(name for place in integers(sample, 1) for name in locations[place] if name)
        sums[names] += integers(sample, 2)[0]
    return sums


def through_collector(tap, program, backend, recordings, directory):
    port, = free_ports(1)
    config = os.path.join(directory, "collector.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
                   "exporters": {"otlp_grpc": {
                       "endpoint": f"127.0.0.1:{backend.port}", "tls": {"insecure": True},
                       "sending_queue": {"enabled": False}, "retry_on_failure": {"enabled": False}}},
                   "service": {"telemetry": {"metrics": {"level": "none"}},
                               "pipelines": {"profiles": {"receivers": ["otlp"], "exporters": ["otlp_grpc"]}}}}, file)
    way = f"{backend.name} behind a Collector"
    with running([program, "--config", f"file:{config}", "--feature-gates=+service.profilesSupport"], directory):
        wait_for(lambda: ask(port, "/")[0], READY_LIMIT, "the Collector")
        sent = Sent(recordings, 60)
        notes = [note for payload in sent.payloads for note in [send(port, payload, False)] if note]
    tap.result(not notes, f"{way}: takes {len(sent.payloads)} payloads", "\n".join(notes))
    if not notes:
        backend.check(tap, sent, way)


def try_backend(tap, kind, program, recordings, collector):
    with tempfile.TemporaryDirectory() as directory:
        backend = kind(program, directory)
        with running(backend.command, directory):
            try:
                wait_for(backend.is_ready, READY_LIMIT, backend.name)
                # it says so before all of it is; what this leaves is in no range that is asked for
                early = Sent([recordings[0][:1]], 3000).payloads[0]
                wait_for(lambda: not send(backend.port, early, backend.is_grpc), READY_LIMIT, f"{backend.name} takes a payload")
                sent = Sent(recordings, 600)
                if sent.end - sent.start > SPAN_LIMIT * 1000:
                    raise RuntimeError(f"a recording of {(sent.end - sent.start) // 1000} s would be in the same time twice")
                notes = [note for payload in sent.payloads for note in [send(backend.port, payload, backend.is_grpc)] if note]
                tap.result(not notes, f"{backend.name}: takes {len(sent.payloads)} payloads", "\n".join(notes))
                if not notes:
                    backend.check(tap, sent, backend.name)
                if collector:
                    with tempfile.TemporaryDirectory() as beside:
                        through_collector(tap, collector, backend, recordings, beside)
                else:
                    tap.skip(f"{backend.name} behind a Collector", "no Collector could be built")
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                with open(os.path.join(directory, "log"), encoding="utf-8", errors="replace") as log:
                    tap.result(False, f"{backend.name}: {error}", log.read()[-2000:])


def main():
    parser = argparse.ArgumentParser(description="feed real servers, and ask what they hold")
    parser.add_argument("--encoder", required=True, help="tests/oracle/encode_file")
    parser.add_argument("--collector", help="one that has the exporter otlp_grpc")
    parser.add_argument("--pyroscope")
    parser.add_argument("--parca")
    parser.add_argument("files", nargs="*", metavar="FILE", help="recordings beside the synthetic window")
    args = parser.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "window.otlp")
        subprocess.run([args.encoder, path, "16000000", "0", "1"], check=True, stdout=subprocess.DEVNULL)
        recordings = [wire.read(name) for name in [path, *args.files]]
    for kind, program in ((Pyroscope, args.pyroscope), (Parca, args.parca)):
        if program:
            try_backend(tap, kind, os.path.abspath(program), recordings, args.collector and os.path.abspath(args.collector))
        else:
            tap.skip(kind.name, f"no server: make test-backends {kind.name.upper()}=PATH")
    print(f"1..{tap.number}")
    return bool(tap.failed)


if __name__ == "__main__":
    sys.exit(main())

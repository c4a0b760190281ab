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
import copy
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
sys.path[:0] = [os.path.join(HERE, os.pardir, "otlp"), os.path.join(HERE, os.pardir, "collector")]

import documented  # noqa: E402
import make_sample  # noqa: E402
import model  # noqa: E402
import wire  # noqa: E402

GRPC = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
HEADER = "OTLP-Profiles-Development-Version: 1"
READY_LIMIT = 180
SHOWN_LIMIT = 60
AGO = 600               # seconds between what is sent directly and through a Collector, and of one set and the next
SPAN_LIMIT = AGO - 60   # what is sent lasts so long at most
SUFFIX = "_[k]"         # of the kernel's names, by encode_file


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

    def with_the_function_before(self):
        """As a reader has it that takes each index of a Function for one more than it is."""
        other = copy.copy(self)
        payloads = []
        for payload in self.payloads:
            data = wire.decode(payload)[0]
            for line in (line for location in data.dictionary.location_table for line in location.lines):
                line.fields["function_index"] -= 1
            payloads.append(make_sample.encode(data))
        other.samples = model.load_payloads(payloads)
        return other

    def repeats(self):
        """Does each Function stand twice, so that this makes no difference?"""
        tables = [wire.decode(payload)[0].dictionary.function_table for payload in self.payloads]
        return all(table[1::2] == table[2::2] for table in tables)

    def services(self):
        return {sample.process.service_name for sample in self.samples}

    def types(self):
        return {sample.profile.period_type for sample in self.samples}

    def events(self, period_type, service=None, stackless=False):
        """(sample, time, what the server should count) of those that have a stack, or of those that were found stale as well."""
        for sample in self.samples:
            if sample.profile.period_type == period_type and service in (None, sample.process.service_name) and (
                    sample.stack or stackless):
                values = sample.values or [sample.profile.period] * sample.count
                yield from ((sample, *event) for event in zip(sample.timestamps, values, strict=True))

    def stacks(self, period_type, service=None, until=None, key=None):
        """Names from the leaf, as far as there are any, or @key of a stack -> what the server should count."""
        sums = collections.Counter()
        for sample, time_ns, value in self.events(period_type, service):
            if until is None or time_ns < until * 10**6:
                sums[(key or named)(sample.stack)] += value
        return sums


def named(stack):
    return tuple(frame.function for frame in stack if frame.function)


def whole(stack):
    """Each frame's name, or without one the file that it is in and where, if there is a file."""
    return tuple(frame.function or (frame.mapping and f"{frame.mapping}+{frame.address:#x}") for frame in stack)


def moment(milliseconds):
    at = datetime.datetime.fromtimestamp(milliseconds // 1000, datetime.timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


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
    profilecli = None

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

    def call(self, method, sent, until=None, **body):
        status, answer = ask(self.port, "/querier.v1.QuerierService/" + method,
                             {"start": str(sent.start), "end": str(until or sent.end), **body})
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
            wrong, total, names = [], 0, set()
            for service in sent.services():
                want = sent.stacks(period_type, service)
                found = self.stacks(sent, kind, service)
                total += sum(found.values())
                names.update(name for stack in found for name in stack)
                wrong += [f"{service}: {' < '.join(names)}: {found[names]}, not {want[names]}"
                          for names in sorted(set(found) | set(want)) if found[names] != want[names]]
            tap.result(not wrong and total, f"{way}: {kind}: each stack has its names and value, {total} in all", "\n".join(wrong))
            check_kernel(tap, sent, period_type, names, f"{way}: {kind}")
            self.check_times(tap, sent, period_type, kind, f"{way}: {kind}")
            self.check_graph(tap, sent, period_type, kind, f"{way}: {kind}")
            if self.profilecli:
                self.check_profilecli(tap, sent, period_type, kind, f"{way}: {kind}")

    def check_profilecli(self, tap, sent, period_type, kind, way):
        """Its own command finds the services, and gives a pprof of one with names and values."""
        def query(what, *options):
            done = subprocess.run([self.profilecli, "query", what, f"--url=http://127.0.0.1:{self.port}", f"--from={moment(sent.start)}",
                                   f"--to={moment(sent.end)}", *options], capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"profilecli query {what}: {done.stderr[-2000:]}")
            return done.stdout

        services = {one["service_name"] for one in json.loads(query("series", "--output=json"))["series"]
                    if one["__profile_type__"] == kind}
        wrong = [] if services == {service for service in sent.services() if sent.stacks(period_type, service)} else [str(services)]
        total = 0
        with tempfile.TemporaryDirectory() as directory:
            for service in services:
                path = os.path.join(directory, "service.pb.gz")
                query("profile", f"--profile-type={kind}", "--query={service_name=%s}" % json.dumps(service), f"--output=pprof={path}", "--force")
                with open(path, "rb") as file:
                    found = rename(pprof_stacks(zlib.decompress(file.read(), 31))[0], lambda name: "" if is_place(name) else name)
                total += sum(found.values())
                if found != sent.stacks(period_type, service):
                    wrong.append(f"{service}: {found - sent.stacks(period_type, service)}")
        tap.result(not wrong and total, f"{way}: profilecli has the services, and the names and values of each stack, {total} in all",
                   "\n".join(wrong))

    def check_times(self, tap, sent, period_type, kind, way):
        starts = sorted({sample.profile.start for sample in sent.samples if sample.profile.period_type == period_type})
        wrong = []
        for start in starts:
            profile = self.call("SelectMergeProfile", sent, until=start // 10**6 + 1, profileTypeID=kind, labelSelector="{}", maxNodes="0")
            found = sum(int(sample["value"][0]) for sample in profile.get("sample", ()))
            want = sum(value for sample, _, value in sent.events(period_type) if sample.profile.start <= start)
            if found != want:
                wrong.append(f"{found} until {start}, not {want}")
        tap.result(not wrong, f"{way}: samples are in {len(starts)} windows that begin when theirs do", "\n".join(wrong))

    def check_graph(self, tap, sent, period_type, kind, way):
        answer = self.call("SelectMergeStacktraces", sent, profileTypeID=kind, labelSelector="{}", maxNodes="1")
        found = int(answer["flamegraph"]["total"])
        want = sum(value for names, value in sent.stacks(period_type).items() if names)
        tap.result(found == want, f"{way}: its flame graph has all in which a frame has a name, {found}", want)


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

    def values(self, label, sent):
        status, answer = ask(self.port, f"/api/profiles/labels/{label}/values?" + urllib.parse.urlencode(
            {"start": moment(sent.start), "end": moment(sent.end)}))
        if status != 200:
            raise RuntimeError(f"{label}: {status} {answer}")
        return set(answer.get("labelValues", ()))

    def report(self, sent, kind, report, service=None, until=None):
        selector = "" if service is None else f"service_name={json.dumps(service)}"
        status, answer = ask(self.port, "/api/profiles/query?" + urllib.parse.urlencode({
            "mode": "MODE_MERGE", "merge.query": kind + "{%s}" % selector, "merge.start": moment(sent.start),
            "merge.end": moment(until or sent.end), "reportType": "REPORT_TYPE_" + report}))
        if status != 200:
            raise RuntimeError(f"{report}: {status} {answer}")
        return answer

    def stacks(self, sent, kind, service=None, until=None):
        """As Sent.stacks() by whole(), and which place it may have taken for which function."""
        answer = self.report(sent, kind, "PPROF", service, until)
        return pprof_stacks(zlib.decompress(base64.b64decode(answer["pprof"]), 31))

    def check(self, tap, sent, way):
        wait_for(lambda: set(self.types()) >= sent.types() and self.values("service_name", sent) >= sent.services(), SHOWN_LIMIT,
                 f"{way}: types and services")
        types = self.types()
        tap.result(set(types) == sent.types(), f"{way}: {len(types)} types of profiles: {', '.join(sorted(types.values()))}", types)
        services = self.values("service_name", sent)
        tap.result(services == sent.services(), f"{way}: the services are those that were sent", services)
        before = sent.with_the_function_before()
        for period_type, kind in sorted(types.items()):
            self.check_stacks(tap, sent, before, period_type, kind, f"{way}: {kind}")
            self.check_times(tap, sent, period_type, kind, f"{way}: {kind}")
            self.check_reports(tap, sent, period_type, kind, f"{way}: {kind}")

    def check_stacks(self, tap, sent, before, period_type, kind, way):
        """Names as they were sent, or in all stacks those that its defect makes of them, see docs/backends.md."""
        wrong, others, total, names = [], 0, 0, set()
        for service in sent.services():
            (found, confused), want = self.stacks(sent, kind, service), sent.stacks(period_type, service, key=whole)
            total += sum(found.values())
            names.update(name for stack in found for name in stack)
            places = {name for stack in want for name in stack if name in confused}
            confused = {confused[place]: place for place in places}
            found, want = (rename(sums, lambda name: confused.get(name, name)) for sums in (found, want))
            if found == want:
                continue
            others += 1
            # of what has the name of no Function nothing is known then
            plain, other = (rename(sums, lambda name: "" if is_place(name) or name in confused else name)
                            for sums in (found, before.stacks(period_type, service)))
            if sent.repeats() or plain != other:
                wrong += [f"{service}: {names}: {found[names]}, not {want[names]}"
                          for names in sorted(set(found) | set(want)) if found[names] != want[names]]
        tap.result(not wrong and total, f"{way}: each stack has its value, {total} in all, and " + (
            "names of the Functions before" if others else "its names, or files and addresses without them"), "\n".join(wrong))
        if sent.repeats():
            check_kernel(tap, sent, period_type, names, way)

    def check_times(self, tap, sent, period_type, kind, way):
        times = sorted(time_ns // 10**6 for _, time_ns, _ in sent.events(period_type))
        wrong = []
        for until in {times[len(times) * part // 4] for part in (1, 2, 3)}:
            found, want = (sum(sums.values()) for sums in (self.stacks(sent, kind, until=until)[0], sent.stacks(period_type, until=until)))
            if found != want:
                wrong.append(f"{found} until {until}, not {want}")
        tap.result(not wrong, f"{way}: samples have their times, to a millisecond", "\n".join(wrong))

    def check_reports(self, tap, sent, period_type, kind, way):
        """What its page draws from; the others end it where a Line has no Function, which its defect makes of the first."""
        want = sum(value for *_, value in sent.events(period_type, stackless=True))
        totals = {name: int(self.report(sent, kind, name)["total"]) for name in (
            "FLAMEGRAPH_ARROW", "TABLE_ARROW", *(("TOP", "CALLGRAPH", "FLAMEGRAPH_TABLE") if sent.repeats() else ()))}
        tap.result(set(totals.values()) == {want}, f"{way}: {', '.join(totals)}: of all, {want}", totals)


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


def is_place(name):
    return name[0] in "/[" and "+0x" in name


def rename(sums, name_of):
    """Counted by other names; frames that get none are left out."""
    found = collections.Counter()
    for stack, value in sums.items():
        found[tuple(name for name in (name_of(name) for name in stack if name) if name)] += value
    return found


def pprof_stacks(data):
    """By whole(), from the leaf -> value; and the first place of each file -> the Function with the number of its Mapping.

    Parca makes one Location of both, as (number, offset in the Mapping) and (number, line) are the same to it."""
    tables = collections.defaultdict(list)
    for number, value in fields(data):
        tables[number].append(value)
    strings = [text.decode() for text in tables[6]]
    functions = {entry.get(1): strings[entry.get(2, 0)] for entry in map(dict, map(fields, tables[5]))}
    files = {entry.get(1): strings[entry.get(5, 0)] for entry in map(dict, map(fields, tables[3]))}
    locations = {}
    for entry in tables[4]:
        one = dict(fields(entry))
        file = files.get(one.get(2), "")
        locations[one[1]] = [name or (file and f"{file}+{one.get(3, 0):#x}") for name in (
            [functions.get(dict(fields(line)).get(1), "") for number, line in fields(entry) if number == 4] or [""])]
    sums = collections.Counter()
    for sample in tables[2]:
        sums[tuple(frame for place in integers(sample, 1) for frame in locations[place])] += integers(sample, 2)[0]
    starts = {one[1]: one.get(2, 0) for one in map(dict, map(fields, tables[3]))}
    return sums, {f"{files[number]}+{start:#x}": functions[number] for number, start in starts.items() if number in functions}


def through_collector(tap, program, backend, recordings, ago):
    """By the configuration that docs/backends.md shows. What its queue holds it sends before it ends."""
    port, grpc = free_ports(2)
    way = f"{backend.name} behind a Collector"
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "collector.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(documented.at(documented.blocks("backends.md", "OpenTelemetry Collector")[0], {
                "pyroscope:4040": f"127.0.0.1:{backend.port}", "0.0.0.0:4317": f"127.0.0.1:{grpc}",
                "0.0.0.0:4318": f"127.0.0.1:{port}"}))
            file.write("  telemetry: { metrics: { level: none } }\n")
        with running([program, "--config", f"file:{config}", "--feature-gates=+service.profilesSupport"], directory):
            wait_for(lambda: ask(port, "/")[0], READY_LIMIT, "the Collector")
            sent = feed(tap, Sent(recordings, ago), port, False, way)
    if sent:
        backend.check(tap, sent, way)


def check_kernel(tap, sent, period_type, names, way):
    """Functions of the kernel are told apart by a suffix, where one was asked for."""
    want = {frame.function for sample, *_ in sent.events(period_type) for frame in sample.stack
            if frame.frame_type == "kernel" and frame.function.endswith(SUFFIX)}
    found = {name for name in names if name.endswith(SUFFIX)}
    tap.result(found == want, f"{way}: {len(found)} functions of the kernel have a suffix that says so", f"{found}, not {want}")


def feed(tap, sent, port, is_grpc, way):
    notes = [note for payload in sent.payloads for note in [send(port, payload, is_grpc)] if note]
    tap.result(not notes, f"{way}: takes {len(sent.payloads)} payloads", "\n".join(notes))
    return None if notes else sent


def try_backend(tap, backend, sets, collector):
    # it says so before all of it is; what this leaves is in no range that is asked for
    wait_for(backend.is_ready, READY_LIMIT, backend.name)
    early = Sent([sets[0][0][:1]], AGO * (1 + 2 * len(sets))).payloads[0]
    wait_for(lambda: not send(backend.port, early, backend.is_grpc), READY_LIMIT, f"{backend.name} takes a payload")
    for number, recordings in enumerate(sets):
        backend.name = type(backend).name + (", Functions twice" if number else "")
        sent = Sent(recordings, AGO * 2 * number + 60)
        if sent.end - sent.start > SPAN_LIMIT * 1000:
            raise RuntimeError(f"a recording of {(sent.end - sent.start) // 1000} s would be in the same time twice")
        if feed(tap, sent, backend.port, backend.is_grpc, backend.name):
            backend.check(tap, sent, backend.name)
        if collector:
            through_collector(tap, collector, backend, recordings, AGO * (2 * number + 1) + 60)
        else:
            tap.skip(f"{backend.name} behind a Collector", "no Collector could be built")


def run_backend(tap, kind, program, sets, collector):
    with tempfile.TemporaryDirectory() as directory:
        backend = kind(program, directory)
        with running(backend.command, directory):
            try:
                try_backend(tap, backend, sets, collector)
            except (RuntimeError, OSError, http.client.HTTPException) as error:
                with open(os.path.join(directory, "log"), encoding="utf-8", errors="replace") as log:
                    tap.result(False, f"{backend.name}: {error}", log.read()[-2000:])


def windows(encoder, directory):
    """Synthetic ones, in the forms that backends are given: FORM of encode_file -> payloads"""
    found = {}
    for form in (0, 5, 7):
        path = os.path.join(directory, f"{form}.otlp")
        subprocess.run([encoder, path, "16000000", "0", str(form)], check=True, stdout=subprocess.DEVNULL)
        found[form] = wire.read(path)
    return found


def main():
    parser = argparse.ArgumentParser(description="feed real servers, and ask what they hold")
    parser.add_argument("--encoder", required=True, help="tests/oracle/encode_file")
    parser.add_argument("--collector", help="one that has the exporter otlp_grpc")
    parser.add_argument("--pyroscope")
    parser.add_argument("--profilecli", help="Pyroscope's own command, asked beside its API")
    parser.add_argument("--parca")
    parser.add_argument("files", nargs="*", metavar="FILE", help="recordings beside the synthetic window")
    args = parser.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory() as directory:
        synthetic = windows(args.encoder, directory)
    recordings = [wire.read(name) for name in args.files]
    Pyroscope.profilecli = args.profilecli and os.path.abspath(args.profilecli)
    # Functions twice make no difference to Pyroscope; Parca takes those alone right
    for kind, program, sets in (
            (Pyroscope, args.pyroscope, [[*synthetic.values(), *recordings]]),
            (Parca, args.parca, [[synthetic[0], synthetic[5], *recordings], [synthetic[7]]])):
        if program:
            run_backend(tap, kind, os.path.abspath(program), sets, args.collector and os.path.abspath(args.collector))
        else:
            tap.skip(kind.name, f"no server: make test-backends {kind.name.upper()}=PATH")
    print(f"1..{tap.number}")
    return bool(tap.failed)


if __name__ == "__main__":
    sys.exit(main())

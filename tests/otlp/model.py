#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles as plain samples, for tests that ask what was profiled rather than how it is coded.

Reads what the daemon sends and also what a Collector re-exports, which may name attributes by
references into the string table. Input that does not hang together raises wire.WireError.
"""

import argparse
import collections
import dataclasses
import os
import sys

import wire


@dataclasses.dataclass(frozen=True)
class Frame:
    function: str       # "" if it has no name
    frame_type: str     # profile.frame.type
    mapping: str        # file name of the mapping, "" without one
    address: int        # of the Location; the frames inlined into one share it
    file: str = ""
    line: int = 0
    column: int = 0
    start_line: int = 0
    inlined: bool = False
    mapping_range: tuple = (0, 0, 0)    # start, limit, file offset
    mapping_attributes: tuple = ()      # ((key, value), …) sorted
    location_attributes: tuple = ()


@dataclasses.dataclass(frozen=True)
class Profile:
    sample_type: tuple
    period_type: tuple
    period: int
    start: int
    duration: int
    profile_id: bytes
    attributes: tuple
    scope: tuple        # name, version


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int            # 0 if the resource has none
    executable: str     # process.executable.name
    container_id: str
    service_name: str
    attributes: tuple   # all of the resource, ((key, value), …) sorted


@dataclasses.dataclass
class Sample:
    process: Process
    profile: Profile
    payload: int        # number of the message in its file
    stack: list         # of Frame, leaf first
    timestamps: list
    values: list
    link: tuple         # (trace id, span id) or None
    attributes: tuple

    def attribute(self, key, default=None):
        return dict(self.attributes).get(key, default)

    @property
    def thread_id(self):
        return self.attribute("thread.id")

    @property
    def thread_name(self):
        return self.attribute("thread.name", "")

    @property
    def cpu(self):
        return self.attribute("cpu.logical_number")

    @property
    def count(self):
        """How many events: timestamps where there are any, else the one value."""
        return len(self.timestamps) if self.timestamps else sum(self.values)

    @property
    def names(self):
        """Function names, leaf first; an address where there is no name."""
        return tuple(frame.function or f"{frame.address:#x}" for frame in self.stack)


class Reader:
    """Expands one decoded payload."""

    def __init__(self, data, payload):
        self.data = data
        self.payload = payload
        self.dictionary = data.dictionary
        self.stacks = {}
        self.locations = {}
        self.lists = {}

    def entry(self, table, index):
        entries = getattr(self.dictionary, table)
        if not 0 <= index < len(entries):
            raise wire.WireError(f"index {index} is outside {table} of {len(entries)} entries")
        return entries[index]

    def string(self, index):
        return self.entry("string_table", index)

    def value(self, message):
        if message.has("string_value_strindex"):
            return self.string(message.string_value_strindex)
        if message.has("array_value"):
            return tuple(self.value(item) for item in message.array_value.values)
        if message.has("kvlist_value"):
            return self.inline(message.kvlist_value.values)
        return next(iter(message.fields.values()), None)

    def inline(self, attributes):
        return tuple(sorted(
            ((self.string(item.key_strindex) if item.key_strindex else item.key,
              self.value(item.value)) for item in attributes), key=repr))

    def attributes(self, indices):
        indices = tuple(indices)
        if indices not in self.lists:
            found = (self.entry("attribute_table", index) for index in indices)
            self.lists[indices] = tuple(sorted(
                ((self.string(item.key_strindex), self.value(item.value)) for item in found),
                key=repr))
        return self.lists[indices]

    def frames(self, index):
        if index not in self.locations:
            self.locations[index] = self.expand(index)
        return self.locations[index]

    def expand(self, index):
        location = self.entry("location_table", index)
        mapping = self.entry("mapping_table", location.mapping_index)
        attributes = self.attributes(location.attribute_indices)
        rest = {
            "frame_type": dict(attributes).get("profile.frame.type", ""),
            "mapping": self.string(mapping.filename_strindex),
            "address": location.address,
            "mapping_range": (mapping.memory_start, mapping.memory_limit, mapping.file_offset),
            "mapping_attributes": self.attributes(mapping.attribute_indices),
            "location_attributes": attributes,
        }
        if not location.lines:
            return [Frame(function="", **rest)]
        frames = []
        for number, line in enumerate(location.lines):
            function = self.entry("function_table", line.function_index)
            frames.append(Frame(
                function=self.string(function.name_strindex or function.system_name_strindex),
                file=self.string(function.filename_strindex), line=line.line,
                column=line.column, start_line=function.start_line,
                inlined=number + 1 < len(location.lines), **rest))
        return frames

    def stack(self, index):
        if index not in self.stacks:
            self.stacks[index] = [
                frame for location in self.entry("stack_table", index).location_indices
                for frame in self.frames(location)]
        return self.stacks[index]

    def link(self, index):
        link = self.entry("link_table", index)
        return (link.trace_id, link.span_id) if index else None

    def process(self, resource):
        attributes = self.inline(resource.attributes)
        named = dict(attributes)
        return Process(
            pid=named.get("process.pid", 0), executable=named.get("process.executable.name", ""),
            container_id=named.get("container.id", ""),
            service_name=named.get("service.name", ""), attributes=attributes)

    def profile(self, profile, scope):
        def pair(value_type):
            return self.string(value_type.type_strindex), self.string(value_type.unit_strindex)
        return Profile(
            sample_type=pair(profile.sample_type), period_type=pair(profile.period_type),
            period=profile.period, start=profile.time_unix_nano, duration=profile.duration_nano,
            profile_id=profile.profile_id, scope=(scope.name, scope.version),
            attributes=self.attributes(profile.attribute_indices))

    def samples(self):
        for group in self.data.resource_profiles:
            process = self.process(group.resource)
            for scope in group.scope_profiles:
                for message in scope.profiles:
                    profile = self.profile(message, scope.scope)
                    for sample in message.samples:
                        yield Sample(
                            process=process, profile=profile, payload=self.payload,
                            stack=self.stack(sample.stack_index),
                            timestamps=list(sample.timestamps_unix_nano),
                            values=list(sample.values), link=self.link(sample.link_index),
                            attributes=self.attributes(sample.attribute_indices))


def load_payloads(payloads):
    """Samples of raw payloads."""
    return [sample for number, payload in enumerate(payloads)
            for sample in Reader(wire.decode(payload)[0], number).samples()]


def load(path):
    """Samples of a file in either format."""
    return load_payloads(wire.read(path))


def of_process(samples, process):
    """The samples of one process: a pid, an executable name, or a Process."""
    return [sample for sample in samples
            if process in (sample.process, sample.process.pid, sample.process.executable)]


def of_type(samples, sample_type):
    """The samples of one type, such as "samples" or "off_cpu"."""
    return [sample for sample in samples if sample.profile.sample_type[0] == sample_type]


def samples_per_process(samples):
    """(pid, executable name) -> number of events."""
    counts = collections.Counter()
    for sample in samples:
        counts[sample.process.pid, sample.process.executable] += sample.count
    return counts


def function_shares(samples, process=None, inclusive=False):
    """Function name -> share of events (0…1) with it as leaf, or anywhere in the stack."""
    chosen = samples if process is None else of_process(samples, process)
    total = sum(sample.count for sample in chosen)
    counts = collections.Counter()
    for sample in chosen:
        for name in set(sample.names) if inclusive else sample.names[:1]:
            counts[name] += sample.count
    return {name: count / total for name, count in counts.most_common()} if total else {}


def stacks(samples, process=None):
    """Function names, leaf first -> number of events."""
    counts = collections.Counter()
    for sample in samples if process is None else of_process(samples, process):
        counts[sample.names] += sample.count
    return counts


def main():
    parser = argparse.ArgumentParser(description="print the hottest functions of each process")
    parser.add_argument("-n", type=int, default=5, help="functions per process")
    parser.add_argument("file")
    args = parser.parse_args()
    try:
        samples = load(args.file)
    except (OSError, wire.WireError) as error:
        print(f"{args.file}: {error}", file=sys.stderr)
        return 1
    for kind in sorted({sample.profile.sample_type for sample in samples}):
        chosen = of_type(samples, kind[0])
        print(f"{kind[0]}/{kind[1]}")
        for (pid, name), count in samples_per_process(chosen).most_common():
            print(f"  {count:8} {name} ({pid})")
            mine = [sample for sample in of_process(chosen, pid)
                    if sample.process.executable == name]
            for function, share in list(function_shares(mine).items())[:args.n]:
                print(f"           {share:6.1%} {function}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)

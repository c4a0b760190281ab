#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make small valid OTLP profiles: input for tests of decoder, checker, Collector lane."""

import argparse
import hashlib
import struct
import sys

import wire
from wire import Message


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def lengthed(data):
    return varint(len(data)) + data


def scalar(value, ftype):
    if ftype == "double":
        return struct.pack("<d", value)
    if ftype == "fixed64":
        return struct.pack("<Q", value)
    return varint(int(value))


def lump(value, ftype):
    if ftype == "string":
        return value.encode()
    return value if ftype == "bytes" else encode(value)


def encode(message):
    """A Message as protobuf bytes, by the decoder's table read the other way."""
    out = bytearray()
    for number, (name, ftype, many) in sorted(wire.TABLE[message.kind].items()):
        if name not in message.fields:
            continue
        value = message.fields[name]
        simple = ftype in wire.VARINT_TYPES or ftype in wire.FIXED_TYPES
        if many and simple:
            if value:
                out += varint(number << 3 | wire.LEN)
                out += lengthed(b"".join(scalar(item, ftype) for item in value))
        elif many:
            for item in value:
                out += varint(number << 3 | wire.LEN) + lengthed(lump(item, ftype))
        elif simple:
            if value or message.kind == "AnyValue":
                kind = wire.I64 if ftype in wire.FIXED_TYPES else wire.VARINT
                out += varint(number << 3 | kind) + scalar(value, ftype)
        elif value or message.kind == "AnyValue" or isinstance(value, Message):
            out += varint(number << 3 | wire.LEN) + lengthed(lump(value, ftype))
    return bytes(out)


def any_value(value):
    if isinstance(value, bool):
        return Message("AnyValue", bool_value=value)
    if isinstance(value, int):
        return Message("AnyValue", int_value=value)
    return Message("AnyValue", string_value=value)


class Builder:
    """Builds one ProfilesData; equal entries of the dictionary are made once."""

    def __init__(self):
        self.dictionary = Message(
            "ProfilesDictionary",
            mapping_table=[Message("Mapping")], location_table=[Message("Location")],
            function_table=[Message("Function")], link_table=[Message("Link")],
            string_table=[""], attribute_table=[Message("KeyValueAndUnit")],
            stack_table=[Message("Stack")])
        self.data = Message("ProfilesData", resource_profiles=[], dictionary=self.dictionary)

    def intern(self, table, entry):
        entries = getattr(self.dictionary, table)
        if entry not in entries:
            entries.append(entry)
        return entries.index(entry)

    def string(self, text):
        return self.intern("string_table", text)

    def attributes(self, **pairs):
        """Indices of attributes; '__' in a name stands for '.'."""
        return [self.intern("attribute_table", Message(
            "KeyValueAndUnit", key_strindex=self.string(name.replace("__", ".")),
            value=any_value(value))) for name, value in pairs.items()]

    def mapping(self, name, start, limit):
        digest = hashlib.sha256(name.encode()).hexdigest()[:32]
        return self.intern("mapping_table", Message(
            "Mapping", memory_start=start, memory_limit=limit, filename_strindex=self.string(name),
            attribute_indices=self.attributes(process__executable__build_id__htlhash=digest)))

    def location(self, function, address, frame_type="native", mapping=0):
        lines = []
        if function:
            lines = [Message("Line", function_index=self.intern("function_table", Message(
                "Function", name_strindex=self.string(function))))]
        return self.intern("location_table", Message(
            "Location", mapping_index=mapping, address=address, lines=lines,
            attribute_indices=self.attributes(profile__frame__type=frame_type)))

    def stack(self, *locations):
        return self.intern("stack_table", Message("Stack", location_indices=list(locations)))

    def link(self, trace, span):
        return self.intern("link_table", Message("Link", trace_id=trace, span_id=span))

    def value_type(self, kind="", unit=""):
        if not kind:
            return Message("ValueType")
        return Message("ValueType", type_strindex=self.string(kind),
                       unit_strindex=self.string(unit))

    def resource(self, profiles, **pairs):
        attributes = [Message("KeyValue", key=name.replace("__", "."), value=any_value(value))
                      for name, value in pairs.items()]
        self.data.resource_profiles.append(Message(
            "ResourceProfiles", resource=Message("Resource", attributes=attributes),
            scope_profiles=[Message(
                "ScopeProfiles", profiles=profiles, scope=Message(
                    "InstrumentationScope", name="make_sample", version="1"))]))


def sample(stack, attributes, timestamps, values=(), link=0):
    return Message("Sample", stack_index=stack, attribute_indices=list(attributes), link_index=link,
                   values=list(values), timestamps_unix_nano=list(timestamps))


def build(seed=0, events=3):
    """Two processes, kernel and user frames, a link, and a profile of off-CPU time."""
    builder = Builder()
    start = 1_700_000_000_000_000_000 + seed * 15_000_000_000

    def identity(*parts):
        return hashlib.sha256(repr((seed, parts)).encode()).digest()[:16]

    def times(offset):
        return [start + offset * 1000 + step * 10_000_000 for step in range(events)]

    for pid, name, leafs in ((4711, "burn", ("alpha", "beta")), (4712, "copy", ("gamma",))):
        image = builder.mapping(f"/usr/bin/{name}", 0x1000, 0x9000)
        main = builder.location("main", 0x1100, mapping=image)
        entry = builder.location("read_zero", 0xffffffff81001000, "kernel")
        bare = builder.location(None, 0x8000, mapping=image)
        thread = builder.attributes(thread__id=pid, thread__name=name, cpu__logical_number=1)
        link = builder.link(identity("trace", pid), identity("span", pid)[:8])
        samples = [sample(builder.stack(builder.location(leaf, 0x2000 + 64 * number,
                                                         mapping=image), main),
                          thread, times(number), link=link if number == 0 else 0)
                   for number, leaf in enumerate(leafs)]
        samples.append(sample(builder.stack(entry, main), thread, times(9)[:1]))
        samples.append(sample(builder.stack(bare, main), thread, times(10)[:2]))
        cpu = Message(
            "Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
            time_unix_nano=start, duration_nano=15_000_000_000,
            period_type=builder.value_type("cpu", "nanoseconds"), period=1_000_000_000 // 99,
            profile_id=identity("cpu", pid))
        blocked = Message(
            "Profile", sample_type=builder.value_type("off_cpu", "nanoseconds"),
            samples=[sample(builder.stack(entry, main), thread, times(11)[:2], (1500, 2500))],
            time_unix_nano=start, duration_nano=15_000_000_000, period_type=builder.value_type(),
            profile_id=identity("off", pid))
        builder.resource([cpu, blocked], process__pid=pid, process__executable__name=name,
                         container__id="0123456789ab" * 5 + "0123", service__name=f"svc-{name}",
                         process__linux__cgroup=f"0::/system.slice/svc-{name}.service")
    return builder.data


def main():
    parser = argparse.ArgumentParser(description="write valid OTLP profiles to a file")
    parser.add_argument("--payloads", type=int, default=1, help="how many windows")
    parser.add_argument("--events", type=int, default=3, help="events per hot stack")
    parser.add_argument("--raw", action="store_true", help="one payload without its length")
    parser.add_argument("file")
    args = parser.parse_args()
    with open(args.file, "wb") as file:
        for seed in range(1 if args.raw else args.payloads):
            payload = encode(build(seed, args.events))
            file.write(payload if args.raw else wire.frame(payload))
    return 0


if __name__ == "__main__":
    sys.exit(main())

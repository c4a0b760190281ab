#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decode OTLP profiles from raw protobuf bytes, by a field table of its own.

The table below was written from the published field numbers, not from the daemon's .proto files,
and nothing here uses a protobuf library: a wrong number in the encoder shows up as a difference.
"""

import argparse
import json
import struct
import sys
import zlib

ONE, MANY = False, True

# message -> {field number: (name, type, repeated)}; a type starting upper case is a message.
TABLE = {
    "ProfilesData": {
        1: ("resource_profiles", "ResourceProfiles", MANY),
        2: ("dictionary", "ProfilesDictionary", ONE),
    },
    "ProfilesDictionary": {
        1: ("mapping_table", "Mapping", MANY),
        2: ("location_table", "Location", MANY),
        3: ("function_table", "Function", MANY),
        4: ("link_table", "Link", MANY),
        5: ("string_table", "string", MANY),
        6: ("attribute_table", "KeyValueAndUnit", MANY),
        7: ("stack_table", "Stack", MANY),
    },
    "ResourceProfiles": {
        1: ("resource", "Resource", ONE),
        2: ("scope_profiles", "ScopeProfiles", MANY),
        3: ("schema_url", "string", ONE),
    },
    "ScopeProfiles": {
        1: ("scope", "InstrumentationScope", ONE),
        2: ("profiles", "Profile", MANY),
        3: ("schema_url", "string", ONE),
    },
    "Profile": {
        1: ("sample_type", "ValueType", ONE),
        2: ("samples", "Sample", MANY),
        3: ("time_unix_nano", "fixed64", ONE),
        4: ("duration_nano", "uint64", ONE),
        5: ("period_type", "ValueType", ONE),
        6: ("period", "int64", ONE),
        7: ("profile_id", "bytes", ONE),
        8: ("dropped_attributes_count", "uint32", ONE),
        9: ("original_payload_format", "string", ONE),
        10: ("original_payload", "bytes", ONE),
        11: ("attribute_indices", "int32", MANY),
    },
    "Link": {
        1: ("trace_id", "bytes", ONE),
        2: ("span_id", "bytes", ONE),
    },
    "ValueType": {
        1: ("type_strindex", "int32", ONE),
        2: ("unit_strindex", "int32", ONE),
    },
    "Sample": {
        1: ("stack_index", "int32", ONE),
        2: ("attribute_indices", "int32", MANY),
        3: ("link_index", "int32", ONE),
        4: ("values", "int64", MANY),
        5: ("timestamps_unix_nano", "fixed64", MANY),
    },
    "Mapping": {
        1: ("memory_start", "uint64", ONE),
        2: ("memory_limit", "uint64", ONE),
        3: ("file_offset", "uint64", ONE),
        4: ("filename_strindex", "int32", ONE),
        5: ("attribute_indices", "int32", MANY),
    },
    "Stack": {
        1: ("location_indices", "int32", MANY),
    },
    "Location": {
        1: ("mapping_index", "int32", ONE),
        2: ("address", "uint64", ONE),
        3: ("lines", "Line", MANY),
        4: ("attribute_indices", "int32", MANY),
    },
    "Line": {
        1: ("function_index", "int32", ONE),
        2: ("line", "int64", ONE),
        3: ("column", "int64", ONE),
    },
    "Function": {
        1: ("name_strindex", "int32", ONE),
        2: ("system_name_strindex", "int32", ONE),
        3: ("filename_strindex", "int32", ONE),
        4: ("start_line", "int64", ONE),
    },
    "KeyValueAndUnit": {
        1: ("key_strindex", "int32", ONE),
        2: ("value", "AnyValue", ONE),
        3: ("unit_strindex", "int32", ONE),
    },
    "AnyValue": {
        1: ("string_value", "string", ONE),
        2: ("bool_value", "bool", ONE),
        3: ("int_value", "int64", ONE),
        4: ("double_value", "double", ONE),
        5: ("array_value", "ArrayValue", ONE),
        6: ("kvlist_value", "KeyValueList", ONE),
        7: ("bytes_value", "bytes", ONE),
        8: ("string_value_strindex", "int32", ONE),
    },
    "ArrayValue": {1: ("values", "AnyValue", MANY)},
    "KeyValueList": {1: ("values", "KeyValue", MANY)},
    "KeyValue": {
        1: ("key", "string", ONE),
        2: ("value", "AnyValue", ONE),
        3: ("key_strindex", "int32", ONE),
    },
    "Resource": {
        1: ("attributes", "KeyValue", MANY),
        2: ("dropped_attributes_count", "uint32", ONE),
        3: ("entity_refs", "EntityRef", MANY),
    },
    "InstrumentationScope": {
        1: ("name", "string", ONE),
        2: ("version", "string", ONE),
        3: ("attributes", "KeyValue", MANY),
        4: ("dropped_attributes_count", "uint32", ONE),
    },
    "EntityRef": {
        1: ("schema_url", "string", ONE),
        2: ("type", "string", ONE),
        3: ("id_keys", "string", MANY),
        4: ("description_keys", "string", MANY),
    },
    "ExportProfilesServiceResponse": {
        1: ("partial_success", "ExportProfilesPartialSuccess", ONE),
    },
    "ExportProfilesPartialSuccess": {
        1: ("rejected_profiles", "int64", ONE),
        2: ("error_message", "string", ONE),
    },
    "Status": {
        1: ("code", "int32", ONE),
        2: ("message", "string", ONE),
        3: ("details", "Any", MANY),
    },
    "Any": {
        1: ("type_url", "string", ONE),
        2: ("value", "bytes", ONE),
    },
    "MetricsData": {1: ("resource_metrics", "ResourceMetrics", MANY)},
    "ResourceMetrics": {
        1: ("resource", "Resource", ONE),
        2: ("scope_metrics", "ScopeMetrics", MANY),
        3: ("schema_url", "string", ONE),
    },
    "ScopeMetrics": {
        1: ("scope", "InstrumentationScope", ONE),
        2: ("metrics", "Metric", MANY),
        3: ("schema_url", "string", ONE),
    },
    "Metric": {
        1: ("name", "string", ONE),
        2: ("description", "string", ONE),
        3: ("unit", "string", ONE),
        5: ("gauge", "Gauge", ONE),
        7: ("sum", "Sum", ONE),
        12: ("metadata", "KeyValue", MANY),
    },
    "Gauge": {1: ("data_points", "NumberDataPoint", MANY)},
    "Sum": {
        1: ("data_points", "NumberDataPoint", MANY),
        2: ("aggregation_temporality", "int32", ONE),
        3: ("is_monotonic", "bool", ONE),
    },
    "NumberDataPoint": {
        2: ("start_time_unix_nano", "fixed64", ONE),
        3: ("time_unix_nano", "fixed64", ONE),
        4: ("as_double", "double", ONE),
        6: ("as_int", "sfixed64", ONE),
        7: ("attributes", "KeyValue", MANY),
        8: ("flags", "uint32", ONE),
    },
}

# The request body of Export and the message of a file are the same bytes.
TABLE["ExportProfilesServiceRequest"] = TABLE["ProfilesData"]

VARINT, I64, LEN, I32 = 0, 1, 2, 5
VARINT_TYPES = frozenset(("int32", "int64", "uint32", "uint64", "bool"))
FIXED_TYPES = {"fixed64": "Q", "sfixed64": "q", "double": "d"}
RANGES = {
    "int32": (-1 << 31, (1 << 31) - 1),
    "int64": (-1 << 63, (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
    "bool": (0, 1),
}
DEFAULTS = {"string": "", "bytes": b"", "double": 0.0, "bool": False}
DEPTH_LIMIT = 32
FRAME_LIMIT = 64 << 20
# tag of field 2^29 - 1, 16 bytes of it, version 1
SEAL_HEAD = bytes((0xfa, 0xff, 0xff, 0xff, 0x0f, 16, 1))
SEAL_SIZE = 22
COMPLAINT_LIMIT = 1000
FIELDS_BY_NAME = {
    kind: {name: (number, ftype, many) for number, (name, ftype, many) in fields.items()}
    for kind, fields in TABLE.items()
}


class WireError(ValueError):
    """The bytes are not a protobuf message of this kind at all."""


class Message:
    """One decoded message; fields that were not on the wire read as their default."""

    __slots__ = ("kind", "fields")

    def __init__(self, kind, **fields):
        self.kind = kind
        self.fields = fields

    def __getattr__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            pass
        spec = FIELDS_BY_NAME[self.kind].get(name)
        if spec is None:
            raise AttributeError(f"{self.kind} has no field {name}")
        _, ftype, many = spec
        if many:
            return []
        if ftype[0].isupper():
            return Message(ftype)
        return DEFAULTS.get(ftype, 0)

    def __eq__(self, other):
        return isinstance(other, Message) and self.kind == other.kind and \
            self.fields == other.fields

    def __repr__(self):
        return f"{self.kind}({self.fields})"

    def has(self, name):
        """True if the field was on the wire, even when empty."""
        return name in self.fields

    def plain(self):
        """The message as dicts and lists that json can write; bytes become hex."""
        def convert(value):
            if isinstance(value, Message):
                return value.plain()
            if isinstance(value, list):
                return [convert(item) for item in value]
            if isinstance(value, bytes):
                return value.hex()
            return value
        return {name: convert(value) for name, value in self.fields.items()}


class Decoder:
    """Decodes one buffer; what a tolerant parser would let pass is collected as complaints."""

    def __init__(self, data):
        self.data = data
        self.complaints = []

    def complain(self, path, text):
        if len(self.complaints) < COMPLAINT_LIMIT:
            self.complaints.append(f"{path}: {text}")

    def varint(self, pos, end, path):
        data = self.data
        if pos < end and data[pos] < 0x80:
            return data[pos], pos + 1
        value = shift = 0
        while pos < end:
            byte = data[pos]
            pos += 1
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    self.complain(path, "varint is longer than it needs to be")
                if value >= 1 << 64:
                    raise WireError(f"{path}: varint does not fit in 64 bits")
                return value, pos
            shift += 7
            if shift > 63:
                raise WireError(f"{path}: varint is longer than 10 bytes")
        raise WireError(f"{path}: message ends inside a varint")

    def number(self, raw, ftype, path):
        if raw >= 1 << 63 and ftype in ("int32", "int64"):
            raw -= 1 << 64
        low, high = RANGES[ftype]
        if not low <= raw <= high:
            self.complain(path, f"{raw} is out of range for {ftype}")
            if ftype != "bool":
                raw &= high
        return bool(raw) if ftype == "bool" else raw

    def fixed(self, pos, end, ftype, path):
        if end - pos < 8:
            raise WireError(f"{path}: message ends inside a 64-bit value")
        return struct.unpack_from(f"<{FIXED_TYPES[ftype]}", self.data, pos)[0], pos + 8

    def packed(self, pos, end, ftype, path):
        values = []
        if ftype in FIXED_TYPES:
            if (end - pos) % 8:
                raise WireError(f"{path}: packed 64-bit values are not a multiple of 8 bytes")
            return list(struct.unpack_from(f"<{(end - pos) // 8}{FIXED_TYPES[ftype]}", self.data, pos))
        while pos < end:
            raw, pos = self.varint(pos, end, path)
            values.append(self.number(raw, ftype, path))
        return values

    def payload(self, pos, end, ftype, path, depth):
        if ftype == "bytes":
            return bytes(self.data[pos:end])
        if ftype == "string":
            raw = bytes(self.data[pos:end])
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError:
                self.complain(path, "string is not valid UTF-8")
                return raw.decode("utf-8", "replace")
        return self.message(ftype, pos, end, path, depth + 1)

    def skip(self, pos, end, wiretype, path):
        if wiretype == VARINT:
            return self.varint(pos, end, path)[1]
        if wiretype == LEN:
            length, pos = self.varint(pos, end, path)
            pos += length
        elif wiretype in (I64, I32):
            pos += 8 if wiretype == I64 else 4
        else:
            raise WireError(f"{path}: wire type {wiretype} is not in use")
        if pos > end:
            raise WireError(f"{path}: message ends inside an unknown field")
        return pos

    def message(self, kind, pos, end, path, depth=0):
        if depth > DEPTH_LIMIT:
            raise WireError(f"{path}: messages are nested deeper than {DEPTH_LIMIT}")
        table = TABLE[kind]
        fields = {}
        while pos < end:
            tag, pos = self.varint(pos, end, path)
            number, wiretype = tag >> 3, tag & 7
            if number == 0 or tag >= 1 << 32:
                raise WireError(f"{path}: {number} is not a field number")
            if number not in table:
                self.complain(path, f"{kind} has no field {number}")
                pos = self.skip(pos, end, wiretype, path)
                continue
            name, ftype, many = table[number]
            here = f"{path}.{name}"
            scalar = VARINT if ftype in VARINT_TYPES else I64 if ftype in FIXED_TYPES else LEN
            if wiretype != scalar and not (many and wiretype == LEN):
                self.complain(here, f"wire type {wiretype} where {ftype} has {scalar}")
                pos = self.skip(pos, end, wiretype, path)
                continue
            if wiretype == LEN:
                length, pos = self.varint(pos, end, here)
                if length > end - pos:
                    raise WireError(f"{here}: length {length} runs over the end of {kind}")
                stop = pos + length
            if many:
                values = fields.setdefault(name, [])
                if scalar == LEN:
                    values.append(self.payload(pos, stop, ftype, f"{here}[{len(values)}]", depth))
                    pos = stop
                elif wiretype == LEN:
                    if values:
                        self.complain(here, "packed field is split")
                    if length == 0:
                        self.complain(here, "packed field is empty")
                    values.extend(self.packed(pos, stop, ftype, here))
                    pos = stop
                else:
                    self.complain(here, f"repeated {ftype} is not packed")
                    raw, pos = self.fixed(pos, end, ftype, here) if scalar == I64 else \
                        self.varint(pos, end, here)
                    values.append(raw if scalar == I64 else self.number(raw, ftype, here))
                continue
            if name in fields:
                self.complain(here, "field is there twice")
            if scalar == LEN:
                value = self.payload(pos, stop, ftype, here, depth)
                pos = stop
            elif scalar == I64:
                value, pos = self.fixed(pos, end, ftype, here)
            else:
                raw, pos = self.varint(pos, end, here)
                value = self.number(raw, ftype, here)
            fields[name] = value
        if kind == "AnyValue" and len(fields) > 1:
            self.complain(path, f"oneof holds {len(fields)} values: {', '.join(sorted(fields))}")
        return Message(kind, **fields)


def decode(data, kind="ProfilesData"):
    """Decode bytes; returns (message, complaints). Raises WireError on what cannot be parsed."""
    decoder = Decoder(data)
    message = decoder.message(kind, 0, len(data), kind)
    return message, decoder.complaints


def unseal(message):
    """A message of a store's file without the field behind it (docs/otlp.md), whose checksum is right."""
    seal = message[-SEAL_SIZE:]
    if len(message) <= SEAL_SIZE or not seal.startswith(SEAL_HEAD):
        return message
    bare = message[:-SEAL_SIZE]
    state, told = seal[7], int.from_bytes(seal[-4:], "big")
    if state not in (1, 2):
        raise WireError(f"a seal's state is {state}")
    covered = struct.pack(">I", len(message)) + bare + seal[:7] + bytes(1) + seal[8:-4] + bytes(4)
    if zlib.crc32(covered) != told:
        raise WireError("a seal's checksum is wrong")
    return bare


def split(data):
    """The raw payloads of a file: one, or several behind u32 big-endian lengths.

    No protobuf message starts with a byte below 8 (that would be field number 0), and no length
    of up to 64 MiB starts with anything else, so the first byte tells the two formats apart.
    """
    if not data:
        raise WireError("file is empty")
    if data[0] >= 8:
        return [data]
    payloads = []
    pos = 0
    while pos < len(data):
        if len(data) - pos < 4:
            raise WireError(f"file ends inside the length at byte {pos}")
        length = int.from_bytes(data[pos:pos + 4], "big")
        pos += 4
        if length > FRAME_LIMIT:
            raise WireError(f"length {length} at byte {pos - 4} is over {FRAME_LIMIT}")
        if length > len(data) - pos:
            raise WireError(f"file ends {length - len(data) + pos} bytes before its last message")
        payloads.append(unseal(data[pos:pos + length]))
        pos += length
    return payloads


def frame(payload):
    """A payload with the length in front, as the file format has it."""
    return struct.pack(">I", len(payload)) + payload


def read(path):
    """The raw payloads of a file by name."""
    with open(path, "rb") as file:
        return split(file.read())


def summary(message):
    """Counts of one payload, for people."""
    profiles = [profile for rp in message.resource_profiles for sp in rp.scope_profiles
                for profile in sp.profiles]
    out = {"resources": len(message.resource_profiles), "profiles": len(profiles),
           "samples": sum(len(profile.samples) for profile in profiles),
           "events": sum(max(len(sample.values), len(sample.timestamps_unix_nano))
                         for profile in profiles for sample in profile.samples)}
    for name, _, _ in TABLE["ProfilesDictionary"].values():
        out[name] = len(getattr(message.dictionary, name))
    return out


def main():
    parser = argparse.ArgumentParser(description="decode OTLP profiles from raw bytes")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="every field, one JSON object a payload")
    form.add_argument("--summary", action="store_true", help="counts only (default)")
    parser.add_argument("file")
    args = parser.parse_args()
    status = 0
    try:
        for number, payload in enumerate(read(args.file)):
            message, complaints = decode(payload)
            if args.json:
                print(json.dumps(message.plain()))
            else:
                counts = "  ".join(f"{key} {value}" for key, value in summary(message).items())
                print(f"payload {number}: {len(payload)} bytes  {counts}")
            for complaint in complaints:
                print(f"payload {number}: {complaint}", file=sys.stderr)
                status = 1
    except (OSError, WireError) as error:
        print(f"{args.file}: {error}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decoder with bytes made by hand, and of the file format."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

import make_sample
import wire

HERE = os.path.dirname(os.path.abspath(__file__))


def unhex(text):
    return bytes.fromhex(text)


class Decode(unittest.TestCase):
    def clean(self, kind, text):
        message, complaints = wire.decode(unhex(text), kind)
        self.assertEqual(complaints, [])
        return message

    def complains(self, kind, text, words):
        message, complaints = wire.decode(unhex(text), kind)
        self.assertEqual(len(complaints), 1, complaints)
        self.assertIn(words, complaints[0])
        return message

    def refuses(self, kind, text, words):
        with self.assertRaisesRegex(wire.WireError, words):
            wire.decode(unhex(text), kind)

    def test_sample(self):
        sample = self.clean("Sample", "0805" "12020107" "1802" "2203" "01ac02"
                            "2a10" "0100000000000000" "ffffffffffffffff")
        self.assertEqual(sample.stack_index, 5)
        self.assertEqual(sample.attribute_indices, [1, 7])
        self.assertEqual(sample.link_index, 2)
        self.assertEqual(sample.values, [1, 300])
        self.assertEqual(sample.timestamps_unix_nano, [1, (1 << 64) - 1])

    def test_profile(self):
        profile = self.clean(
            "Profile", "0a0408011002" "1200" "190807060504030201" "20e807" "2a00" "30ffffffffff"
            "ffffffff01" "3a10000102030405060708090a0b0c0d0e0f" "4003" "4a0570" "70726f66"
            "520201ff" "5a0105")
        self.assertEqual(profile.sample_type.type_strindex, 1)
        self.assertEqual(profile.sample_type.unit_strindex, 2)
        self.assertEqual(len(profile.samples), 1)
        self.assertEqual(profile.time_unix_nano, 0x0102030405060708)
        self.assertEqual(profile.duration_nano, 1000)
        self.assertTrue(profile.has("period_type"))
        self.assertEqual(profile.period, -1)
        self.assertEqual(profile.profile_id, bytes(range(16)))
        self.assertEqual(profile.dropped_attributes_count, 3)
        self.assertEqual(profile.original_payload_format, "pprof")
        self.assertEqual(profile.original_payload, b"\x01\xff")
        self.assertEqual(profile.attribute_indices, [5])

    def test_dictionary(self):
        dictionary = self.clean(
            "ProfilesDictionary",
            "0a0b" "08011002180320042a0105" "120b" "080110021a020801220107"
            "1a08" "0801100218032004" "2206" "0a01aa1201bb" "2a0161" "3208" "0801120218021803"
            "3a03" "0a0102")
        mapping = dictionary.mapping_table[0]
        self.assertEqual((mapping.memory_start, mapping.memory_limit, mapping.file_offset,
                          mapping.filename_strindex, mapping.attribute_indices), (1, 2, 3, 4, [5]))
        location = dictionary.location_table[0]
        self.assertEqual((location.mapping_index, location.address,
                          location.lines[0].function_index, location.attribute_indices),
                         (1, 2, 1, [7]))
        function = dictionary.function_table[0]
        self.assertEqual((function.name_strindex, function.system_name_strindex,
                          function.filename_strindex, function.start_line), (1, 2, 3, 4))
        link = dictionary.link_table[0]
        self.assertEqual((link.trace_id, link.span_id), (b"\xaa", b"\xbb"))
        self.assertEqual(dictionary.string_table, ["a"])
        attribute = dictionary.attribute_table[0]
        self.assertEqual((attribute.key_strindex, attribute.value.int_value,
                          attribute.unit_strindex), (1, 2, 3))
        self.assertEqual(dictionary.stack_table[0].location_indices, [2])

    def test_resource(self):
        data = self.clean(
            "ProfilesData",
            "0a28" "0a0d" "0a09" "0a0170" "12040a027171" "1002"
            "1214" "0a12" "0a016e" "120176" "1a08" "0a016b" "1203" "18ac02" "2005" "1a0175" "1200")
        group = data.resource_profiles[0]
        self.assertEqual(group.resource.attributes[0].key, "p")
        self.assertEqual(group.resource.attributes[0].value.string_value, "qq")
        self.assertEqual(group.resource.dropped_attributes_count, 2)
        scope = group.scope_profiles[0].scope
        self.assertEqual((scope.name, scope.version, scope.dropped_attributes_count),
                         ("n", "v", 5))
        self.assertEqual(scope.attributes[0].value.int_value, 300)
        self.assertEqual(group.schema_url, "u")
        self.assertTrue(data.has("dictionary"))

    def test_any_value(self):
        for text, name, value in (
                ("0a00", "string_value", ""), ("1001", "bool_value", True),
                ("1800", "int_value", 0), ("21000000000000f03f", "double_value", 1.0),
                ("3a0200ff", "bytes_value", b"\x00\xff"), ("4007", "string_value_strindex", 7)):
            message = self.clean("AnyValue", text)
            self.assertEqual(message.fields, {name: value})
        nested = self.clean("AnyValue", "2a040a021801")
        self.assertEqual(nested.array_value.values[0].int_value, 1)
        pairs = self.clean("AnyValue", "32090a070a016b12021801")
        self.assertEqual(pairs.kvlist_value.values[0].key, "k")
        self.assertEqual(self.clean("KeyValue", "1809").key_strindex, 9)

    def test_line_and_response(self):
        line = self.clean("Line", "080110021803")
        self.assertEqual((line.function_index, line.line, line.column), (1, 2, 3))
        reply = self.clean("ExportProfilesServiceResponse", "0a0508031201" "65")
        self.assertEqual(reply.partial_success.rejected_profiles, 3)
        self.assertEqual(reply.partial_success.error_message, "e")

    def test_old_sample_numbers_show(self):
        """Schema 1.9 had values in field 2 and attributes in 3: same bytes, other meaning."""
        sample = wire.decode(unhex("08011201631a0104"), "Sample")
        self.assertEqual(sample[0].values, [])
        self.assertIn("link_index: wire type 2", sample[1][0])

    def test_complaints(self):
        self.complains("Sample", "3001", "no field 6")
        self.complains("Sample", "320161", "no field 6")
        self.complains("Sample", "310000000000000000", "no field 6")
        self.complains("Sample", "3500000000", "no field 6")
        self.complains("Sample", "0a0101", "wire type 2 where int32 has 0")
        self.complains("Profile", "1801", "wire type 0 where fixed64 has 1")
        self.complains("ValueType", "0d00000000", "wire type 5")
        self.complains("Stack", "0801", "not packed")
        self.complains("Sample", "290100000000000000", "not packed")
        self.complains("Stack", "0a01010a0102", "is split")
        self.complains("Stack", "0a00", "is empty")
        self.complains("Sample", "08010802", "there twice")
        self.complains("AnyValue", "10011801", "oneof holds 2")
        self.complains("ProfilesDictionary", "2a02c328", "UTF-8")
        self.complains("Sample", "088100", "longer than it needs")
        self.complains("Sample", "08ffffffff0f", "out of range for int32")
        self.complains("Profile", "408080808010", "out of range for uint32")
        self.complains("AnyValue", "1002", "out of range for bool")

    def test_tolerant_values(self):
        self.assertEqual(self.complains("Stack", "0801", "packed").location_indices, [1])
        self.assertEqual(self.complains("Sample", "30010805", "field 6").stack_index, 5)

    def test_refusals(self):
        self.refuses("Sample", "08", "inside a varint")
        self.refuses("Sample", "08ffffffffffffffffff7f", "64 bits")
        self.refuses("Sample", "08ffffffffffffffffffff01", "longer than 10")
        self.refuses("Sample", "2a0401", "runs over")
        self.refuses("Sample", "2a0401000000", "multiple of 8")
        self.refuses("Profile", "1901", "64-bit value")
        self.refuses("Sample", "0001", "not a field number")
        self.refuses("Sample", "33", "wire type 3")
        self.refuses("Sample", "3205", "unknown field")
        deep = b""
        for _ in range(40):
            deep = make_sample.lengthed(b"\x0a" + make_sample.lengthed(deep)) if deep else b"\x00"
            deep = b"\x2a" + deep
        with self.assertRaisesRegex(wire.WireError, "nested deeper"):
            wire.decode(deep, "AnyValue")

    def test_fields(self):
        self.assertEqual(wire.Message("Sample").values, [])
        self.assertEqual(wire.Message("Link").trace_id, b"")
        self.assertFalse(wire.Message("Profile").has("sample_type"))
        with self.assertRaises(AttributeError):
            getattr(wire.Message("Sample"), "valves")

    def test_complaints_are_limited(self):
        _, complaints = wire.decode(unhex("3001") * 5000, "Sample")
        self.assertEqual(len(complaints), wire.COMPLAINT_LIMIT)

    def test_truncation_never_crashes(self):
        payload = make_sample.encode(make_sample.build())
        for length in range(len(payload)):
            try:
                wire.decode(payload[:length])
            except wire.WireError:
                pass

    def test_round_trip(self):
        data = make_sample.build()
        message, complaints = wire.decode(make_sample.encode(data))
        self.assertEqual(complaints, [])
        self.assertEqual(make_sample.encode(message), make_sample.encode(data))
        self.assertEqual(message.dictionary.string_table, data.dictionary.string_table)


class Files(unittest.TestCase):
    def test_raw(self):
        payload = make_sample.encode(make_sample.build())
        self.assertEqual(wire.split(payload), [payload])

    def test_framed(self):
        self.assertEqual(wire.split(unhex("000000030a0100" "00000000" "000000021200")),
                         [unhex("0a0100"), b"", unhex("1200")])

    def test_broken_frames(self):
        for data, words in ((b"", "empty"), (unhex("000000"), "inside the length"),
                            (unhex("0000000412"), "3 bytes before"),
                            (unhex("0000000212" "00" "00"), "inside the length"),
                            (unhex("07ffffff12"), "is over")):
            with self.assertRaisesRegex(wire.WireError, words):
                wire.split(data)

    def test_command(self):
        def run(data, *options):
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                return subprocess.run(
                    [sys.executable, "-B", os.path.join(HERE, "wire.py"), *options, file.name],
                    capture_output=True, text=True, check=False)
        payload = make_sample.encode(make_sample.build())
        good = run(wire.frame(payload) * 2)
        self.assertEqual(good.returncode, 0)
        self.assertEqual(good.stdout.count("profiles 4  samples 9  events 19"), 2)
        self.assertIn('"process.pid"', run(payload, "--json").stdout)
        odd = run(payload + unhex("2801"))
        self.assertEqual(odd.returncode, 1)
        self.assertIn("no field 5", odd.stderr)
        torn = run(struct.pack(">I", 99) + payload[:50])
        self.assertEqual(torn.returncode, 1)
        self.assertIn("before its last message", torn.stderr)


if __name__ == "__main__":
    unittest.main()

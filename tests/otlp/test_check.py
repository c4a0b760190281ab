#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the checker: a valid payload has no violation, each broken rule exactly its sentence."""

import os
import subprocess
import sys
import tempfile
import unittest

import check
import make_sample
import wire
from wire import Message

HERE = os.path.dirname(os.path.abspath(__file__))


class Rules(unittest.TestCase):
    def setUp(self):
        self.data = make_sample.build()
        self.dictionary = self.data.dictionary
        self.group = self.data.resource_profiles[0]
        self.cpu, self.blocked = self.group.scope_profiles[0].profiles

    def violations(self):
        return check.check(make_sample.encode(self.data))

    def says(self, *sentences):
        """Each text is part of one violation, and there is no other violation."""
        found = self.violations()
        for text in sentences:
            self.assertTrue(any(text in violation for violation in found), (text, found))
        self.assertEqual(len(found), len(sentences), found)

    def also_says(self, text):
        found = self.violations()
        self.assertTrue(any(text in violation for violation in found), (text, found))

    def attribute(self, key, field="string_value"):
        number = self.dictionary.string_table.index(key)
        return next(entry.value for entry in self.dictionary.attribute_table
                    if entry.key_strindex == number and entry.value.has(field))

    def test_valid(self):
        self.assertEqual(self.violations(), [])

    def test_undecodable(self):
        self.assertIn("cannot be decoded", check.check(b"\x0a\x7f")[0])

    def test_wire(self):
        found = check.check(make_sample.encode(self.data) + b"\x28\x01")
        self.assertEqual(len(found), 1)
        self.assertIn("On the wire", found[0])

    def test_too_big(self):
        limit = check.PAYLOAD_LIMIT
        try:
            check.PAYLOAD_LIMIT = 1000
            self.says("bytes, over 1000")
        finally:
            check.PAYLOAD_LIMIT = limit

    def test_empty(self):
        found = check.check(b"")
        self.assertIn("The payload has no dictionary.", found)
        self.assertIn("The payload has no resource_profiles.", found)
        for table in check.TABLES:
            self.assertIn(f"{table} is empty; entry 0 must be there.", found)

    def test_violations_are_limited(self):
        self.cpu.samples[0].fields["timestamps_unix_nano"] = [0] * 5000
        self.assertEqual(len(self.violations()), check.VIOLATION_LIMIT)

    # entry 0

    def test_string_zero(self):
        self.dictionary.string_table[0] = "x"
        self.also_says("string_table[0] is 'x'")

    def test_zero_entries(self):
        for table, entry in (
                ("mapping_table", Message("Mapping", memory_limit=1)),
                ("location_table", Message("Location", address=1)),
                ("function_table", Message("Function", start_line=1)),
                ("attribute_table", Message("KeyValueAndUnit", value=Message("AnyValue"))),
                ("stack_table", Message("Stack", location_indices=[1]))):
            with self.subTest(table):
                self.setUp()
                getattr(self.dictionary, table)[0] = entry
                self.also_says(f"{table}[0] is not the zero value")

    def test_link_zero_with_zeroes(self):
        """The specification allows ids of zero bytes here; two receivers do not."""
        self.dictionary.link_table[0] = Message("Link", trace_id=bytes(16), span_id=bytes(8))
        self.also_says("link_table[0] has ids")

    # index ranges

    def test_ranges(self):
        def mapping(entry):
            return entry.mapping_table[1].fields

        def location(entry):
            return entry.location_table[1].fields
        cases = (
            ("filename_strindex is 999", lambda: mapping(self.dictionary).update(
                filename_strindex=999)),
            ("attribute index is 999", lambda: mapping(self.dictionary).update(
                attribute_indices=[999])),
            ("mapping_index is 999", lambda: location(self.dictionary).update(mapping_index=999)),
            ("mapping_index is -1", lambda: location(self.dictionary).update(mapping_index=-1)),
            ("function_index is 999", lambda: location(self.dictionary)["lines"][0].fields.update(
                function_index=999)),
            ("name_strindex is 999", lambda: self.dictionary.function_table[1].fields.update(
                name_strindex=999)),
            ("system_name_strindex is 999", lambda:
                self.dictionary.function_table[1].fields.update(system_name_strindex=999)),
            ("key_strindex is 999", lambda: self.dictionary.attribute_table[1].fields.update(
                key_strindex=999)),
            ("unit_strindex is 999", lambda: self.dictionary.attribute_table[1].fields.update(
                unit_strindex=999)),
            ("location index is 999", lambda: self.dictionary.stack_table[1].fields.update(
                location_indices=[999])),
            ("stack_index is 999", lambda: self.cpu.samples[0].fields.update(stack_index=999)),
            ("link_index is 999", lambda: self.cpu.samples[0].fields.update(link_index=999)),
            ("sample 0 attribute index is 999", lambda: self.cpu.samples[0].fields.update(
                attribute_indices=[999])),
            ("profile 0 attribute index is 999", lambda: self.cpu.fields.update(
                attribute_indices=[999])),
            ("sample_type type is 999", lambda: self.cpu.sample_type.fields.update(
                type_strindex=999)),
            ("period_type unit is 999", lambda: self.cpu.period_type.fields.update(
                unit_strindex=999)),
        )
        for text, spoil in cases:
            with self.subTest(text):
                self.setUp()
                spoil()
                self.also_says(text)

    def test_null_references(self):
        self.cpu.samples[0].attribute_indices.append(0)
        self.dictionary.stack_table[1].location_indices.append(0)
        self.dictionary.location_table[2].lines.append(Message("Line"))
        self.says("null attribute 0", "null location 0", "null function 0")

    # duplicates and orphans

    def test_duplicates(self):
        for table in check.TABLES:
            with self.subTest(table):
                self.setUp()
                entries = getattr(self.dictionary, table)
                entries.append(entries[1])
                self.says(f"{table}[{len(entries) - 1}] is the same as {table}[1]",
                          f"{table}[{len(entries) - 1}] is not used")

    def test_duplicates_by_value(self):
        """A stack is the same stack even by way of another copy of its location."""
        self.dictionary.location_table.append(self.dictionary.location_table[1])
        copy = len(self.dictionary.location_table) - 1
        first = self.dictionary.stack_table[1].location_indices
        self.dictionary.stack_table.append(Message(
            "Stack", location_indices=[copy if index == 1 else index for index in first]))
        self.cpu.samples[1].fields["stack_index"] = len(self.dictionary.stack_table) - 1
        self.also_says(f"stack_table[{len(self.dictionary.stack_table) - 1}] is the same as")

    def test_orphans(self):
        builder = make_sample.Builder()
        builder.dictionary = self.dictionary
        image = builder.mapping("/lib/orphan.so", 1, 5)
        builder.stack(builder.location("orphan", 2, mapping=image))
        builder.link(b"\1" * 16, b"\1" * 8)
        self.says("stack_table[8]", "location_table[9]", "mapping_table[3]", "function_table[6]",
                  "link_table[3]", "attribute_table[10]", "string_table[18]", "string_table[19]")
        for violation in self.violations():
            self.assertIn("is not used by anything", violation)

    # entries

    def test_mapping_range(self):
        self.dictionary.mapping_table[1].fields.update(memory_start=0x9000)
        self.also_says("not below its limit")

    def test_htlhash(self):
        value = self.attribute("process.executable.build_id.htlhash")
        value.fields["string_value"] = "A" * 32
        self.says("not 32 lower-case hex digits")
        value.fields["string_value"] = "a" * 31
        self.says("not 32 lower-case hex digits")
        self.dictionary.mapping_table[1].fields["attribute_indices"] = []
        self.also_says("is a file but has no process.executable.build_id.htlhash")

    def test_gnu_build_id(self):
        builder = make_sample.Builder()
        builder.dictionary = self.dictionary
        good = builder.attributes(process__executable__build_id__gnu="0aff")
        self.dictionary.mapping_table[1].attribute_indices.extend(good)
        self.assertEqual(self.violations(), [])
        self.dictionary.attribute_table[good[0]].fields["value"] = make_sample.any_value("0af")
        self.says("GNU build id '0af'")
        name = self.dictionary.mapping_table[1].filename_strindex
        self.dictionary.string_table[name] = "[kernel.kallsyms]"
        self.dictionary.mapping_table[1].fields["attribute_indices"] = good
        self.also_says("has attributes but no process.executable.build_id.htlhash")

    def test_kernel_mapping_needs_no_hash(self):
        name = self.dictionary.mapping_table[1].filename_strindex
        self.dictionary.string_table[name] = "[kernel.kallsyms]"
        self.dictionary.mapping_table[1].fields["attribute_indices"] = []
        self.assertFalse([text for text in self.violations() if "not used" not in text])

    def test_address_outside_mapping(self):
        self.dictionary.location_table[1].fields["address"] = 0x9000
        self.says("address 0x9000 is outside its mapping")

    def test_frame_type(self):
        self.dictionary.location_table[1].fields["attribute_indices"] = []
        self.says("location_table[1] has no profile.frame.type")

    def test_unknown_frame_type(self):
        """Known to the conventions but refused by a receiver."""
        self.attribute("profile.frame.type").fields["string_value"] = "rust"
        self.also_says("unknown frame type 'rust'")

    def test_negative_lines(self):
        self.dictionary.location_table[1].lines[0].fields["column"] = -1
        self.dictionary.function_table[1].fields["start_line"] = -1
        self.says("negative line or column", "negative start line")
        self.dictionary.location_table[1].lines[0].fields.update(column=0, line=-1)
        self.also_says("negative line or column")

    def test_function_without_name(self):
        self.dictionary.function_table[1].fields = {"start_line": 7}
        self.also_says("neither a name nor a file name")

    def test_link_sizes(self):
        self.dictionary.link_table[1].fields["span_id"] = bytes(7) + b"\1\1"
        self.says("16 and 9 bytes, not 16 and 8")
        self.dictionary.link_table[1].fields["span_id"] = bytes(8)
        self.says("an id of zeroes only")

    def test_attribute_entries(self):
        entry = self.dictionary.attribute_table[1]
        entry.fields["value"] = Message("AnyValue")
        self.also_says("attribute_table[1] has no value")
        entry.fields["value"] = Message("AnyValue", string_value_strindex=1)
        self.also_says("attribute_table[1] uses string_value_strindex")
        entry.fields["key_strindex"] = 0
        self.also_says("attribute_table[1] has an empty key")

    def test_attribute_types(self):
        self.attribute("thread.id", "int_value").fields = {"string_value": "4711"}
        self.says("thread.id is not a int_value")

    def test_attribute_keys_unique(self):
        builder = make_sample.Builder()
        builder.dictionary = self.dictionary
        self.cpu.samples[0].attribute_indices.extend(builder.attributes(thread__name="again"))
        self.says("sample 0 has the attribute thread.name twice")

    # resources

    def test_missing_messages(self):
        del self.group.fields["resource"]
        del self.group.scope_profiles[0].fields["scope"]
        del self.cpu.fields["sample_type"]
        del self.blocked.fields["period_type"]
        self.says("resource 0 has no resource message", "scope 0 has no scope message",
                  "has no sample_type", "which is not whole", "has no period_type")

    def test_missing_lists(self):
        self.data.resource_profiles.append(Message("ResourceProfiles",
                                                   resource=Message("Resource")))
        self.data.resource_profiles.append(Message(
            "ResourceProfiles", resource=Message("Resource"), scope_profiles=[
                Message("ScopeProfiles", scope=Message("InstrumentationScope"))]))
        self.says("resource 2 has no scope_profiles", "resource 3 scope 0 has no profiles")

    def test_no_samples(self):
        self.blocked.fields["samples"] = []
        self.also_says("profile 1 has no samples")

    def test_resource_attributes(self):
        attributes = self.group.resource.attributes
        for entry, text in (
                (Message("KeyValue", key_strindex=1, value=make_sample.any_value("x")),
                 "uses key_strindex"),
                (Message("KeyValue", value=make_sample.any_value("x")), "has an empty key"),
                (Message("KeyValue", key="service.name", value=make_sample.any_value("x")),
                 "has the attribute service.name twice"),
                (Message("KeyValue", key="new"), "has no value"),
                (Message("KeyValue", key="new", value=Message("AnyValue", string_value_strindex=1)),
                 "uses string_value_strindex"),
                (Message("KeyValue", key="new", value=Message("AnyValue", array_value=Message(
                    "ArrayValue", values=[Message("AnyValue", string_value_strindex=1)]))),
                 "uses string_value_strindex"),
                (Message("KeyValue", key="new", value=Message("AnyValue", kvlist_value=Message(
                    "KeyValueList", values=[Message("KeyValue", value=make_sample.any_value(1))]))),
                 "has an empty key"),
                (Message("KeyValue", key="process.executable.path", value=make_sample.any_value(1)),
                 "process.executable.path is not a string_value")):
            with self.subTest(text):
                attributes.append(entry)
                self.says(text)
                attributes.pop()

    def test_scope_attributes(self):
        self.group.scope_profiles[0].scope.fields["attributes"] = [
            Message("KeyValue", value=make_sample.any_value("x"))]
        self.says("scope 0 attribute 0 has an empty key")

    # profiles

    def test_sample_type(self):
        self.blocked.sample_type.fields["unit_strindex"] = 0
        self.says("sample type off_cpu/, which is not whole")

    def test_period(self):
        self.cpu.fields["period"] = -1
        self.says("negative period")
        self.cpu.fields["period"] = 0
        self.says("both or neither", "does not say their period")
        self.cpu.fields["period_type"] = Message("ValueType")
        self.says("does not say their period")
        self.cpu.fields["period"] = 7
        self.says("both or neither")
        self.cpu.fields["period"] = 0
        self.cpu.fields["period_type"] = Message("ValueType", type_strindex=1)
        self.also_says("both or neither")

    def test_period_with_values_and_timestamps(self):
        self.blocked.fields.update(period=1, period_type=self.cpu.period_type)
        self.says("2 values in a profile with a period, not 1")
        for sample in self.blocked.samples:
            for name in ("values", "timestamps_unix_nano"):
                sample.fields[name] = getattr(sample, name)[:1]
        self.assertEqual(self.violations(), [])
        self.blocked.samples.append(self.blocked.samples[0])
        self.assertEqual(self.violations(), [])

    def test_time(self):
        self.cpu.fields["duration_nano"] = 0
        self.also_says("no start or no duration")
        self.setUp()
        self.cpu.fields["time_unix_nano"] = 0
        self.also_says("no start or no duration")

    def test_timestamps(self):
        end = self.cpu.time_unix_nano + self.cpu.duration_nano
        times = self.cpu.samples[0].timestamps_unix_nano
        times[0] = self.cpu.time_unix_nano
        times[1] = end - 1
        self.assertEqual(self.violations(), [])
        times[1] = end
        self.says(f"timestamp {end} outside")
        times[1] = self.cpu.time_unix_nano - 1
        self.says("outside")

    def test_profile_id(self):
        self.cpu.fields["profile_id"] = b""
        self.says("profile_id of 0 bytes")
        self.cpu.fields["profile_id"] = bytes(16)
        self.says("profile_id of zeroes only")
        self.cpu.fields["profile_id"] = self.blocked.profile_id
        self.says("profile 1 has the profile_id of resource 0 scope 0 profile 0")

    def test_original_payload(self):
        self.cpu.fields["original_payload"] = b"x"
        self.says("original payload or its format but not both")
        self.cpu.fields["original_payload_format"] = "gif"
        self.says("unknown format 'gif'")
        self.cpu.fields["original_payload_format"] = "jfr"
        self.assertEqual(self.violations(), [])

    # samples

    def test_shapes(self):
        first, second = self.cpu.samples[:2]
        first.fields["timestamps_unix_nano"] = []
        self.says("neither values nor timestamps", "mixes sample shapes")
        first.fields["values"] = [3]
        self.says("mixes sample shapes: timestamps, value")
        for sample in self.cpu.samples:
            sample.fields.update(values=[2], timestamps_unix_nano=[])
        self.assertEqual(self.violations(), [])
        second.fields["values"] = [1, 1]
        self.says("2 values without timestamps")
        second.fields["values"] = [-1]
        self.says("negative value")

    def test_parallel_arrays(self):
        self.blocked.samples[0].values.append(5)
        self.says("3 values for 2 timestamps")

    def test_identity(self):
        first, second = self.cpu.samples[1:3]
        second.fields.update(stack_index=first.stack_index, link_index=first.link_index,
                             attribute_indices=first.attribute_indices[::-1])
        self.also_says("sample 2 has the identity of sample 1")


class Command(unittest.TestCase):
    def run_on(self, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return subprocess.run(
                [sys.executable, "-B", os.path.join(HERE, "check.py"), file.name],
                capture_output=True, text=True, check=False)

    def test_exit_status(self):
        payload = make_sample.encode(make_sample.build())
        good = self.run_on(wire.frame(payload))
        self.assertEqual((good.returncode, good.stdout), (0, ""))
        bad = self.run_on(wire.frame(payload) + wire.frame(payload + b"\x28\x01"))
        self.assertEqual(bad.returncode, 1)
        self.assertIn("payload 1: On the wire", bad.stdout)
        torn = self.run_on(wire.frame(payload)[:-1])
        self.assertEqual(torn.returncode, 1)
        self.assertIn("before its last message", torn.stdout)


if __name__ == "__main__":
    unittest.main()

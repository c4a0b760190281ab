#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the sample model."""

import os
import subprocess
import sys
import tempfile
import unittest

import make_sample
import model
import wire
from wire import Message

HERE = os.path.dirname(os.path.abspath(__file__))


def load(*messages):
    return model.load_payloads([make_sample.encode(message) for message in messages])


class Model(unittest.TestCase):
    def test_samples(self):
        samples = load(make_sample.build(events=3))
        self.assertEqual(len(samples), 9)
        first = samples[0]
        self.assertEqual(first.process.pid, 4711)
        self.assertEqual(first.process.executable, "burn")
        self.assertEqual(first.process.service_name, "svc-burn")
        self.assertEqual(len(first.process.container_id), 64)
        self.assertEqual(first.names, ("alpha", "main"))
        leaf = first.stack[0]
        self.assertEqual((leaf.function, leaf.frame_type, leaf.mapping, leaf.address),
                         ("alpha", "native", "/usr/bin/burn", 0x2000))
        self.assertEqual(first.timestamps, [1_700_000_000_000_000_000 + step * 10_000_000
                                            for step in range(3)])
        self.assertEqual(first.values, [])
        self.assertEqual(len(first.link[0]), 16)
        self.assertEqual((first.thread_id, first.thread_name, first.cpu), (4711, "burn", 1))
        self.assertEqual(first.profile.sample_type, ("samples", "count"))
        self.assertEqual(first.profile.period_type, ("cpu", "nanoseconds"))
        self.assertEqual(first.profile.period, 10101010)
        self.assertIsNone(samples[1].link)
        kernel = next(sample for sample in samples if sample.names[0] == "read_zero")
        self.assertEqual([frame.frame_type for frame in kernel.stack], ["kernel", "native"])
        self.assertEqual(samples[3].names, ("0x8000", "main"))

    def test_helpers(self):
        samples = load(make_sample.build(0, 10), make_sample.build(1, 10))
        self.assertEqual({sample.payload for sample in samples}, {0, 1})
        cpu = model.of_type(samples, "samples")
        self.assertEqual(model.samples_per_process(cpu), {(4711, "burn"): 46, (4712, "copy"): 26})
        shares = model.function_shares(cpu, "burn")
        self.assertAlmostEqual(shares["alpha"], 20 / 46)
        self.assertAlmostEqual(sum(shares.values()), 1)
        whole = model.function_shares(cpu, 4711, inclusive=True)
        self.assertAlmostEqual(whole["main"], 1)
        self.assertEqual(model.stacks(cpu, "copy"), {
            ("gamma", "main"): 20, ("read_zero", "main"): 2, ("0x8000", "main"): 4})
        self.assertEqual(model.stacks(cpu, cpu[0].process)[("beta", "main")], 20)
        self.assertEqual(model.function_shares(cpu, "absent"), {})

    def test_values(self):
        data = make_sample.build()
        sample = data.resource_profiles[0].scope_profiles[0].profiles[0].samples[0]
        sample.fields.update(values=[40], timestamps_unix_nano=[])
        self.assertEqual(load(data)[0].count, 40)

    def test_inline_frames(self):
        data = make_sample.build()
        location = data.dictionary.location_table[4]
        self.assertEqual(data.dictionary.function_table[3].name_strindex,
                         data.dictionary.string_table.index("alpha"))
        location.lines.insert(0, Message("Line", function_index=2, line=12, column=3))
        first = load(data)[0]
        self.assertEqual(first.names, ("read_zero", "alpha", "main"))
        self.assertEqual([frame.inlined for frame in first.stack], [True, False, False])
        self.assertEqual(first.stack[0].line, 12)

    def test_references(self):
        """A Collector may write keys and values of a resource into the string table."""
        data = make_sample.build()
        strings = data.dictionary.string_table
        for attribute in data.resource_profiles[0].resource.attributes:
            strings.append(attribute.fields.pop("key"))
            attribute.fields["key_strindex"] = len(strings) - 1
            if attribute.value.has("string_value"):
                strings.append(attribute.value.string_value)
                attribute.fields["value"] = Message(
                    "AnyValue", string_value_strindex=len(strings) - 1)
        self.assertEqual([sample.process for sample in load(data)],
                         [sample.process for sample in load(make_sample.build())])

    def test_nested_values(self):
        data = make_sample.build()
        data.resource_profiles[0].resource.attributes.append(Message(
            "KeyValue", key="list", value=Message("AnyValue", array_value=Message(
                "ArrayValue", values=[make_sample.any_value(1), make_sample.any_value("a")]))))
        data.resource_profiles[0].resource.attributes.append(Message(
            "KeyValue", key="map", value=Message("AnyValue", kvlist_value=Message(
                "KeyValueList", values=[Message("KeyValue", key="k",
                                                value=make_sample.any_value(True))]))))
        attributes = dict(load(data)[0].process.attributes)
        self.assertEqual(attributes["list"], (1, "a"))
        self.assertEqual(attributes["map"], (("k", True),))

    def test_bad_index(self):
        data = make_sample.build()
        for index in (999, -1):
            data.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].fields[
                "stack_index"] = index
            with self.assertRaisesRegex(wire.WireError, "outside stack_table"):
                load(data)

    def test_command(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(wire.frame(make_sample.encode(make_sample.build(events=50))))
            file.flush()
            out = subprocess.run(
                [sys.executable, "-B", os.path.join(HERE, "model.py"), "-n", "1", file.name],
                capture_output=True, text=True, check=True).stdout
        self.assertRegex(out, r"103 burn \(4711\)\n +48\.5% (alpha|beta)\n")


if __name__ == "__main__":
    unittest.main()

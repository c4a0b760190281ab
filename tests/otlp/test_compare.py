#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison in the Collector lane: order and indices are nothing, the rest counts."""

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
COMPARE = os.path.join(HERE, "..", "collector", "compare.py")


def renumber(data):
    """The same profiles with the string and location tables in the opposite order."""
    dictionary = data.dictionary
    size = {name: len(getattr(dictionary, name)) for name in ("string_table", "location_table")}

    def flip(table, index):
        return size[table] - index if index else 0

    def visit(message):
        for name, value in message.fields.items():
            if name.endswith("_strindex"):
                message.fields[name] = flip("string_table", value)
            elif name == "location_indices":
                message.fields[name] = [flip("location_table", index) for index in value]
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Message):
                    visit(item)
    copy = wire.decode(make_sample.encode(data))[0]
    visit(copy)
    for table in size:
        entries = getattr(copy.dictionary, table)
        copy.dictionary.fields[table] = entries[:1] + entries[:0:-1]
    copy.resource_profiles.reverse()
    copy.resource_profiles[0].resource.attributes.reverse()
    return copy


class Compare(unittest.TestCase):
    def setUp(self):
        self.sent = make_sample.build(events=5)
        self.received = renumber(self.sent)
        self.group = self.received.resource_profiles[0]
        self.profile = self.group.scope_profiles[0].profiles[0]
        self.sample = self.profile.samples[0]

    def run_on(self, sent, received):
        with tempfile.TemporaryDirectory() as directory:
            paths = []
            for name, messages in (("sent", sent), ("received", received)):
                paths.append(os.path.join(directory, name))
                with open(paths[-1], "wb") as file:
                    for message in messages:
                        file.write(wire.frame(make_sample.encode(message)))
            return subprocess.run([sys.executable, "-B", COMPARE, *paths], capture_output=True,
                                  text=True, check=False)

    def differs(self, *words):
        result = self.run_on([self.sent], [self.received])
        self.assertEqual(result.returncode, 1)
        for text in words:
            self.assertIn(text, result.stdout)

    def test_equal(self):
        self.assertNotEqual(make_sample.encode(self.sent), make_sample.encode(self.received))
        self.assertEqual(model.samples_per_process(model.load_payloads(
            [make_sample.encode(self.received)])), {(4711, "burn"): 15, (4712, "copy"): 10})
        result = self.run_on([self.sent], [self.received])
        self.assertEqual((result.returncode, result.stdout),
                         (0, "equal: 25 events, 2 processes\n"))

    def test_payload_borders_do_not_count(self):
        second = make_sample.build(1)
        result = self.run_on([self.sent, second], [second, self.received])
        self.assertEqual(result.returncode, 0)

    def test_lost_event(self):
        self.sample.timestamps_unix_nano.pop()
        self.differs("25 events sent, 24 received", "copy (4712): 10 sent, 9 received")

    def test_doubled_event(self):
        self.sample.timestamps_unix_nano.append(self.sample.timestamps_unix_nano[0])
        self.differs("25 events sent, 26 received", "received only: copy (4712)")

    def test_timestamp(self):
        self.sample.timestamps_unix_nano[0] += 1
        self.differs("timestamp differ", "sent only", "received only")

    def test_value(self):
        self.group.scope_profiles[0].profiles[1].samples[0].values[0] += 1
        self.differs("value differ")

    def test_link(self):
        self.sample.fields["link_index"] = 0
        self.differs("link differ")

    def test_attributes(self):
        self.sample.attribute_indices.pop()
        self.differs("attributes differ")

    def test_function_name(self):
        strings = self.received.dictionary.string_table
        strings[strings.index("gamma")] = "delta"
        self.differs("functions differ", "received only: copy (4712) samples at", "delta < main")

    def test_address(self):
        index = self.received.dictionary.stack_table[self.sample.stack_index].location_indices[0]
        self.received.dictionary.location_table[index].fields["address"] += 1
        self.differs("stack differ")

    def test_resource(self):
        self.group.resource.attributes.pop()
        self.differs("process differ")

    def test_profile(self):
        self.profile.fields["period"] += 1
        self.differs("profile differ")

    def test_nothing_sent(self):
        empty = Message("ProfilesData", dictionary=self.sent.dictionary)
        self.assertIn("nothing was sent", self.run_on([empty], [empty]).stdout)
        self.assertEqual(self.run_on([empty], [empty]).returncode, 1)

    def test_bad_file(self):
        bad = make_sample.build()
        bad.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].fields[
            "stack_index"] = 999
        result = self.run_on([self.sent], [bad])
        self.assertEqual(result.returncode, 1)
        self.assertIn("outside stack_table", result.stdout)


if __name__ == "__main__":
    unittest.main()

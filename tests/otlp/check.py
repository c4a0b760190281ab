#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check OTLP profiles against the rules of the specification and of its strictest receivers."""

import argparse
import re
import sys

import wire

PAYLOAD_LIMIT = 16 << 20
VIOLATION_LIMIT = 1000
BUILD_ID = "process.executable.build_id."

# What both the semantic conventions and the pickiest receiver know.
FRAME_TYPES = frozenset((
    "native", "kernel", "jvm", "perl", "cpython", "php", "phpjit", "ruby", "dotnet", "v8js",
    "beam", "go", "abort-marker"))
ATTRIBUTE_FIELDS = {
    "process.pid": "int_value", "process.executable.name": "string_value",
    "process.executable.path": "string_value", "container.id": "string_value",
    "service.name": "string_value", "thread.id": "int_value", "thread.name": "string_value",
    "cpu.logical_number": "int_value", "profile.frame.type": "string_value",
    "stacktap.function.start": "int_value",
    BUILD_ID + "gnu": "string_value", BUILD_ID + "htlhash": "string_value",
}
PAYLOAD_FORMATS = ("pprof", "jfr", "linux_perf")
TABLES = tuple(name for name, _, _ in wire.TABLE["ProfilesDictionary"].values())


class Checker:
    """Walks one payload; every broken rule becomes one sentence in .violations."""

    def __init__(self, data, named_later=False):
        self.data = data
        self.named_later = named_later
        self.dictionary = data.dictionary
        self.tables = {name: getattr(self.dictionary, name) for name in TABLES}
        self.used = {name: {0} for name in TABLES}
        self.marking = True
        self.violations = []
        self.profile_ids = {}

    def say(self, text):
        if len(self.violations) < VIOLATION_LIMIT:
            self.violations.append(text)

    def index(self, where, table, index):
        """True if the index is inside its table; it is in use if the entry naming it is."""
        if not 0 <= index < len(self.tables[table]):
            self.say(f"{where} is {index} but {table} has {len(self.tables[table])} entries.")
            return False
        if self.marking:
            self.used[table].add(index)
        return True

    def string(self, where, index):
        if not self.index(where, "string_table", index):
            return ""
        return self.tables["string_table"][index]

    # values

    def value(self, where, value):
        """An AnyValue: set, and without references into the string table."""
        if not value.fields:
            self.say(f"{where} has no value.")
        if value.has("string_value_strindex"):
            self.say(f"{where} uses string_value_strindex, which receivers do not resolve.")
        for number, item in enumerate(value.array_value.values):
            self.value(f"{where}[{number}]", item)
        if value.has("kvlist_value"):
            self.inline_attributes(where, value.kvlist_value.values)

    def typed(self, where, key, value):
        expected = ATTRIBUTE_FIELDS.get(key)
        if expected and value.fields and not value.has(expected):
            self.say(f"{where}: {key} is not a {expected}.")

    def inline_attributes(self, where, attributes):
        seen = set()
        for number, attribute in enumerate(attributes):
            here = f"{where} attribute {number}"
            if attribute.key_strindex:
                self.say(f"{here} uses key_strindex, which receivers do not resolve.")
            elif not attribute.key:
                self.say(f"{here} has an empty key.")
            elif attribute.key in seen:
                self.say(f"{where} has the attribute {attribute.key} twice.")
            seen.add(attribute.key)
            self.value(here, attribute.value)
            self.typed(where, attribute.key, attribute.value)

    def attributes(self, where, indices):
        """The attributes of an index list as a dict: in range, not null, keys unique."""
        found = {}
        table = self.tables["attribute_table"]
        for index in indices:
            if not self.index(f"{where} attribute index", "attribute_table", index):
                continue
            if index == 0:
                self.say(f"{where} refers to the null attribute 0.")
                continue
            strings = self.tables["string_table"]
            number = table[index].key_strindex
            key = strings[number] if 0 <= number < len(strings) else ""
            if key in found:
                self.say(f"{where} has the attribute {key} twice.")
            found[key] = table[index].value
        return found

    # dictionary

    def zero_entries(self):
        for name, entries in self.tables.items():
            if not entries:
                self.say(f"{name} is empty; entry 0 must be there.")
                continue
            zero = entries[0]
            if isinstance(zero, str):
                if zero:
                    self.say(f"{name}[0] is {zero!r}, not the empty string.")
            elif any(zero.fields.values()):
                self.say(f"{name}[0] is not the zero value.")
            if name == "link_table" and not isinstance(zero, str) and \
                    (zero.trace_id or zero.span_id):
                self.say("link_table[0] has ids; it must have none of any length.")

    def mapping(self, number, mapping):
        where = f"mapping_table[{number}]"
        name = self.string(f"{where} filename_strindex", mapping.filename_strindex)
        if mapping.memory_start >= mapping.memory_limit:
            self.say(f"{where} starts at {mapping.memory_start:#x}, "
                     f"not below its limit {mapping.memory_limit:#x}.")
        attributes = self.attributes(where, mapping.attribute_indices)
        digest = attributes.get(BUILD_ID + "htlhash")
        file_backed = bool(name) and not name.startswith("[")
        if digest is None:
            if file_backed:
                self.say(f"{where} ({name}) is a file but has no {BUILD_ID}htlhash.")
            elif attributes:
                self.say(f"{where} has attributes but no {BUILD_ID}htlhash among them.")
        elif not re.fullmatch("[0-9a-f]{32}", digest.string_value):
            self.say(f"{where} htlhash {digest.string_value!r} is not 32 lower-case hex digits.")
        gnu = attributes.get(BUILD_ID + "gnu")
        if gnu is not None and not re.fullmatch("([0-9a-f]{2})+", gnu.string_value):
            self.say(f"{where} GNU build id {gnu.string_value!r} is not hex digits.")

    def location(self, number, location):
        where = f"location_table[{number}]"
        if self.index(f"{where} mapping_index", "mapping_table", location.mapping_index) \
                and location.mapping_index:
            mapping = self.tables["mapping_table"][location.mapping_index]
            if not mapping.memory_start <= location.address < mapping.memory_limit:
                self.say(f"{where} address {location.address:#x} is outside its mapping.")
        for row, line in enumerate(location.lines):
            here = f"{where} line {row}"
            if self.index(f"{here} function_index", "function_table", line.function_index) \
                    and line.function_index == 0:
                self.say(f"{here} refers to the null function 0.")
            if line.line < 0 or line.column < 0:
                self.say(f"{here} has a negative line or column.")
        attributes = self.attributes(where, location.attribute_indices)
        start = attributes.get("stacktap.function.start")
        if start is not None and location.lines and not self.named_later:
            self.say(f"{where} has a name, and a function's start for want of one.")
        if start is not None and (not location.mapping_index or start.int_value > location.address):
            self.say(f"{where} address {location.address:#x} is outside its function.")
        frame_type = attributes.get("profile.frame.type")
        if frame_type is None:
            self.say(f"{where} has no profile.frame.type.")
        elif frame_type.string_value not in FRAME_TYPES:
            self.say(f"{where} has the unknown frame type {frame_type.string_value!r}.")

    def function(self, number, function):
        where = f"function_table[{number}]"
        names = [self.string(f"{where} {field}", getattr(function, field)) for field in
                 ("name_strindex", "system_name_strindex", "filename_strindex")]
        if not any(names):
            self.say(f"{where} has neither a name nor a file name.")
        if function.start_line < 0:
            self.say(f"{where} has a negative start line.")

    def link(self, number, link):
        if len(link.trace_id) != 16 or len(link.span_id) != 8:
            self.say(f"link_table[{number}] has ids of {len(link.trace_id)} and "
                     f"{len(link.span_id)} bytes, not 16 and 8.")
        elif not any(link.trace_id) or not any(link.span_id):
            self.say(f"link_table[{number}] has an id of zeroes only.")

    def attribute(self, number, attribute):
        where = f"attribute_table[{number}]"
        key = self.string(f"{where} key_strindex", attribute.key_strindex)
        self.index(f"{where} unit_strindex", "string_table", attribute.unit_strindex)
        if not key:
            self.say(f"{where} has an empty key.")
        self.value(where, attribute.value)
        self.typed(where, key, attribute.value)

    def stack(self, number, stack):
        for index in stack.location_indices:
            if self.index(f"stack_table[{number}] location index", "location_table", index) \
                    and index == 0:
                self.say(f"stack_table[{number}] refers to the null location 0.")

    def duplicates(self):
        """Identity is by value all the way down, whatever indices an entry got there by."""
        same = {}

        def number(table, index):
            return same[table][index] if 0 <= index < len(same[table]) else -1

        def attributes(indices):
            return frozenset(number("attribute_table", index) for index in indices)

        def text(index):
            return number("string_table", index)

        identities = (
            ("string_table", lambda entry: entry),
            ("attribute_table", lambda entry: (
                text(entry.key_strindex), repr(entry.value), text(entry.unit_strindex))),
            ("link_table", lambda entry: (entry.trace_id, entry.span_id)),
            ("function_table", lambda entry: (
                text(entry.name_strindex), text(entry.system_name_strindex),
                text(entry.filename_strindex), entry.start_line)),
            ("mapping_table", lambda entry: (
                entry.memory_start, entry.memory_limit, entry.file_offset,
                text(entry.filename_strindex), attributes(entry.attribute_indices))),
            ("location_table", lambda entry: (
                number("mapping_table", entry.mapping_index), entry.address,
                tuple((number("function_table", line.function_index), line.line, line.column)
                      for line in entry.lines), attributes(entry.attribute_indices))),
            ("stack_table", lambda entry: tuple(
                number("location_table", index) for index in entry.location_indices)),
        )
        for table, identity in identities:
            first = {}
            same[table] = []
            for index, entry in enumerate(self.tables[table]):
                original = first.setdefault(identity(entry), index)
                same[table].append(original)
                if original != index:
                    self.say(f"{table}[{index}] is the same as {table}[{original}].")

    def entries(self):
        """Check all entries, users before what they use; the rest is what nothing leads to."""
        for table, visit in (("stack_table", self.stack), ("location_table", self.location),
                             ("mapping_table", self.mapping), ("function_table", self.function),
                             ("attribute_table", self.attribute), ("link_table", self.link)):
            for index, entry in enumerate(self.tables[table]):
                if index:
                    self.marking = index in self.used[table]
                    visit(index, entry)
        for table in TABLES:
            for index in range(len(self.tables[table])):
                if index not in self.used[table]:
                    self.say(f"{table}[{index}] is not used by anything.")

    # profiles

    def value_type(self, where, message, name):
        if not message.has(name):
            self.say(f"{where} has no {name}; receivers want it even when it is empty.")
        value_type = getattr(message, name)
        return (self.string(f"{where} {name} type", value_type.type_strindex),
                self.string(f"{where} {name} unit", value_type.unit_strindex))

    def profile(self, where, profile):
        sample_type = self.value_type(where, profile, "sample_type")
        period_type = self.value_type(where, profile, "period_type")
        if not all(sample_type):
            self.say(f"{where} has the sample type {'/'.join(sample_type)}, which is not whole.")
        if profile.period < 0:
            self.say(f"{where} has the negative period {profile.period}.")
        if bool(profile.period) != all(period_type) or any(period_type) != all(period_type):
            self.say(f"{where} has the period {profile.period} of type {'/'.join(period_type)}; "
                     "both or neither must be set.")
        if sample_type == ("samples", "count") and not profile.period:
            self.say(f"{where} counts samples but does not say their period.")
        if not profile.time_unix_nano or not profile.duration_nano:
            self.say(f"{where} has no start or no duration.")
        self.profile_id(where, profile.profile_id)
        self.attributes(where, profile.attribute_indices)
        if bool(profile.original_payload) != bool(profile.original_payload_format):
            self.say(f"{where} has an original payload or its format but not both.")
        if profile.original_payload_format and \
                profile.original_payload_format not in PAYLOAD_FORMATS:
            self.say(f"{where} has the unknown format {profile.original_payload_format!r}.")
        if not profile.samples:
            self.say(f"{where} has no samples.")
        shapes = set()
        identities = {}
        for number, sample in enumerate(profile.samples):
            here = f"{where} sample {number}"
            shapes.add(self.sample(here, sample, profile))
            identity = (sample.stack_index, frozenset(sample.attribute_indices), sample.link_index)
            # values of a period stand in Samples of their own
            if not (profile.period and sample.values) and identities.setdefault(identity, number) != number:
                self.say(f"{here} has the identity of sample {identities[identity]}.")
        if len(shapes) > 1:
            self.say(f"{where} mixes sample shapes: {', '.join(sorted(shapes))}.")

    def profile_id(self, where, profile_id):
        if len(profile_id) != 16:
            self.say(f"{where} has a profile_id of {len(profile_id)} bytes, not 16.")
        elif not any(profile_id):
            self.say(f"{where} has a profile_id of zeroes only.")
        elif self.profile_ids.setdefault(profile_id, where) != where:
            self.say(f"{where} has the profile_id of {self.profile_ids[profile_id]}.")

    def sample(self, where, sample, profile):
        values, times = sample.values, sample.timestamps_unix_nano
        self.index(f"{where} stack_index", "stack_table", sample.stack_index)
        self.index(f"{where} link_index", "link_table", sample.link_index)
        self.attributes(where, sample.attribute_indices)
        start, end = profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano
        for time in times:
            if not start <= time < end:
                self.say(f"{where} has the timestamp {time} outside [{start}, {end}).")
        if any(value < 0 for value in values):
            self.say(f"{where} has a negative value.")
        if not values and not times:
            self.say(f"{where} has neither values nor timestamps.")
            return "nothing"
        if not values:
            return "timestamps"
        if not times:
            if len(values) != 1:
                self.say(f"{where} has {len(values)} values without timestamps, not 1.")
            return "value"
        if len(values) != len(times):
            self.say(f"{where} has {len(values)} values for {len(times)} timestamps.")
        if profile.period and len(values) != 1:
            self.say(f"{where} has {len(values)} values in a profile with a period, not 1.")
        return "values and timestamps"

    def run(self):
        if not self.data.has("dictionary"):
            self.say("The payload has no dictionary.")
        if not self.data.resource_profiles:
            self.say("The payload has no resource_profiles.")
        self.zero_entries()
        for number, group in enumerate(self.data.resource_profiles):
            where = f"resource {number}"
            if not group.has("resource"):
                self.say(f"{where} has no resource message.")
            self.inline_attributes(where, group.resource.attributes)
            if not group.scope_profiles:
                self.say(f"{where} has no scope_profiles.")
            for row, scope in enumerate(group.scope_profiles):
                here = f"{where} scope {row}"
                if not scope.has("scope"):
                    self.say(f"{here} has no scope message.")
                self.inline_attributes(here, scope.scope.attributes)
                if not scope.profiles:
                    self.say(f"{here} has no profiles.")
                for column, profile in enumerate(scope.profiles):
                    self.profile(f"{here} profile {column}", profile)
        self.duplicates()
        self.entries()
        return self.violations


def check(payload, named_later=False):
    """All violations in one raw payload, as sentences; `named_later`: names have been added to it since."""
    try:
        data, complaints = wire.decode(payload)
    except wire.WireError as error:
        return [f"The payload cannot be decoded: {error}."]
    violations = [f"On the wire, {complaint}." for complaint in complaints]
    if len(payload) > PAYLOAD_LIMIT:
        violations.append(f"The payload has {len(payload)} bytes, over {PAYLOAD_LIMIT}.")
    return violations + Checker(data, named_later).run()


def main():
    parser = argparse.ArgumentParser(description="check OTLP profiles against every known rule")
    parser.add_argument("--named-later", action="store_true", help="`stacktap symbolize' wrote them")
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args()
    status = 0
    for path in args.files:
        try:
            payloads = wire.read(path)
        except (OSError, wire.WireError) as error:
            print(f"{path}: {error}")
            status = 1
            continue
        for number, payload in enumerate(payloads):
            violations = check(payload, args.named_later)
            for violation in violations:
                print(f"{path}: payload {number}: {violation}")
            status |= bool(violations)
    return status


if __name__ == "__main__":
    sys.exit(main())

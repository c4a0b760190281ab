#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encode a synthetic window and read it back with the tests' own decoder: TAP on stdout.

usage: otlp_file.py ENCODE_FILE DIRECTORY
"""

import collections
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, os.pardir, "otlp"))

import check  # noqa: E402
import model  # noqa: E402
import wire  # noqa: E402

RESULTS = []


def tell(good, name, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - encode: {name}")
    if not good and detail:
        print("\n".join(f"# {line}" for line in str(detail).splitlines()[:20]))


def encode(program, path, max_bytes, with_cpu, *more):
    """What encode_file said: payload sizes, and the facts by event."""
    out = subprocess.run([program, path, str(max_bytes), str(with_cpu), *more], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    sizes, facts, span = [], {}, None
    for line in out.splitlines():
        word, *rest = line.split()
        if word == "payload":
            sizes.append(int(rest[0]))
        elif word == "start":
            span = int(rest[0]), int(rest[2])
        else:
            facts[rest[0]] = {key: int(value) for key, value in zip(rest[1::2], rest[2::2])}
    return sizes, facts, span


def attribute_sums(payloads):
    """Attributes of all Profiles: event -> name -> sum, and what is no number as a set."""
    sums = collections.defaultdict(collections.Counter)
    words = collections.defaultdict(lambda: collections.defaultdict(set))
    for number, payload in enumerate(payloads):
        data = wire.decode(payload)[0]
        reader = model.Reader(data, number)
        for group in data.resource_profiles:
            for scope in group.scope_profiles:
                for message in scope.profiles:
                    found = dict(reader.attributes(message.attribute_indices))
                    event = found.get("stacktap.event")
                    for key, value in found.items():
                        if isinstance(value, int):
                            sums[event][key] += value
                        else:
                            words[event][key].add(value)
    return sums, words


def orphans(payload):
    """Entries of the tables, but for each one's first, that nothing refers to."""
    data = wire.decode(payload)[0]
    tables = data.dictionary
    used = collections.defaultdict(set)

    def attributes(message):
        used["attribute"].update(message.attribute_indices)

    for group in data.resource_profiles:
        for profile in (profile for scope in group.scope_profiles for profile in scope.profiles):
            attributes(profile)
            for kind in (profile.sample_type, profile.period_type):
                used["string"].update((kind.type_strindex, kind.unit_strindex))
            for sample in profile.samples:
                attributes(sample)
                used["stack"].add(sample.stack_index)
                used["link"].add(sample.link_index)
    for stack in tables.stack_table:
        used["location"].update(stack.location_indices)
    for location in tables.location_table:
        attributes(location)
        used["mapping"].add(location.mapping_index)
        used["function"].update(line.function_index for line in location.lines)
    for function in tables.function_table:
        used["string"].update((function.name_strindex, function.system_name_strindex, function.filename_strindex))
    for mapping in tables.mapping_table:
        attributes(mapping)
        used["string"].add(mapping.filename_strindex)
    for attribute in tables.attribute_table:
        used["string"].update((attribute.key_strindex, attribute.unit_strindex))
    return [f"{name} {index}" for name in ("mapping", "location", "function", "link", "string", "attribute", "stack")
            for index in range(1, len(getattr(tables, name + "_table"))) if index not in used[name]]


def places(payload):
    """Mapping and address of the Locations, as they stand there."""
    return [(location.mapping_index, location.address)
            for location in wire.decode(payload)[0].dictionary.location_table]


def callers(payload):
    """The Stacks' Locations from the outermost one on, as they stand there."""
    return [stack.location_indices[::-1] for stack in wire.decode(payload)[0].dictionary.stack_table]


def check_file(program, directory, title, max_bytes, with_cpu):
    path = os.path.join(directory, title.replace(" ", "-") + ".otlp")
    sizes, facts, span = encode(program, path, max_bytes, with_cpu)
    payloads = wire.read(path)
    violations = [text for payload in payloads for text in check.check(payload)]
    tell(not violations, f"{title}: no rule is broken", "\n".join(violations))
    tell([len(payload) for payload in payloads] == sizes and
         all(size <= max_bytes for size in sizes) and (len(sizes) > 3) == (max_bytes < 100000),
         f"{title}: {len(sizes)} payloads within {max_bytes} bytes", sizes)

    unused = [text for payload in payloads for text in orphans(payload)]
    tell(not unused, f"{title}: each entry of a table is referred to", "\n".join(unused))
    tell(all(order == sorted(order) for order in map(places, payloads)) == (len(sizes) == 1),
         f"{title}: Locations are by address where one payload has them all")
    tell(all(order == sorted(order) for order in map(callers, payloads)) == (len(sizes) == 1),
         f"{title}: and Stacks by their callers")

    samples = model.load_payloads(payloads)
    events = collections.Counter()
    for sample in samples:
        events[dict(sample.profile.attributes)["stacktap.event"]] += len(sample.timestamps)
    tell(events == {name: fact["samples"] for name, fact in facts.items()},
         f"{title}: every timestamp is there once", f"{events} {facts}")
    sums, words = attribute_sums(payloads)
    wrong = [f"{event} {key}: {sums[event]['stacktap.' + key]} is not {value}"
             for event, fact in facts.items() for key, value in fact.items()
             if sums[event]["stacktap." + key] != value]
    tell(not wrong, f"{title}: the Profiles' counts add up to the window's", "\n".join(wrong))
    tell(words["cpu-clock"]["stacktap.source"] == {"cycles"} and
         sums["cpu-clock"]["stacktap.fallback_errno"] > 0 and
         "stacktap.fallback_errno" not in sums["cycles"], f"{title}: the fallback is told")
    tell(all(sample.profile.start == span[0] and
             sample.profile.start + sample.profile.duration == span[1] for sample in samples) and
         all(span[0] <= time < span[1] for sample in samples for time in sample.timestamps),
         f"{title}: times are the window's in Unix time")
    tell(all(sample.timestamps == sorted(sample.timestamps) for sample in samples),
         f"{title}: times of a Sample ascend")
    return samples, facts


def check_content(samples, facts):
    processes = {sample.process.pid: sample.process for sample in samples}
    tell(set(processes) == {0, 100, 200, 300} and
         [processes[pid].executable for pid in (0, 100, 200, 300)] ==
         ["[kernel]", "program", "program", "gone"] and
         processes[200].container_id == "0123456789abcdef" and
         all(dict(process.attributes)["host.name"] == "testhost" and
             process.service_name == "of the environment" and
             dict(process.attributes).get("process.pid", 0) == process.pid
             for process in processes.values()),
         "resources: one per image, and one for the kernel's threads", processes)
    shapes = {(sample.profile.sample_type, sample.profile.period_type, sample.profile.period,
               bool(sample.values)) for sample in samples}
    tell(shapes == {(("samples", "count"), ("cpu", "nanoseconds"), 10000000, False),
                    (("cycles", "count"), ("cycles", "count"), 1, True)} and
         all(len(sample.values) == len(sample.timestamps) == 1 for sample in samples if sample.values),
         "types: fixed periods are times, frequency mode has a value in each Sample", shapes)
    tell(sum(sum(sample.values) for sample in samples) ==
         sum(2 * (1000000 + i) for i in range(4, 400, 5)) * 3,
         "values: the periods of all samples add up")
    mixed = [sample for sample in samples
             if sample.stack and sample.stack[0].frame_type == "kernel" and sample.process.pid]
    tell(mixed and all([frame.frame_type for frame in sample.stack] ==
                       ["kernel"] * 3 + ["native"] * (len(sample.stack) - 3)
                       for sample in mixed) and
         all(frame.mapping == "[kernel]" for sample in mixed for frame in sample.stack[:3]),
         "stacks: kernel frames above user frames, leaf first")
    # the second frame of each half is a return address: one byte into the call
    tell(all(sample.stack[0].address == 0xffffffff81000100 and
             sample.stack[1].address == 0xffffffff81002202 and
             sample.stack[1].function == "f_ffffffff81002203" for sample in mixed),
         "stacks: callers point into the call")
    program = [frame for sample in samples for frame in sample.stack
               if frame.mapping == "/usr/bin/program"]
    tell(program and all(frame.mapping_range == (0x401000, 0x409000, 0x1000) and
                         0x401000 <= frame.address < 0x409000 for frame in program),
         "addresses: ELF virtual ones, whatever the process")
    gone = {frame.mapping for sample in samples if sample.process.pid == 300
            for frame in sample.stack if frame.frame_type == "native"}
    tell(gone == {"[/tmp/gone]", ""},
         "mappings: a file that cannot be read is no file", gone)
    named = sum(sample.count for sample in samples
                if all(frame.function for frame in sample.stack))
    total = sum(sample.count for sample in samples)
    tell(0 < named < total and
         named == sum(dict(attributes)["stacktap.named"] for _, attributes in
                      {(sample.profile.profile_id, sample.profile.attributes)
                       for sample in samples}),
         f"names: {named} of {total} samples have them all, and the Profiles say so")
    ends = collections.Counter()
    flags = collections.Counter()
    for sample in samples:
        ends[sample.attribute("stacktap.user_stack.end")] += sample.count
        flags["stale"] += sample.count * bool(sample.attribute("stacktap.stale"))
        flags["doubtful"] += sample.count * bool(sample.attribute("stacktap.doubtful"))
    # every 60th of 400 in three processes, each twice
    tell(set(ends) == {None, "depth", "stale"} and flags == {"stale": 42, "doubtful": 42} and
         flags["stale"] + flags["doubtful"] == sum(fact["stale"] for fact in facts.values()),
         "marks: cut stacks say why, doubtful samples say so", f"{ends} {flags}")


def check_downsampled(program, directory, whole):
    """One in four of a process' samples, by a reader that knows nothing of the attribute that says so."""
    path = os.path.join(directory, "downsampled.otlp")
    encode(program, path, 65536, 1, "0", "downsample process.pid 100 4")
    payloads = wire.read(path)
    broken = [text for payload in payloads for text in check.check(payload) + orphans(payload)]
    tell(not broken, "downsampled: no rule is broken, each entry of a table is referred to", "\n".join(broken))
    sent = model.load_payloads(payloads)

    def events(samples, is_it):
        return collections.Counter((sample.process.pid, sample.names, sample.attributes, time - sample.profile.start)
                                   for sample in samples
                                   if (sample.process.pid == 100) == is_it for time in sample.timestamps)

    def weight(samples, kind):
        return sum(sum(sample.values) if sample.values else sample.profile.period * len(sample.timestamps)
                   for sample in samples if sample.process.pid == 100 and sample.profile.sample_type[0] == kind)
    some, all_of_it = events(sent, True), events(whole, True)
    tell(events(sent, False) == events(whole, False) and 0 < some.total() < all_of_it.total() and not some - all_of_it,
         f"downsampled: {some.total()} of {all_of_it.total()} samples of one process are sent, all of the others")
    # four standard deviations of what was drawn: which samples that are is fixed
    wrong = [f"{kind}: {weight(sent, kind)} of {weight(whole, kind)}" for kind in ("samples", "cycles")
             if abs(weight(sent, kind) / weight(whole, kind) - 1) > 4 / math.sqrt(some.total() / 5)]
    tell(not wrong, "downsampled: times and counts of cycles are those of all samples", "\n".join(wrong))


def check_repeated(program, directory, whole):
    """Each Function twice: an index and the one before it are the same. Nothing else is another."""
    path = os.path.join(directory, "repeated.otlp")
    encode(program, path, 16000000, 1, "2")
    payload, = wire.read(path)
    dictionary = wire.decode(payload)[0].dictionary
    functions = [tuple(sorted(entry.fields.items())) for entry in dictionary.function_table]
    indices = [line.function_index for location in dictionary.location_table for line in location.lines]
    tell(functions[1::2] == functions[2::2] and len(functions) == 2 * len(set(functions)) - 1 and
         set(indices) == set(range(2, len(functions), 2)),
         f"repeated: {len(functions) // 2} Functions stand twice, and the second of each is referred to")
    found = [text for text in check.check(payload) if not text.startswith("function_table")]
    tell(not found, "repeated: no other rule is broken", "\n".join(found))

    def said(samples):
        return [(sample.process, sample.stack, sample.values, sample.attributes,
                 [time - sample.profile.start for time in sample.timestamps]) for sample in samples]
    tell(said(model.load_payloads([payload])) == said(whole), "repeated: it says the same")


def main():
    program, directory = sys.argv[1:]
    whole, facts = check_file(program, directory, "one payload", 16000000, 1)
    split, _ = check_file(program, directory, "many payloads", 65536, 1)
    check_file(program, directory, "no CPUs", 16000000, 0)
    check_content(whole, facts)

    def content(samples):
        counts = collections.Counter()
        for sample in samples:
            counts[sample.process.pid, sample.names, sample.attributes,
                   sample.profile.sample_type] += sample.count
        return counts
    tell(content(whole) == content(split), "a split window holds the same")
    check_downsampled(program, directory, whole)
    check_repeated(program, directory, whole)
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

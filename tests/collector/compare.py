#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Show that two files of OTLP profiles say the same, whatever order and indices they say it in.

Everything a sample leads to is compared: resource and scope, profile, stack with mappings and
lines, attributes, link, and each timestamp and value, as a multiset of events.
"""

import argparse
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "otlp"))

import model  # noqa: E402
import wire  # noqa: E402

DIFFERENCES = 10

Event = collections.namedtuple("Event", "process profile stack attributes link timestamp value")


class Numbers:
    """Gives equal things the same number: a deep stack is hashed once, not once per event."""

    def __init__(self):
        self.numbers = {}
        self.things = []

    def number(self, thing):
        number = self.numbers.setdefault(thing, len(self.things))
        if number == len(self.things):
            self.things.append(thing)
        return number


def events(samples, numbers):
    """(number of what the sample is, timestamp, value) of each event -> how often it is there."""
    counts = collections.Counter()
    for sample in samples:
        what = numbers.number((sample.process, sample.profile, tuple(sample.stack),
                               sample.attributes, sample.link))
        times = sample.timestamps or [None] * len(sample.values)
        values = sample.values or [None] * len(sample.timestamps)
        if len(times) != len(values):
            raise wire.WireError(f"{len(values)} values for {len(times)} timestamps")
        counts.update((what, time, value) for time, value in zip(times, values))
    return counts


def spell_out(counts, numbers):
    return collections.Counter({Event(*numbers.things[what], time, value): count
                                for (what, time, value), count in counts.items()})


def describe(event):
    stack = " < ".join(frame.function or f"{frame.address:#x}" for frame in event.stack)
    return f"{event.process.executable} ({event.process.pid}) {event.profile.sample_type[0]} " \
           f"at {event.timestamp} value {event.value}: {stack}"


def aspect(counts, name):
    """How often each value of one part of an event is there."""
    out = collections.Counter()
    for event, count in counts.items():
        out[tuple(frame.function for frame in event.stack) if name == "functions" else
            getattr(event, name)] += count
    return out


def compare(sent, received):
    """Sentences on what differs between two lists of samples; none if they are equal."""
    numbers = Numbers()
    sent_events, received_events = events(sent, numbers), events(received, numbers)
    if sent_events == received_events:
        return []
    found = [f"{sent_events.total()} events sent, {received_events.total()} received"]
    before, after = model.samples_per_process(sent), model.samples_per_process(received)
    for key in sorted(set(before) | set(after)):
        if before[key] != after[key]:
            found.append(f"{key[1]} ({key[0]}): {before[key]} sent, {after[key]} received")
    missing = spell_out(sent_events - received_events, numbers)
    extra = spell_out(received_events - sent_events, numbers)
    for name in Event._fields + ("functions",):
        if missing and extra and aspect(missing, name) != aspect(extra, name):
            found.append(f"{name} differ")
    for words, counts in (("sent only", missing), ("received only", extra)):
        for event in list(counts)[:DIFFERENCES]:
            found.append(f"{words}: {describe(event)}")
    return found


def main():
    parser = argparse.ArgumentParser(description="compare two files of OTLP profiles by content")
    parser.add_argument("sent")
    parser.add_argument("received")
    args = parser.parse_args()
    try:
        sent, received = model.load(args.sent), model.load(args.received)
        differences = compare(sent, received)
    except (OSError, wire.WireError) as error:
        print(f"compare: {error}")
        return 1
    for text in differences:
        print(text)
    if not sent:
        print("nothing was sent")
        return 1
    if not differences:
        print(f"equal: {sum(sample.count for sample in sent)} events, "
              f"{len(model.samples_per_process(sent))} processes")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())

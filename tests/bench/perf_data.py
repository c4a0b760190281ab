# SPDX-License-Identifier: Apache-2.0
"""A perf.data whose samples are at addresses of our choosing, in a file that never runs: what perf recorded of a process that has
the file mapped, with the one sample repeated. By the kernel's tools/perf/Documentation/perf.data-file-format.txt and perf_event.h."""

import os
import re
import struct
import subprocess

MMAP2, SAMPLE = 10, 9
FEATURES = 72           # of the header: bits of what follows the data
MAPPED = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
held = mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
while time.process_time() < 0.5:
    pass
"""


def records(data, at, end):
    while at + 8 <= end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        yield kind, data[at:at + size]
        at += max(size, 8)


def segment(path):
    """Address less offset in the file, of its code."""
    text = subprocess.run(["readelf", "-lW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.search(r"LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) .* R E ", text)
    return int(found[2], 16) - int(found[1], 16)


def make(path, addresses, output):
    """Returns None, or why there is none."""
    done = subprocess.run(["perf", "record", "-q", "-N", "-B", "-e", "cpu-clock:u", "-o", output, "--", "/usr/bin/python3", "-c", MAPPED,
                           path], capture_output=True, text=True, check=False)
    if done.returncode or not os.path.exists(output):
        return f"perf record: {done.stderr.strip()}"
    with open(output, "rb") as file:
        data = bytearray(file.read())
    attributes, _, begin, size = struct.unpack_from("<QQQQ", data, 24)
    kinds = struct.unpack_from("<Q", data, attributes + 24)[0]
    # what identifies the event comes first, then the address
    at = 8 + 8 * (kinds >> 16 & 1)
    kept, sample, mapped = bytearray(), None, None
    for kind, record in records(data, begin, begin + size):
        if kind == SAMPLE:
            sample = record
            continue
        kept += record
        if kind == MMAP2 and os.fsencode(path) + b"\0" in record:
            mapped = struct.unpack_from("<QQQ", record, 16)
    if sample is None or mapped is None or not kinds & 1:
        return "perf record: no sample, or no mapping"
    shift = mapped[0] - mapped[2] - segment(path)
    for address in addresses:
        struct.pack_into("<Q", sample, at, address + shift)
        kept += sample
    struct.pack_into("<QQ", data, 40, begin, len(kept))
    struct.pack_into("<QQQQ", data, FEATURES, 0, 0, 0, 0)
    with open(output, "wb") as file:
        file.write(data[:begin] + kept)
    return None

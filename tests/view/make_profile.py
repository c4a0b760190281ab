#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write OTLP profiles like those of a busy host: some processes with threads, kernel, inlined, JIT and unnamed
frames, recursion, load that changes over a minute. Any number of call-tree nodes; the same for the same seed."""

import argparse
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "otlp"))

import make_sample  # noqa: E402
import wire  # noqa: E402
from make_sample import lengthed, varint  # noqa: E402
from wire import Message  # noqa: E402

START = 1_790_000_000_000_000_000
SECONDS = 60
HERTZ = 99
DEPTH = 70

# What a name can be made of by who compiles a program: none of it may do anything.
HOSTILE = [
    "</script><script>window.pwned = 1</script>", "<!--<script>window.pwned = 1", "--><img src=x onerror=pwned=1>",
    "\"];window.pwned = 1;//", "\\\"];window.pwned = 1;//", "'+(window.pwned = 1)+'", "`${window.pwned = 1}`",
    "line\u2028window.pwned = 1\u2029", "]]><script>window.pwned = 1</script>", "</title><svg onload=pwned=1>",
    "__proto__", "constructor", "operator<<(std::ostream&, A const&)", "a;b c;d 99999", "\u202egnp.exe", "&lt;b&gt;&#60;",
    "漢字の関数::呼び出し(なんとか)", "x" * 5000, "tab\tnew\nline\x00nul",
]

PROGRAMS = [
    # name, pid, service, container, threads, share of samples
    ("nginx", 1201, "frontend", "4f1c9a7be0d25c3e", ["nginx", "nginx"], 0.22),
    ("java", 2310, "orders", "9be0d25c3e4f1c9a", ["http-exec-1", "http-exec-2", "GC Thread#0"], 0.40),
    ("postgres", 3055, "database", "", ["postgres", "walwriter"], 0.25),
    ("python3", 4410, "", "", ["python3"], 0.10),
    ("[kernel]", 0, "", "", ["swapper/0", "kworker/1:2"], 0.03),
]

WORDS = ("accept alloc apply arena array batch block buffer build bytes cache call check child clock close code commit "
         "compare compile connect copy cursor decode detach digest dispatch encode entry epoch evict fetch field file "
         "filter find flush frame free handle hash header heap index insert iterate join key lexer limit link list load "
         "lock lookup map match merge method mutex next node object offset open order page parse path plan poll pool "
         "prefix queue read record reduce release resolve row run scan search send shard signal slot sort split stack "
         "store stream string sync table task thread token trace tree tuple update value vector visit wait walk write"
         ).split()


class Host:
    """Tables of one message, each entry made once and found by its key."""

    def __init__(self, seed, hostile):
        self.random = random.Random(seed)
        self.builder = make_sample.Builder()
        self.strings, self.attributes, self.functions, self.locations = {"": 0}, {}, {}, {}
        self.hostile = list(HOSTILE) if hostile else []
        self.stacks = [b""]
        self.samples = []   # of each process, encoded

    def string(self, text):
        text = text.replace("\x00", "")
        table = self.builder.dictionary.string_table
        if text not in self.strings:
            self.strings[text] = len(table)
            table.append(text)
        return self.strings[text]

    def attribute(self, key, value):
        if (key, value) not in self.attributes:
            table = self.builder.dictionary.attribute_table
            self.attributes[key, value] = len(table)
            table.append(Message("KeyValueAndUnit", key_strindex=self.string(key), value=make_sample.any_value(value)))
        return self.attributes[key, value]

    def mapping(self, name):
        table = self.builder.dictionary.mapping_table
        table.append(Message("Mapping", memory_start=0x1000, memory_limit=0x40000000, filename_strindex=self.string(name),
                             attribute_indices=[self.attribute("process.executable.build_id.gnu",
                                                               "%040x" % self.random.getrandbits(160))]))
        return len(table) - 1

    def function(self, name, source):
        if (name, source) not in self.functions:
            table = self.builder.dictionary.function_table
            self.functions[name, source] = len(table)
            table.append(Message("Function", name_strindex=self.string(name), filename_strindex=self.string(source)))
        return self.functions[name, source]

    def location(self, kind, mapping, names, source=""):
        table = self.builder.dictionary.location_table
        lines = [Message("Line", function_index=self.function(name, source), line=self.random.randrange(1, 900))
                 for name in names]
        base = 0xffffffff81000000 if kind == "kernel" else 0x1000
        table.append(Message("Location", mapping_index=mapping, address=base + 16 * len(table), lines=lines,
                             attribute_indices=[self.attribute("profile.frame.type", kind)]))
        return len(table) - 1

    def word(self, count):
        return [self.random.choice(WORDS) for _ in range(count)]

    def name(self, style):
        if self.hostile:
            return self.hostile.pop()
        if style == "c":
            return "_".join(self.word(3))
        if style == "java":
            a, b, c, d = self.word(4)
            return f"com.example.{a}.{b.title()}{c.title()}.{d}"
        a, b, c, d = self.word(4)
        return f"{a}::{b.title()}<{c}::{d.title()}>::{self.random.choice(WORDS)}(unsigned long, std::string const&)"

    def code(self, program):
        """Locations that stacks of a program are made of: where it starts, what it does, the kernel's."""
        libc = self.mapping("/usr/lib/x86_64-linux-gnu/libc.so.6")
        vmlinux = self.mapping("[kernel]")
        kernel = [self.location("kernel", vmlinux, [name]) for name in (
            "entry_SYSCALL_64_after_hwframe", "do_syscall_64", "__x64_sys_read", "vfs_read", "ext4_file_read_iter",
            "copy_page_to_iter", "tcp_sendmsg", "__alloc_pages", "clear_page_erms", "_raw_spin_lock")]
        kernel += [self.location("kernel", vmlinux, [self.name("c")]) for _ in range(40)]
        if program == "[kernel]":
            return [kernel[0]], kernel, kernel
        image = self.mapping(f"/usr/bin/{program}")
        start = [self.location("native", image, ["_start"]), self.location("native", libc, ["__libc_start_main"]),
                 self.location("native", image, ["main"], f"{program}.c")]
        style = "java" if program == "java" else "c" if program in ("nginx", "postgres") else "c++"
        code = [self.location("native", image, [self.name("c" if style == "java" else style)], "src/main.cc")
                for _ in range(120)]
        code += [self.location("native", image, [self.name(style), self.name(style)], "src/inline.h") for _ in range(40)]
        code += [self.location("native", image, []) for _ in range(12)]
        if style == "java":
            jit = self.mapping("[anonymous]")
            code += [self.location("jvm", jit, [self.name(style)], "Order.java") for _ in range(200)]
        return start, code, kernel

    def stack(self, path):
        """Leaf first."""
        packed = b"".join(varint(location) for location in path)
        self.stacks.append(b"\x0a" + lengthed(packed))
        return len(self.stacks) - 1


def grow(host, program, count):
    """A tree of @count nodes: (parent, location) of each, and the leaves."""
    pick = host.random
    start, code, kernel = host.code(program)
    parents, locations, depths = [-1], [start[0]], [1]
    for location in start[1:]:
        parents.append(len(parents) - 1)
        locations.append(location)
        depths.append(len(parents))
    trunk = len(parents) - 1
    known = set()
    in_kernel = [program == "[kernel]"] * len(parents)
    last = trunk
    while len(parents) < count:
        # deeper along the same path most of the time, as programs are
        parent = last if pick.random() < 0.85 and depths[last] < DEPTH else pick.randrange(trunk, len(parents))
        if depths[parent] >= DEPTH:
            parent = trunk
        is_kernel = in_kernel[parent] or (depths[parent] > 12 and pick.random() < 0.04)
        pool = kernel if is_kernel else code
        location = locations[parent] if pick.random() < 0.03 else pool[int(len(pool) * pick.random() ** 2)]
        if (parent, location) in known:
            last = trunk
            continue
        known.add((parent, location))
        parents.append(parent)
        locations.append(location)
        depths.append(depths[parent] + 1)
        in_kernel.append(is_kernel)
        last = len(parents) - 1
    has_child = bytearray(len(parents))
    for parent in parents[1:]:
        has_child[parent] = 1
    leaves = [node for node in range(len(parents)) if not has_child[node]]
    return parents, locations, leaves


def load(name, second):
    """How busy a program is: a burst, a gap, and ten times a second a job that takes a fifth of it."""
    if name == "java" and 20 <= second < 28:
        return 3.0
    if name == "postgres" and 40 <= second < 44:
        return 0.05
    if name == "python3":
        return 5.0 if second % 1.0 < 0.2 else 0.05
    return 1.0


def moments(pick, name, count):
    found = []
    while len(found) < count:
        second = pick.random() * SECONDS
        if pick.random() * 5 < load(name, second):
            found.append(START + int(second * 1e9))
    return sorted(found)


def build(nodes, samples, hostile, seed):
    host = Host(seed, hostile)
    pick = host.random
    weights = sum(share for *_, share in PROGRAMS)
    for name, pid, service, container, threads, share in PROGRAMS:
        parents, locations, leaves = grow(host, name, max(int(nodes * share / weights), 8))
        paths = {}

        def stack_of(node):
            if node not in paths:
                path, at = [], node
                while at >= 0:
                    path.append(locations[at])
                    at = parents[at]
                paths[node] = host.stack(path)
            return paths[node]

        # each leaf once, so that all nodes are there; the rest falls on a few of them
        nodes_hit = list(leaves)
        extra = max(int(samples * share / weights) - len(leaves), 0)
        pick.shuffle(leaves)
        nodes_hit += [leaves[int(len(leaves) * pick.random() ** 6)] for _ in range(extra)]
        pick.shuffle(nodes_hit)
        times = moments(pick, name, len(nodes_hit))
        by_thread = {}
        for node, time in zip(nodes_hit, times):
            thread = int(len(threads) * pick.random() ** 1.5)
            by_thread.setdefault((thread, node), []).append(time)
        encoded = []
        for (thread, node), at in by_thread.items():
            attributes = [host.attribute("thread.id", pid + thread), host.attribute("thread.name", threads[thread])]
            encoded.append(make_sample.encode(make_sample.sample(stack_of(node), attributes, at)))
        builder = host.builder
        profile = Message(
            "Profile", sample_type=Message("ValueType", type_strindex=host.string("samples"),
                                           unit_strindex=host.string("count")),
            period_type=Message("ValueType", type_strindex=host.string("cpu"), unit_strindex=host.string("nanoseconds")),
            time_unix_nano=START, duration_nano=SECONDS * 10 ** 9, period=10 ** 9 // HERTZ,
            attribute_indices=[host.attribute("stacktap.source", "cycles"), host.attribute("stacktap.event", "cpu-clock"),
                               host.attribute("stacktap.samples", len(nodes_hit)),
                               host.attribute("stacktap.complete", len(nodes_hit)),
                               host.attribute("stacktap.named", len(nodes_hit) * 9 // 10)])
        pairs = {"process__pid": pid, "process__executable__name": name}
        if service:
            pairs["service__name"] = service
            pairs["process__linux__cgroup"] = f"0::/system.slice/{service}.service"
        if container:
            pairs["container__id"] = container * 4
        builder.resource([profile], **pairs)
        host.samples.append(encoded)
    return host


def encode(host):
    """As make_sample.encode() has it, with the long lists put in as they are."""
    dictionary = make_sample.encode(host.builder.dictionary)
    # the Stack that is none is in the table already
    dictionary += b"".join(b"\x3a" + lengthed(stack) for stack in host.stacks[1:])
    out = [b"\x12" + lengthed(dictionary)]
    for group, samples in zip(host.builder.data.resource_profiles, host.samples):
        profile = group.scope_profiles[0].profiles[0]
        body = make_sample.encode(profile) + b"".join(b"\x12" + lengthed(sample) for sample in samples)
        scope = b"\x12" + lengthed(body)
        out.append(b"\x0a" + lengthed(b"\x0a" + lengthed(make_sample.encode(group.resource)) + b"\x12" + lengthed(scope)))
    return b"".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20000)
    parser.add_argument("--samples", type=int, default=25000)
    parser.add_argument("--hostile", action="store_true", help="functions with names that would do harm")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("file")
    args = parser.parse_args()
    # who waits for the file finds all of it
    with open(args.file + ".partial", "wb") as file:
        file.write(wire.frame(encode(build(args.nodes, args.samples, args.hostile, args.seed))))
    os.rename(args.file + ".partial", args.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())

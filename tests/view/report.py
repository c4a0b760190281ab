#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables and trees of `stacktap report`, held against what another decoder counts in the same file. TAP.

usage: report.py STACKTAP DIRECTORY
"""

import collections
import json
import math
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "otlp")]

import diff  # noqa: E402
import make_sample  # noqa: E402
import wire  # noqa: E402
from wire import Message  # noqa: E402


def stacks_of(path):
    """Samples by stack, callers first."""
    found = collections.Counter()
    for payload in wire.read(path):
        data = wire.decode(payload)[0]
        tables = data.dictionary
        names = [tuple(tables.string_table[tables.function_table[line.function_index].name_strindex]
                       for line in location.lines) for location in tables.location_table]
        for group in data.resource_profiles:
            for sample in group.scope_profiles[0].profiles[0].samples:
                stack = [name for index in tables.stack_table[sample.stack_index].location_indices for name in names[index]]
                found[tuple(reversed(stack))] += len(sample.timestamps_unix_nano)
    return found


def paths_of(said):
    """{path from the root of the tree on: (percent, samples)}"""
    nodes = {}
    for node in said["nodes"]:
        above = nodes[node["parent"]][0] if node["parent"] >= 0 else ()
        nodes[node["node"]] = (above + (node["name"],), round(node["total_percent"], 3), node["samples"])
    return {path: rest for path, *rest in nodes.values()}


def write_inlined(path):
    """10 samples of main > outer > outer, inner of x.h inlined in both calls of outer, at two lines; 5 of outer alone."""
    builder = make_sample.Builder()
    tables = builder.dictionary

    def function(name, source, start):
        return builder.intern("function_table", Message("Function", name_strindex=builder.string(name), start_line=start,
                                                        filename_strindex=builder.string(source)))

    def location(address, *lines):
        tables.location_table.append(Message("Location", address=address, lines=[
            Message("Line", function_index=function(*what), line=line, column=3) for line, what in lines]))
        return len(tables.location_table) - 1
    inner, outer, main = ("inner", "/src/x.h", 5), ("outer", "/src/x.c", 10), ("main", "/src/x.c", 30)
    first = location(0x1000, (7, inner), (12, outer))
    second = location(0x1010, (8, inner), (13, outer))
    last = location(0x2000, (31, main))
    alone = location(0x1020, (14, outer))
    start = 1_790_000_000_000_000_000
    thread = builder.attributes(thread__id=7, thread__name="x")
    samples = [make_sample.sample(builder.stack(first, second, last), thread, range(start, start + 10)),
               make_sample.sample(builder.stack(alone, last), thread, range(start + 10, start + 15))]
    builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
                              time_unix_nano=start, duration_nano=10**9, period=10**7, profile_id=bytes([1]) * 16,
                              period_type=builder.value_type("cpu", "nanoseconds"))],
                     process__pid=7, process__executable__name="x")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def check_inlined(tap, stacktap, work):
    path, folded = os.path.join(work, "inlined.otlp"), os.path.join(work, "inlined.folded")
    write_inlined(path)

    def ask(command, *options):
        return subprocess.run([stacktap, command, *options, path], check=True, capture_output=True, text=True).stdout

    def rows(*options):
        functions = json.loads(ask("report", "--json", *options))["events"][0]["processes"][0]["functions"]
        return {(one["name"], *((one["source"], one["line"]) if "line" in one else ())):
                (one["self_samples"], one["total"] // 10**7) for one in functions}

    def stacks(*options):
        ask("convert", "-o", folded, *options)
        with open(folded, encoding="utf-8") as file:
            return dict(line.rstrip("\n").rsplit(" ", 1) for line in file)
    tap.same("inlined functions: each stack counts once in total, however often a function is in it", rows(),
             {("inner",): (10, 10), ("outer",): (5, 15), ("main",): (0, 15)})
    tap.same("--inline is the default", rows("--no-inline", "--inline"), rows())
    tap.same("--no-inline: what is inlined is the function that it is in", rows("--no-inline"),
             {("outer",): (15, 15), ("main",): (0, 15)})
    tap.same("--lines: a row for each", rows("--lines"), {
        ("inner", "/src/x.h", 7): (10, 10), ("inner", "/src/x.h", 8): (0, 10), ("outer", "/src/x.c", 12): (0, 10),
        ("outer", "/src/x.c", 13): (0, 10), ("outer", "/src/x.c", 14): (5, 5), ("main", "/src/x.c", 31): (0, 15)})
    tap.same("--lines --no-inline: where the calls are", rows("--lines", "--no-inline"), {
        ("outer", "/src/x.c", 12): (10, 10), ("outer", "/src/x.c", 13): (0, 10), ("outer", "/src/x.c", 14): (5, 5),
        ("main", "/src/x.c", 31): (0, 15)})
    tap.check("--lines as text", "  66.67 % ± 31.76   66.67 % ± 31.76  [u] inner  x.h:7\n" in ask("report", "--lines"), ask("report", "--lines"))
    said = json.loads(ask("report", "--json", "--by", "line"))
    tap.same("by line: self and total", {(row["source"], row["line"]): (round(row["self"]["percent"]), round(row["total"]["percent"]))
                                         for row in said["rows"]},
             {("/src/x.h", 7): (67, 67), ("/src/x.h", 8): (0, 67), ("/src/x.c", 12): (0, 67), ("/src/x.c", 13): (0, 67),
              ("/src/x.c", 14): (33, 33), ("/src/x.c", 31): (0, 100)})
    tap.same("by line --filter", [(row["source"], row["line"], round(row["total"]["percent"])) for row in
                                  json.loads(ask("report", "--json", "--by", "line", "--filter", r"x\.c:1[34]$"))["rows"]],
             [("/src/x.c", 14, 33), ("/src/x.c", 13, 67)])
    tap.same("by line --filter by a function that is in it", [row["line"] for row in json.loads(
        ask("report", "--json", "--by", "line", "--filter", "^inner$"))["rows"]], [7, 8])
    tap.check("by line as text", "[u] /src/x.h:7\n" in ask("report", "--by", "line"), ask("report", "--by", "line"))
    tap.same("by line --no-inline: where the calls are",
             {row["line"]: round(row["total"]["percent"]) for row in json.loads(ask("report", "--json", "--by", "line", "--no-inline"))["rows"]},
             {12: 67, 13: 67, 14: 33, 31: 100})
    tap.same("by function, the same totals", {row["name"]: (round(row["self"]["percent"]), round(row["total"]["percent"]))
                                              for row in json.loads(ask("report", "--json", "--by", "function"))["rows"]},
             {"inner": (67, 67), "outer": (33, 100), "main": (0, 100)})
    for options, chain in (((), ("main", "outer", "inner", "outer", "inner")), (("--no-inline",), ("main", "outer", "outer"))):
        paths = paths_of(json.loads(ask("report", "--json", "--tree", "--percent-limit", "0", *options)))
        tap.same(f"the tree has one path {' '.join(options)}", {path: samples for path, (_, samples) in paths.items()},
                 {chain[:1]: 15, chain[:2]: 15, **{chain[:i]: 10 for i in range(3, len(chain) + 1)}})
        names = {tuple(name.removesuffix("_[i]") for name in stack.split(";")[1:]): int(count)
                 for stack, count in stacks(*options).items()}
        tap.same(f"folded stacks add up to the samples {' '.join(options)}", names, {chain: 10, ("main", "outer"): 5})
    tap.check("flamegraph takes --no-inline", "inner" not in ask("flamegraph", "--svg", "-o", "-", "--no-inline") and
              "inner" in ask("flamegraph", "--svg", "-o", "-"))


def check_relative(tap, stacktap, work):
    """Two programs whose compilers were told of main.c alone, and of /src/a.h."""
    path, builder, start = os.path.join(work, "relative.otlp"), make_sample.Builder(), 1_790_000_000_000_000_000
    tables, samples = builder.dictionary, []
    thread = builder.attributes(thread__id=7, thread__name="x")
    for i, program in enumerate(("/bin/one", "/bin/two")):
        image = builder.mapping(program, 0x1000 + 0x10000 * i, 0x2000 + 0x10000 * i)
        for k, source in enumerate(("main.c", "/src/a.h")):
            function = builder.intern("function_table", Message("Function", name_strindex=builder.string("main"),
                                                                filename_strindex=builder.string(source)))
            tables.location_table.append(Message("Location", address=0x1000 + 0x10000 * i + k, mapping_index=image,
                                                 lines=[Message("Line", function_index=function, line=10)]))
            samples.append(make_sample.sample(builder.stack(len(tables.location_table) - 1), thread,
                                              [start + n * 10**9 + k for n in range(40 + 20 * i + 10 * k)]))
    builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples, time_unix_nano=start,
                              duration_nano=10**11, period=10**7, profile_id=bytes([1]) * 16,
                              period_type=builder.value_type("cpu", "nanoseconds"))], process__pid=7, process__executable__name="x")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))

    def ask(*options):
        return subprocess.run([stacktap, "report", "--by", "line", *options, path], check=True, capture_output=True, text=True).stdout
    tap.same("a source without a path is that of its object", [
        (row["source"], row["line"], row.get("file"), row["self"]["weight"] // 10**7) for row in json.loads(ask("--json"))["rows"]],
             [("/src/a.h", 10, None, 120), ("main.c", 10, "/bin/two", 60), ("main.c", 10, "/bin/one", 40)])
    tap.check("as text", "[u] main.c:10  /bin/two\n" in ask() and "[u] /src/a.h:10\n" in ask(), ask())
    tap.same("--filter by the object of a line", [(row["source"], row.get("file")) for row in json.loads(ask("--json", "--filter", "^/bin/one$"))["rows"]],
             [("/src/a.h", None), ("main.c", "/bin/one")])


def check_self(tap, stacktap, work):
    """A function that is a leaf at some times and calls another one at others."""
    path, builder, start = os.path.join(work, "self.otlp"), make_sample.Builder(), 1_790_000_000_000_000_000
    leaf, main = (builder.location(name, address) for name, address in (("leaf", 0x1000), ("main", 0x2000)))
    thread = builder.attributes(thread__id=7, thread__name="x")
    alone = [start + i * 10**7 for i in range(6000) if i // 100 % 3 == 0]
    both = [start + i * 10**7 for i in range(6000) if i // 100 % 3 > 0]
    builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), time_unix_nano=start, duration_nano=6 * 10**10,
                              samples=[make_sample.sample(builder.stack(main), thread, alone), make_sample.sample(builder.stack(leaf, main), thread, both)],
                              period=10**7, profile_id=bytes([1]) * 16, period_type=builder.value_type("cpu", "nanoseconds"))],
                     process__pid=7, process__executable__name="x")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))

    def ask(*options):
        return subprocess.run([stacktap, "report", *options, path], check=True, capture_output=True, text=True).stdout
    rows = {row["name"]: row["self"] for row in json.loads(ask("--json", "--by", "function"))["rows"]}
    nodes = {node["name"]: (node["self_percent"], node["self_error95"], node.get("error95")) for node in json.loads(ask("--json", "--tree"))["nodes"]}
    tap.same("self of a function that is a leaf at times has the error that it has in the table", nodes,
             {"main": (rows["main"]["percent"], rows["main"]["error95"], None), "leaf": (*[rows["leaf"][key] for key in ("percent", "error95")],) +
              (rows["leaf"]["error95"],)})
    tap.check("which is of samples that depend on each other", rows["main"]["phi"] > 10, rows)
    tap.check("as text", f" 33.33 % ± {rows['main']['error95']:.2f}" in ask("--tree").splitlines()[1], ask("--tree"))


def write_lines(path, has_times=True, bursts=False):
    """A process of one function of three lines, each of which runs for half a second at a time, and another process."""
    builder, start = make_sample.Builder(), 1_790_000_000_000_000_000
    tables, image = builder.dictionary, builder.mapping("/bin/lines", 0x1000, 0x9000)
    function = builder.intern("function_table", Message("Function", name_strindex=builder.string("busy"), start_line=9,
                                                        filename_strindex=builder.string("/no/such/busy.c")))
    times = [[], [], []]
    for i in range(6000):
        times[i * i // 40000 % 3].append(start + (i // 1500 * 10**7 + i if bursts else i * 10**7))
    if bursts:
        # a line of fewer than 10 samples
        times.append(times[0][::len(times[0]) // 7])
    thread, samples = builder.attributes(thread__id=7, thread__name="lines"), []
    for i, at in enumerate(times):
        # two addresses of each line
        for half in (0, 1):
            tables.location_table.append(Message("Location", address=0x1000 + 32 * i + half, mapping_index=image,
                                                 lines=[Message("Line", function_index=function, line=10 + i)]))
            samples.append(make_sample.sample(builder.stack(len(tables.location_table) - 1), thread,
                                              at[half::2] if has_times else (), () if has_times else (len(at[half::2]),)))

    def add(pid, name, samples):
        builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples, time_unix_nano=start,
                                  duration_nano=6 * 10**10, period=10**7, profile_id=bytes([pid]) * 16,
                                  period_type=builder.value_type("cpu", "nanoseconds"))], process__pid=pid, process__executable__name=name)
    add(7, "lines", samples)
    if not bursts:
        add(8, "other", [make_sample.sample(builder.stack(builder.location("other", 0x5000)), builder.attributes(thread__id=8, thread__name="o"),
                                            [start + i * 10**7 for i in range(6000) if i // 500 % 2])])
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def check_annotate(tap, stacktap, work):
    path = os.path.join(work, "lines.otlp")

    def ask(*options):
        return subprocess.run([stacktap, *options, path], check=True, capture_output=True, text=True).stdout
    write_lines(path)
    said = json.loads(ask("annotate", "--json", "busy"))
    (process,) = [process for process in json.loads(ask("report", "--json", "--lines"))["events"][0]["processes"] if process["name"] == "lines"]
    (whole,) = [row["self"] for row in json.loads(ask("report", "--json", "--by", "function"))["rows"] if row["name"] == "busy"]
    keys = ("percent", "error95", "phi")

    def rounded(row, prefix=""):
        return [float(f"{row[prefix + key]:.5g}") for key in keys]
    tap.same("annotate: the function's share and its error are those of the table", rounded(said), rounded(whole))
    tap.same("annotate: those of its lines are those of --lines", {row["line"]: rounded(row) for row in said["sections"][0]["rows"]},
             {row["line"]: rounded(row, "self_") for row in process["functions"]})
    tap.check("annotate: they are of samples that depend on each other", whole["phi"] > 5 and
              all(row["phi"] > 2 for row in said["sections"][0]["rows"]), said)
    text, row = ask("annotate", "busy"), said["sections"][0]["rows"][0]
    tap.check("annotate: as text", f", {whole['percent']:.2f} % ± {whole['error95']:.2f} of all" in text and
              f"\n {row['percent']:6.2f} % ± {row['error95']:<5.2f} {row['samples']:>8}      10  [not here]\n" in text and
              "\n PERCENT          SAMPLES    LINE  " in text, text)
    write_lines(path, has_times=False)
    said = json.loads(ask("annotate", "--json", "busy"))
    tap.check("annotate: without times they are of independent samples", said["phi"] == 1 and
              all(row["phi"] == 1 for row in said["sections"][0]["rows"]), said)
    write_lines(path, bursts=True)
    said = json.loads(ask("annotate", "--json", "busy"))
    tap.check("annotate: in four slices they are not known", "error95" not in said and
              min(row["samples"] for row in said["sections"][0]["rows"]) < 10 and
              not any("error95" in row for row in said["sections"][0]["rows"]) and "±" not in ask("annotate", "busy"), said)


def write_large(path):
    """A function of 4,000 addresses in 50 lines with four fifths of the samples: more moments than are kept as they are, of it and of all."""
    builder, start, second = make_sample.Builder(), 1_790_000_000_000_000_000, 10**9
    tables, image = builder.dictionary, builder.mapping("/bin/large", 0x1000, 0x90000)
    function = builder.intern("function_table", Message("Function", name_strindex=builder.string("large"), start_line=1,
                                                        filename_strindex=builder.string("/no/such/large.c")))
    thread, rest = builder.attributes(thread__id=7, thread__name="large"), builder.location("rest", 0x95000)

    # no two samples at one time, and none knows of another
    def times(i, count):
        return [start + (k * 100 * second + 7919 * i % 4001 * second // 40) // count + i for k in range(count)]
    samples = []
    for i in range(4000):
        tables.location_table.append(Message("Location", address=0x2000 + i, mapping_index=image,
                                             lines=[Message("Line", function_index=function, line=1 + i % 50)]))
        samples.append(make_sample.sample(builder.stack(len(tables.location_table) - 1), thread, times(i, 70)))
    samples.append(make_sample.sample(builder.stack(rest), thread, times(4000, 70 * 1000)))
    builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples, time_unix_nano=start,
                              duration_nano=100 * second, period=10**7, profile_id=bytes([7]) * 16,
                              period_type=builder.value_type("cpu", "nanoseconds"))], process__pid=7, process__executable__name="large")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def check_large(tap, stacktap, work):
    path = os.path.join(work, "large.otlp")
    write_large(path)

    def ask(*options):
        return json.loads(subprocess.run([stacktap, *options, path], check=True, capture_output=True, text=True, timeout=120).stdout)
    said, rows = ask("annotate", "--json", "large"), ask("report", "--json", "--by", "function")["rows"]
    (whole,) = [row["self"] for row in rows if row["name"] == "large"]
    tap.check("annotate: the error of a large function is that of the table", said["percent"] == whole["percent"] and
              abs(said["error95"] / whole["error95"] - 1) < 0.1, ([said[key] for key in ("percent", "error95", "phi")], whole))
    found = [(row["phi"], row["error95"] / (196 * math.sqrt(0.02 * 0.98 / 280000))) for row in said["sections"][0]["rows"]]
    tap.check("annotate: those of its lines are of independent samples, also where their times got coarse", len(found) == 50 and
              all(phi < 3 and 0.98 < ratio < 1.8 for phi, ratio in found), found)


def write_many(path, grows):
    """75,000 paths of two calls, 300 times 250: more than are tested; with as many samples as it takes, or with more and more."""
    builder = make_sample.Builder()
    tables = builder.dictionary
    callers, called = ([builder.location(f"{name}_{i}", 0x1000 + 16 * i) for i in range(count)]
                       for name, count in (("caller", 300), ("called", 250)))
    first = len(tables.stack_table)
    tables.stack_table.extend(Message("Stack", location_indices=[leaf, above]) for above in callers for leaf in called)
    thread = builder.attributes(thread__id=7, thread__name="x")
    samples = [make_sample.sample(first + i, thread, (), (10 + grows * (i // 1000),)) for i in range(len(callers) * len(called))]
    builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
                              time_unix_nano=10**18, duration_nano=10**9, period=10**7, profile_id=bytes([1]) * 16,
                              period_type=builder.value_type("cpu", "nanoseconds"))],
                     process__pid=7, process__executable__name="x")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def check_many(tap, stacktap, work):
    path, said = os.path.join(work, "many.otlp"), "only the 65536 call paths with the most samples were tested, of 75300"
    for kind, grows in (("more and more", 1), ("ten each", 0)):
        write_many(path, grows)
        for text, command in (("the summary says", ("report", "--summary", path)), ("diff says", ("diff", path, path)),
                              ("the page of a pair says", ("flamegraph", "--diff", path, "-o", "-", path)),
                              ("the picture of a pair says", ("flamegraph", "--svg", "--diff", path, "-o", "-", path))):
            done = subprocess.run([stacktap, *command], check=True, capture_output=True, text=True, timeout=120).stdout
            tap.check(f"{text} how many paths are tested, {kind}", said in done, done[:2000])
            if command[0] == "diff" and not grows:
                tap.check(f"none has too few samples, {kind}", "call paths: 0 grew, 0 shrank, 65536 without a significant change, "
                          "0 of too few samples" in done, done[:2000])
        for view in ("--tree", "--callers"):
            done = [subprocess.run([stacktap, "report", view, "--percent-limit", "0", *options, path], check=True, capture_output=True,
                                   text=True, timeout=120).stdout for options in ((), ("--json",))]
            beyond = json.loads(done[1])["beyond"]
            tap.check(f"{view} says how many rows have errors, {kind}", beyond and done[0].endswith(
                f"\nonly the 65536 rows with the most samples, and those of fewer than 10, have errors (±); {beyond} rows have none\n"), done[0][-200:])
            with_error = sum("error95" in node for node in json.loads(done[1])["nodes"])
            tap.same(f"and so many do, {kind}", 300 * (view == "--tree") + 250 * (view == "--callers") + 75000 - with_error, beyond)
        done = subprocess.run([stacktap, "diff", "--json", path, path], check=True, capture_output=True, text=True, timeout=120).stdout
        counts = json.loads(done)["counts"]
        # ten of them may be less by a rounding
        few = min(counts["paths"]["few"], 1000 * grows)
        tap.same(f"as JSON, {kind}", counts["paths"], {"tested": 65536, "few": few, "grew": 0, "shrank": 0, "beyond": 9764 - few})
        tap.check(f"rows are all tested, {kind}", "beyond" not in counts["total"], counts)


def write_processes(path):
    """80 processes of 900 functions, half of them leaves and half their callers, each with 10 to 30 samples: more than are tested."""
    builder = make_sample.Builder()
    tables = builder.dictionary
    callers, called = ([builder.location(f"{name}_{i}", 0x1000 + 16 * i) for i in range(450)] for name in ("caller", "called"))
    first = len(tables.stack_table)
    tables.stack_table.extend(Message("Stack", location_indices=pair) for pair in zip(called, callers))
    thread = builder.attributes(thread__id=7, thread__name="x")
    start, times = 10**18, iter(range(10**18, 2 * 10**18, 1000))
    for pid in range(1, 81):
        samples = [make_sample.sample(first + i, thread, [next(times) for _ in range(10 + pid // 8 * 2)]) for i in range(450)]
        builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
                                  time_unix_nano=start, duration_nano=10**9, period=10**7, profile_id=bytes([pid]) * 16,
                                  period_type=builder.value_type("cpu", "nanoseconds"))],
                         process__pid=pid, process__executable__name=f"p{pid}")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def check_processes(tap, stacktap, work):
    path = os.path.join(work, "processes.otlp")
    write_processes(path)
    done = subprocess.run([stacktap, "report", "--json", path], check=True, capture_output=True, text=True, timeout=120).stdout
    processes = json.loads(done)["events"][0]["processes"]
    rows = [(row["total"] // 10**7, "total_error95" in row) for process in processes for row in process["functions"]]
    tap.same("80 processes of 900 functions", len(rows), 80 * 900)
    # a process has two shares, all of it and that of all processes; a leaf's two are the same
    tap.same("as many as are tested have errors", sum(has_error for _, has_error in rows), 65536 - 2 * 80)
    tap.check("those with most samples", min(count for count, has_error in rows if has_error) >=
              max(count for count, has_error in rows if not has_error) / 2 ** (1 / 8), sorted(set(rows)))
    tap.check("self has it where total has", all(("self_error95" in row) == ("total_error95" in row) for process in processes
                                                 for row in process["functions"] if row["self"]))
    tap.check("all processes have one", all("error95" in process for process in processes))


GROUPS = ("process", "thread", "object", "container", "service", "cgroup", "function", "line")


def write_bursts(path, bursts, steady, small=0):
    """A process that runs in so many bursts of 10 ms in a minute, 300 samples each, one that runs all the time, or only then as well,
    and one of a few samples."""
    builder = make_sample.Builder()
    start, second = 1_790_000_000_000_000_000, 10**9
    moments = {"bursty": [start + burst * 59 // (bursts - 1) * second + i * second // 30000 for burst in range(bursts) for i in range(300)]}
    moments["steady"] = [start + i * 60 * second // steady for i in range(steady)] if steady else [
        time + second // 60000 for time in moments["bursty"]]
    if small:
        moments["small"] = moments["bursty"][::len(moments["bursty"]) // small]
    for pid, (name, times) in enumerate(moments.items(), 1):
        image = builder.mapping(f"/bin/{name}", 0x1000, 0x9000)
        frames = [builder.location(f"{name}_{part}", 0x1000 + i, mapping=image) for i, part in enumerate(("leaf", "main"))]
        samples = [make_sample.sample(builder.stack(*frames), builder.attributes(thread__id=pid, thread__name=name), times)]
        builder.resource([Message("Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
                                  time_unix_nano=start, duration_nano=60 * second, period=10**7, profile_id=bytes([pid]) * 16,
                                  period_type=builder.value_type("cpu", "nanoseconds"))],
                         process__pid=pid, process__executable__name=name, service__name=name, container__id=name,
                         process__linux__cgroup="/" + name)
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))
    return moments


def factor(moments, name):
    """phi of a part as docs/diff.md has it."""
    every = [time for times in moments.values() for time in times]
    first, span = min(every), max(every) - min(every) + 1
    slices = [[0, 0] for _ in range(40)]
    for owner, times in moments.items():
        for time in times:
            slices[(time - first) * 40 // span][0] += 1
            slices[(time - first) * 40 // span][1] += owner == name
    share, best = len(moments[name]) / len(every), 1
    for join in (1, 2, 4):
        joined = [[sum(column) for column in zip(*slices[i:i + join])] for i in range(0, 40, join)]
        used = sum(count > 0 for count, _ in joined)
        rest = sum((part - share * count) ** 2 for count, part in joined)
        if used >= 8:
            best = max(best, rest * used / (used - 1) / (len(every) * share * (1 - share)))
    return best, share, len(every)


def check_bursts(tap, stacktap, work):
    path = os.path.join(work, "bursts.otlp")

    def ask(*options):
        return subprocess.run([stacktap, "report", *options, path], check=True, capture_output=True, text=True, timeout=60).stdout
    moments = write_bursts(path, 3, 6000)
    phi, share, whole = factor(moments, "bursty")
    alone = 100 * 1.96 * math.sqrt(share * (1 - share) / whole)
    tap.check(f"bursts depend on each other: {phi:.0f}", phi > 20)
    for by in GROUPS:
        rows = {str(row): row["total"] for row in json.loads(ask("--json", "--by", by))["rows"]}
        (row,) = [row for name, row in rows.items() if "bursty" in name and "main" not in name]
        tap.check(f"--by {by}: the error knows that", abs(row["phi"] / phi - 1) < 0.02 and
                  1 < row["error95"] / (alone * math.sqrt(phi)) < 1.1, (row, phi, alone))
    moments = write_bursts(path, 7, 0)
    for by in GROUPS:
        rows = json.loads(ask("--json", "--by", by))["rows"]
        tap.check(f"--by {by}: no error of samples that are in 7 slices", len(rows) in (2, 4) and
                  not any(("error95" in share or "phi" in share) and share["weight"] for row in rows for share in row.values()
                          if isinstance(share, dict)), rows)
        tap.check(f"--by {by}: none as text", "50.00 % ±" not in ask("--by", by) and " 50.00 %  " in ask("--by", by), ask("--by", by))
    for view in ("--tree", "--callers"):
        tap.check(f"{view}: none", "50.00 % ±" not in ask(view) and '"error95"' not in ask("--json", view), ask(view))
    for view in (("--tree",), ("--callers",), ("--by", "function")):
        tap.same(f"{' '.join(view)} says why", ask(*view).splitlines()[-1], "no errors (±): samples are in only 7 of 40 time slices, "
                 "too few to estimate their correlation")
    lines = ask("--summary").splitlines()
    tap.check("the summary has none", "±" not in "".join(lines), lines)
    tap.check("and says why", lines[8] == "error      unknown: samples are in only 7 of 40 time slices, too few to estimate "
              "their correlation", lines[8])
    for bursts in (7, 8):
        write_bursts(path, bursts, 0, small=8)
        found = {f"--by {by}": [row["total"] for row in json.loads(ask("--json", "--by", by))["rows"] if "small" in str(row)] for by in GROUPS}
        for view in ("--tree", "--callers"):
            found[view] = [node for node in json.loads(ask("--json", view, "--percent-limit", "0"))["nodes"] if node["name"] == "small_leaf"]
        found["the table"] = [process for process in json.loads(ask("--json"))["events"][0]["processes"] if process["name"] == "small"]
        tap.same(f"8 samples in {bursts} slices: which views have an error", [
            view for view, rows in found.items() if any("error95" in row for row in rows)], [view for view in found if bursts == 8])
        tap.check(f"8 samples in {bursts} slices: all views have them", all(found.values()), found)
    write_bursts(path, 8, 0)
    tap.check("in 8 slices they have one", all("error95" in row["total"] for by in GROUPS for row in json.loads(ask("--json", "--by", by))["rows"]))


def main():
    tap = diff.Tap()
    stacktap, work = os.path.realpath(sys.argv[1]), os.path.join(sys.argv[2], "report")
    os.makedirs(work, exist_ok=True)
    path = os.path.join(work, "recording.otlp")
    with open(path, "wb") as file:
        file.write(diff.recording(7, samples=20000))
    stacks = stacks_of(path)
    whole = sum(stacks.values())

    def ask(*options):
        return subprocess.run([stacktap, "report", *options, path], check=True, capture_output=True, text=True,
                              timeout=60).stdout

    said = json.loads(ask("--json", "--by", "function"))
    want = collections.defaultdict(lambda: [0, 0])
    for stack, count in stacks.items():
        want[stack[-1]][0] += count
        for name in set(stack):
            want[name][1] += count
    tap.same("functions: self and total", {row["name"]: [round(row[key]["percent"], 3) for key in ("self", "total")]
                                           for row in said["rows"]},
             {name: [round(100 * count / whole, 3) for count in counts] for name, counts in want.items()})
    tap.same("the hottest first", [row["self"]["weight"] for row in said["rows"]],
             sorted((row["self"]["weight"] for row in said["rows"]), reverse=True))
    # phi of samples that stay with a probability of 0.9 is 19
    ratios = []
    for row in said["rows"][:10]:
        share = row["self"]["percent"] / 100
        ratios.append((row["self"]["error95"] / 100 / 1.96) ** 2 / (share * (1 - share) / whole))
    middle = sorted(ratios)[5]
    tap.check(f"errors are those of samples that depend on each other: {middle:.1f}", 12 < middle < 32, ratios)
    (alone,) = json.loads(ask("--json"))["events"][0]["processes"]
    tap.same("the table of the only process has the same errors", {
        row["name"]: [row.get(f"{share}_{key}") for share in ("self", "total") for key in ("percent", "error95", "phi")]
        for row in alone["functions"]}, {row["name"]: [row[share].get(key) for share in ("self", "total") for key in
                                                       ("percent", "error95", "phi")] for row in said["rows"]})
    hottest = said["rows"][0]["self"]
    tap.check("also as text", f"  {hottest['percent']:5.2f} % ± {hottest['error95']:.2f} " in ask().splitlines()[4], ask().splitlines()[:6])
    tap.check("and of the text", f"± {said['rows'][0]['self']['error95']:.2f}" in ask("--by", "function").splitlines()[1])

    tree = paths_of(json.loads(ask("--json", "--tree", "--percent-limit", "0")))
    want = collections.Counter()
    for stack, count in stacks.items():
        for depth in range(len(stack)):
            want[stack[:depth + 1]] += count
    tap.same("the tree has all paths", tree, {path: [round(100 * count / whole, 3), count] for path, count in want.items()})
    nodes = json.loads(ask("--json", "--tree", "--percent-limit", "0"))["nodes"]
    selves = {row["name"]: row["self"] for row in said["rows"]}
    tap.same("self in the tree has the error that it has in the table", {
        node["name"]: [round(node[key], 6) for key in ("self_percent", "self_error95")] for node in nodes if "self_error95" in node},
        {name: [round(self[key], 6) for key in ("percent", "error95")] for name, self in selves.items() if self["weight"]})
    limited = paths_of(json.loads(ask("--json", "--tree", "--percent-limit", "5")))
    tap.same("--percent-limit leaves out what is below", limited,
             {path: rest for path, rest in tree.items() if rest[0] >= 5})
    text = ask("--tree", "--percent-limit", "5").splitlines()[1:]
    tap.same("the text has the same lines", len(text), len(limited))
    tap.check("indented by depth", text[0] == "100.00 %            0.00 %          main  /builds/7/program" and
              text[1][6:10] == " % ±" and "     0.00 %           loop_" in text[1], text)
    tap.check("all and nothing have no error", not any(
        "self_error95" in node for node in nodes if not node["self"]) and not any("error95" in node for node in nodes if node["parent"] < 0) and
        not any("error95" in row[key] for row in said["rows"] for key in ("self", "total") if row[key]["percent"] in (0, 100)), nodes)

    callers = paths_of(json.loads(ask("--json", "--callers", "--percent-limit", "0")))
    want = collections.Counter()
    for stack, count in stacks.items():
        for depth in range(len(stack)):
            want[stack[::-1][:depth + 1]] += count
    tap.same("callers are the tree turned over", callers,
             {path: [round(100 * count / whole, 3), count] for path, count in want.items()})
    said = json.loads(ask("--json", "--callers", "--percent-limit", "0"))
    errors, above = {}, {}
    for node in said["nodes"]:
        above[node["node"]] = above.get(node["parent"], ()) + (node["name"],)
        errors[above[node["node"]]] = round(node.get("error95", -1), 6)
    tap.same("what ran has the error that it has in the table", {path[0]: error for path, error in errors.items() if len(path) == 1},
             {name: round(self["error95"], 6) for name, self in selves.items() if self["weight"]})
    paths = {node["node"]: node for node in nodes}
    want = {}
    for node in nodes:
        stack, at = [], node
        while at:
            stack.append(at["name"])
            at = paths.get(at["parent"])
        if node["self"]:
            want[tuple(stack)] = round(node["self_error95"], 6)
    tap.same("a caller that has nobody above has the error of the stack", {path: errors[path] for path in want}, want)
    tap.check("each caller has one, in each line of the text as well", len(errors) > 2 * len(want) and min(errors.values()) > 0 and
              all(re.match(r" *\d+\.\d\d % ± \d", line) for line in ask("--callers", "--percent-limit", "0").splitlines()[1:]), errors)
    tap.same("--callers -n 2 has two functions", len([path for path in paths_of(json.loads(
        ask("--json", "--callers", "-n", "2"))) if len(path) == 1]), 2)

    wanted = {stack: count for stack, count in stacks.items() if any(name in ("loop_1", "planted") for name in stack)}
    for view, turn in (("--tree", 1), ("--callers", -1)):
        want = collections.Counter()
        for stack, count in wanted.items():
            for depth in range(len(stack)):
                want[stack[::turn][:depth + 1]] += count
        said = json.loads(ask("--json", view, "--percent-limit", "0", "--filter", "^(loop_1|planted)$"))
        tap.check(f"{view} --filter leaves stacks out", 0 < len(wanted) < len(stacks) and said["filter"] == "^(loop_1|planted)$")
        tap.same(f"{view} --filter has the stacks with a function that matches, and shares of all", paths_of(said),
                 {path: [round(100 * count / whole, 3), count] for path, count in want.items()})
        tap.same(f"{view} --filter by an object: all of it", paths_of(json.loads(ask("--json", view, "--percent-limit", "0", "--filter", "/program$"))),
                 tree if turn == 1 else callers)
        tap.same(f"{view} --filter of nothing", json.loads(ask("--json", view, "--filter", "^nobody$"))["nodes"], [])
    own = {row["name"]: row["total"].get("error95") for row in json.loads(ask("--json", "--by", "function"))["rows"]}
    said = json.loads(ask("--json", "--tree", "--filter", "^planted$"))["nodes"]
    tap.same("errors of a tree with --filter are of these stacks in all of the time", [round(node["error95"], 6) for node in said],
             [round(own["planted"], 6)] * 3)

    lines = ask("--summary").splitlines()
    tap.same("the summary has ten lines", len(lines), 10)
    tap.same("as has its JSON", [f"{line['topic']:<10} {line['text']}" for line in
                                 json.loads(ask("--summary", "--json"))["lines"]], lines)
    hottest = max((count, stack[-1]) for stack, count in stacks.items())
    tap.check("it names the hottest function", f"{100 * hottest[0] / whole:.2f} %" in lines[2] and
              f": {hottest[1]} of" in lines[2], lines[2])
    running, cover = 0, 0
    for count in sorted(stacks.values(), reverse=True):
        running, cover = running + count, cover + (running < whole / 2)
    tap.check("and how many have half", f" {cover} of the {len(stacks)} functions" in lines[4], lines[4])
    size = whole / 19
    tap.check("and how sure it is", abs(float(lines[8].split("± ")[1].split(" ")[0]) - 196 * math.sqrt(0.25 / size)) < 0.6,
              lines[8])
    for options, seconds in ((("--from", "20", "--to", "25"), 5), (("--since", "10"), 10), ((), 60)):
        span = json.loads(ask("--json", *options))
        tap.same(f"{seconds} seconds are selected {' '.join(options)}", span["end_unix_nano"] - span["start_unix_nano"], seconds * 10**9)
        tap.check("and the summary is of these", f" {seconds}.0 s, " in ask("--summary", *options) and
                  f", {20000 / 60 / 100:.2f} CPUs" in ask("--summary", *options), ask("--summary", *options).splitlines()[0])
    check_inlined(tap, stacktap, work)
    check_relative(tap, stacktap, work)
    check_self(tap, stacktap, work)
    check_annotate(tap, stacktap, work)
    check_large(tap, stacktap, work)
    check_bursts(tap, stacktap, work)
    check_many(tap, stacktap, work)
    check_processes(tap, stacktap, work)
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Compare `stacktap annotate' with objdump's instructions and llvm-symbolizer's lines. Prints TAP.

usage: annotate.py STACKTAP WORK-DIRECTORY

Mnemonics differ by intent: capstone writes AT&T suffixes that objdump leaves out, and both write prefixes and aliases
of their own; see plain() and ALIASES.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "otlp"))

import json_types  # noqa: E402
import lines  # noqa: E402
import make_sample  # noqa: E402
import wire  # noqa: E402
from wire import Message  # noqa: E402

RESULTS = []
TYPES = json_types.load()
WRONG = set()   # what docs/json.md does not say
SAMPLES = 400

# instructions that have two names
ALIASES = (
    {"jae", "jnb"}, {"movabs", "movabsq"}, {"cltq", "cdqe"}, {"cqto", "cqo"}, {"cltd", "cdq"}, {"cwtl", "cwde"},
    {"sal", "shl"}, {"ud2", "ud2a"}, {"xchg", "nop"}, {"cvtsi2sd", "cvtsi2sdl"}, {"cvtsi2ss", "cvtsi2ssl"},
    {"movq", "movd"}, {"movzb", "movzx"}, {"b.cs", "b.hs"}, {"b.cc", "b.lo"}, {"udf", ".inst", ".byte"}, {"mov", "movz", "movn", "orr"},
)

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int step(int x) {
    return x & 1 ? 3 * x + 1 : x / 2; }
static __attribute__((noinline)) int helper(int x)
{
	return x * atoi("7");	/* a tab, and what a terminal would obey: """ + "\x1b[31m" + r""" */
}
__attribute__((noinline)) int longest(int limit)
{
    int best = 0;

    for (int i = 1; i < limit; i++) {
        int n = 0;
        for (int x = i; x != 1; n++)
            x = step(x);
        if (n > best)
            best = n;
    }
    return best + helper(limit);
}
int main(int argc, char **argv) { (void)argv; return printf("%d\n", longest(argc * 100)); }
"""


def tell(good, what, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - annotate: {what}", flush=True)
    if not good and detail:
        print("\n".join("# " + line[:300] for line in str(detail).splitlines()[:20]))


def annotate(stacktap, *arguments):
    done = subprocess.run([stacktap, "annotate", "--json", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", check=False)
    try:
        value = json.loads(done.stdout)
        WRONG.update(TYPES.wrong(("name", "Failure" if "error" in value else "Annotate"), value))
        return done.returncode, value
    except ValueError:
        return done.returncode, {"error": done.stdout + done.stderr, "sections": []}


def rows(said):
    return [row for section in said.get("sections", ()) for row in section["rows"]]


def symbols(path, nm="nm"):
    """(name, start, size) of each function, one for an address."""
    found = {}
    for line in lines.run(nm, "-S", "--defined-only", path).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tT" and int(words[1], 16):
            found.setdefault(int(words[0], 16), (words[3], int(words[0], 16), int(words[1], 16)))
    return list(found.values())


def instructions(path, start, size, objdump="objdump"):
    """[(address, mnemonic)] by objdump."""
    found = []
    text = lines.run(objdump, "-d", "-w", "--no-show-raw-insn", f"--start-address={start:#x}",
                     f"--stop-address={start + size:#x}", path)
    for line in text.splitlines():
        match = re.match(r" +([0-9a-f]+):\t(.*)", line)
        if match:
            found.append((int(match[1], 16), match[2]))
    return found


def plain(text):
    """The mnemonic without prefixes."""
    words = text.split()
    while len(words) > 1 and re.fullmatch(r"rep|repz|repnz|repe|repne|lock|bnd|notrack|data16|cs|ds|es|rex(\.\w+)?",
                                          words[0].rstrip(",")):
        words.pop(0)
    return words[0].split(",")[0] if words else ""


def is_same(mine, other):
    mine, other = plain(mine), plain(other)
    return mine == other or (mine[:-1] == other and mine[-1] in "bwlq") or \
        (other[:-1] == mine and other[-1] in "bwlq") or any({mine, other} <= alias for alias in ALIASES)


def record(path, hits, program, name, ident=None, recorded_path=None, more=(), **told):
    """
    A recording with these hits, {address: samples}, in the function called @name; @more: other samples' frames; @told: the
    Profile's attributes.
    """
    builder = make_sample.Builder()
    vaddr, offset, size = lines.segment(program)
    mapping = builder.intern("mapping_table", Message(
        "Mapping", memory_start=vaddr, memory_limit=vaddr + size, file_offset=offset,
        filename_strindex=builder.string(recorded_path or program), attribute_indices=builder.attributes(
            process__executable__build_id__htlhash="0123456789abcdef" * 2,
            process__executable__build_id__gnu=ident or lines.build_id(program))))
    thread = builder.attributes(thread__id=7, thread__name="shop")
    caller = builder.location("caller", vaddr + 1, mapping=mapping)
    samples, time = [], lines.START
    for address, count in sorted(hits.items()):
        stack = builder.stack(builder.location(name, address, mapping=mapping), caller)
        samples.append(make_sample.sample(stack, thread, range(time, time + count)))
        time += count
    for frames in more:
        samples.append(make_sample.sample(builder.stack(*(builder.location(*frame) for frame in frames)), thread, [time]))
        time += 1
    builder.resource([Message(
        "Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
        time_unix_nano=lines.START, duration_nano=10**9, period_type=builder.value_type("cpu", "nanoseconds"),
        period=10**7, profile_id=bytes([1]) * 16, attribute_indices=builder.attributes(**told))],
        process__pid=7, process__executable__name="shop", service__name="shop")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def draw(addresses, seed):
    noise, hits = random.Random(seed), {}
    for _ in range(SAMPLES):
        address = noise.choice(addresses)
        hits[address] = hits.get(address, 0) + 1
    return hits


def compare_code(stacktap, recorded, program, functions, objdump="objdump", *more):
    """Instructions, how many are called otherwise, and what is wrong."""
    total, otherwise, wrong = 0, [], []
    for name, start, size in functions:
        theirs = instructions(program, start, size, objdump)
        hits = draw([address for address, _ in theirs], name)
        record(recorded, hits, program, name)
        status, said = annotate(stacktap, "--no-source", *more, name, recorded)
        mine = rows(said)
        total += len(theirs)
        if status or [row["address"] for row in mine] != [address for address, _ in theirs]:
            wrong.append(f"{name}: {len(mine)} and {len(theirs)} instructions: {str(said)[:200]}")
            continue
        got = {row["address"]: row["samples"] for row in mine if row["samples"]}
        report = json.loads(lines.run(stacktap, "report", "--json", recorded))["events"][0]["processes"][0]["functions"]
        self_samples = [one["self_samples"] for one in report if one["name"] == name]
        if got != hits or said["outside_samples"] or [sum(got.values())] != self_samples:
            wrong.append(f"{name}: {sum(got.values())} samples, {self_samples} in the report")
        if abs(sum(row["percent"] for row in mine) - 100) > 0.01:
            wrong.append(f"{name}: {sum(row['percent'] for row in mine)} %")
        otherwise += [f"{name} {a:x}: {row['text']} | {text}" for row, (a, text) in zip(mine, theirs)
                      if not is_same(row["text"], text)]
    return total, otherwise, wrong


def check_code(stacktap, work):
    recorded = os.path.join(work, "code.otlp")
    found = sorted(symbols(stacktap), key=lambda f: -f[2])
    names = [name for name, _, _ in found]
    once = [function for function in found if names.count(function[0]) == 1 and function[0] != "_start"]
    chosen = once[:8] + random.Random(5).sample(once[8:], 24)
    total, otherwise, wrong = compare_code(stacktap, recorded, stacktap, chosen)
    tell(not wrong and total > 5000, f"{len(chosen)} functions of stacktap: {total} instructions where objdump has them, "
         "and every sample at its own", "\n".join(wrong))
    tell(len(otherwise) <= total // 500, f"{total - len(otherwise)} of {total} called as objdump calls them",
         "\n".join(otherwise))

    # a stripped file: its function is known by its unwind information, and called so
    stripped = os.path.join(work, "stripped")
    subprocess.run(["strip", "-o", stripped, stacktap], check=True)
    name, start, size = once[2]
    theirs = instructions(stacktap, start, size)
    hits = draw([address for address, _ in theirs], 1)
    record(recorded, hits, stripped, f"stripped+{start:#x}")
    _, said = annotate(stacktap, "--no-source", f"stripped+{start:#x}", recorded)
    tell([row["address"] for row in rows(said)][:len(theirs)] == [a for a, _ in theirs] and
         {row["address"]: row["samples"] for row in rows(said) if row["samples"]} == hits,
         "a function of a stripped file", said)
    intel = rows(annotate(stacktap, "-M", "intel", "--no-source", f"stripped+{start:#x}", recorded)[1])
    tell(len(intel) == len(rows(said)) and not any("%" in row["text"] for row in intel), "-M intel", intel[:3])

    # what lies beside it
    record(recorded, hits | {start + size + 4096: 5}, stacktap, name)
    status, said = annotate(stacktap, "--no-source", name, recorded)
    tell(status == 0 and sum(row["samples"] for row in rows(said)) == SAMPLES + 5 and len(said["sections"]) == 2,
         "samples in another function of that name have a part of their own", str(said)[:300])


def check_arm64(stacktap, work):
    source, program = os.path.join(work, "tree.c"), os.path.join(work, "arm64")
    with open(source, "w", encoding="utf-8") as file:
        file.write(lines.C.replace("int nested(int x) { return x + argc; }", "").replace("nested(", "("))
    subprocess.run(["aarch64-linux-gnu-gcc", "-O2", "-static", "-Wl,--build-id", "-o", program, source], check=True)
    found = sorted(symbols(program, "aarch64-linux-gnu-nm"), key=lambda f: -f[2])
    names = [name for name, _, _ in found]
    chosen = [f for f in found if names.count(f[0]) == 1][:12] + [f for f in found if f[0] in ("longest", "main")]
    total, otherwise, wrong = compare_code(stacktap, os.path.join(work, "arm64.otlp"), program, chosen,
                                           "aarch64-linux-gnu-objdump")
    tell(not wrong and total > 3000, f"arm64: {total} instructions where objdump has them", "\n".join(wrong))
    tell(len(otherwise) <= total // 200, f"arm64: {total - len(otherwise)} of {total} called as objdump calls them",
         "\n".join(otherwise))


def by_line(program, hits, wanted):
    """{(file, line): samples}: the line of the function's own frame, by llvm-symbolizer."""
    found = {}
    addresses = sorted(hits)
    for address, frames in zip(addresses, lines.theirs(program, addresses)):
        frame = next((f for f in frames if f[0] == wanted), frames[-1])
        if frame[2]:
            found[frame[1], frame[2]] = found.get((frame[1], frame[2]), 0) + hits[address]
    return found


def lined(said):
    return {(lines.normal(section["file"]), row["line"]): row["samples"] for section in said.get("sections", ())
            for row in section["rows"] if row["samples"]}


def check_source(stacktap, work):
    source, program = os.path.join(work, "path", "way.c"), os.path.join(work, "way")
    os.makedirs(os.path.dirname(source))
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-Wl,--build-id", "-o", program, source], check=True)
    recorded, named = os.path.join(work, "in.otlp"), os.path.join(work, "named.otlp")
    _, start, size = next(f for f in symbols(program) if f[0] == "longest")
    hits = draw([address for address, _ in instructions(program, start, size)], 3)
    expected = by_line(program, hits, "longest")
    text = SOURCE.splitlines()
    record(recorded, hits, program, "longest")
    status, said = annotate(stacktap, "longest", recorded)
    tell(status == 0 and said["view"] == "source" and lined(said) == expected and len(expected) > 4,
         f"{len(expected)} lines of a debug file on this host, with the samples that llvm-symbolizer gives each",
         f"{said}\n{expected}")
    tell(all(row["text"] == text[row["line"] - 1].expandtabs(8) for row in rows(said)) and
         [row["line"] for row in rows(said)] == list(range(rows(said)[0]["line"], rows(said)[-1]["line"] + 1)) and
         text[rows(said)[0]["line"] - 1].startswith("__attribute__((noinline)) int longest"),
         "the source, from where the function begins", rows(said)[:3])

    subprocess.run([stacktap, "symbolize", "--binary", program, "-o", named, recorded], stdout=subprocess.DEVNULL, check=True)
    empty = os.path.join(work, "empty")
    os.makedirs(empty)
    status, said = annotate(stacktap, "--sysroot", empty, "--debug-dir", empty, "--source-dir", work, "longest", named)
    tell(status == 0 and said["view"] == "source" and
         {line: n for (_, line), n in lined(said).items()} == {line: n for (_, line), n in expected.items()} and
         said["by"] is None, "lines of `symbolize' alone, and a source found below --source-dir", said)
    status, said = annotate(stacktap, "step", named)
    inner = by_line(program, hits, "step")
    inner = {place: n for place, n in inner.items() if "return x & 1" in text[place[1] - 1]}
    tell(status == 0 and lined(said) == inner and inner, "a function that was inlined", f"{said}\n{inner}")
    status, said = annotate(stacktap, "longest", named)
    tell(said["inlined_samples"] == sum(inner.values()), "samples inlined in a function are told", said)
    status, said = annotate(stacktap, "--sysroot", empty, "--debug-dir", empty, "longest", named)
    tell(status == 0 and said["view"] == "lines" and lined(said) == expected, "lines alone, without source or code", said)
    status, said = annotate(stacktap, "--sysroot", empty, "--debug-dir", empty, "longest", recorded)
    tell(status == 1 and "no file of this build" in said["error"], "nothing is here: it says what is missing", said)
    status, said = annotate(stacktap, "--sysroot", empty, "--debug-dir", empty, "--binary", program, "--no-source",
                            "longest", named)
    tell(status == 0 and any(row["target"] == "helper" for row in rows(said)) and
         any(row["file"] and row["line"] for row in rows(said)), "instructions know their lines, and what they call", said)
    status, said = annotate(stacktap, "--no-source", "--percent-limit", "3%", "longest", named)
    tell(status == 0 and rows(said) and all(row["percent"] >= 3 for row in rows(said)), "--percent-limit", said)

    # a static function, whose source has what a terminal would obey
    _, start, size = next(f for f in symbols(program) if f[0] == "helper")
    record(recorded, {start: 3}, program, "helper")
    shown = subprocess.run([stacktap, "annotate", "helper", recorded], stdout=subprocess.PIPE, check=True).stdout
    tell(b"\x1b" not in shown and b"        return x * atoi" in shown, "control characters are not passed on", shown)
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(text[:3]))
    status, said = annotate(stacktap, "helper", recorded)
    tell(status == 0 and "fewer lines" in (said["note"] or "") and rows(said)[-1]["samples"] == 3,
         "a source that is shorter now", said)
    os.remove(source)
    os.mkfifo(source)
    status, said = annotate(stacktap, "helper", recorded)
    tell(status == 0 and said["view"] == "code", "a source that is a FIFO is not opened", said)


def check_names(stacktap, work):
    program = os.path.join(work, "way")
    recorded, both, other = (os.path.join(work, name) for name in ("one.otlp", "both.otlp", "other.otlp"))
    _, start, _ = next(f for f in symbols(program) if f[0] == "helper")
    record(recorded, {start: 3}, program, "helper(int)", more=([("outer", start)],) * 2)
    record(other, {start: 2}, program, "helper(int)", ident="ab" * 20, recorded_path="/opt/elsewhere")
    with open(both, "wb") as out:
        for path in (recorded, other):
            with open(path, "rb") as file:
                out.write(file.read())
    status, said = annotate(stacktap, "--no-source", "helper", both)
    tell(status == 1 and program in said["error"] and "/opt/elsewhere" in said["error"] and
         "3 samples" in said["error"] and "--object" in said["error"], "a name that two objects have", said)
    status, said = annotate(stacktap, "--no-source", "--object", "way", "helper", both)
    tell(status == 0 and said["object"] == program and said["samples"] == 3, "--object chooses one", said)
    status, said = annotate(stacktap, "--no-source", "--object", lines.build_id(program)[:8], "helper", both)
    tell(status == 0 and said["samples"] == 3, "so does a build-id", said)
    status, said = annotate(stacktap, "caller", recorded)
    tell(status == 1 and "3 are in what it calls" in said["error"], "a function that only calls", said)
    status, said = annotate(stacktap, "absent", recorded)
    tell(status == 1 and "no function `absent'" in said["error"], "a function that is not there", said)
    status, said = annotate(stacktap, "outer", recorded)
    tell(status == 1 and "outer" in said["error"], "one in no mapping", said)
    with open(recorded, "rb") as file:
        piped = subprocess.run([stacktap, "annotate", "--json", "--no-source", "helper", "-"], stdin=file,
                               stdout=subprocess.PIPE, check=False)
    tell(not WRONG and TYPES.used >= {"Annotate", "Failure"}, "what it prints is what docs/json.md says", sorted(WRONG)[:10])
    tell(piped.returncode == 0 and json.loads(piped.stdout)["samples"] == 3, "standard input", piped.stdout)


def check_hostile(stacktap, work):
    program, recorded = os.path.join(work, "way"), os.path.join(work, "bad.otlp")
    bad = os.path.join(work, "bad")
    _, start, size = next(f for f in symbols(program) if f[0] == "longest")
    offset = lines.segment(program)[1] + start - lines.segment(program)[0]
    with open(program, "rb") as file:
        content = file.read()
    noise = random.Random(11)
    for what, changed in (
            ("code of noise", content[:offset] + noise.randbytes(size) + content[offset + size:]),
            ("a file that is cut in its code", content[:offset + 8]),
            ("program headers of noise", content[:64 + 56 * 3] + noise.randbytes(56 * 4) + content[64 + 56 * 7:])):
        with open(bad, "wb") as file:
            file.write(changed)
        record(recorded, {start: 3, start + size - 1: 2}, program, "longest", recorded_path="/none")
        status, said = annotate(stacktap, "--no-source", "--debug-dir", work + "/empty", "--binary", bad, "longest", recorded)
        good = status in (0, 1) and ("error" in said) == (status == 1)
        if status == 0:
            good = good and sum(row["samples"] for row in rows(said)) + said["outside_samples"] == 5
        tell(good and "Traceback" not in str(said), what + ": an answer, or a sentence", said)
    shutil.rmtree(work, ignore_errors=True)


def main():
    stacktap, work = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    check_code(stacktap, work)
    check_arm64(stacktap, work)
    check_source(stacktap, work)
    check_names(stacktap, work)
    check_hostile(stacktap, work)
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

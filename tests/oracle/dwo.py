# SPDX-License-Identifier: Apache-2.0
"""Name recordings of programs with split DWARF by the .dwo files that their skeletons name, and compare with what
llvm-symbolizer says, which opens those where they were compiled. Prints TAP.

usage: dwo.py STACKTAP WORK-DIRECTORY
"""
import json
import os
import random
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

import lines  # noqa: E402

tell, run = lines.tell, lines.run

# compiler, version of DWARF; no packager of Debian 12 takes gcc's DWARF 5
VARIANTS = (("gcc", 4), ("gcc", 5), ("clang", 4), ("clang", 5))
MANY = 150
PER_FILE = 600
PART = """static inline __attribute__((always_inline)) int square_{n}(int x) {{ return x * x + {n}; }}
static inline __attribute__((always_inline)) int cube_{n}(int x) {{ return x * square_{n}(x); }}
int part_{n}(int x) {{ return cube_{n}(x) % 7 + cube_{n}(x + 1); }}
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def compile_shop(work, compiler, version):
    """Two objects in a directory of their own: DWARF names obj/shop.dwo, relative to where the compiler ran."""
    directory = os.path.join(work, f"{compiler}-{version}")
    os.makedirs(directory + "/obj")
    write(directory + "/more.cc", lines.MORE)
    write(directory + "/shop.cc", lines.CXX)
    compiler = {"gcc": "g++", "clang": "clang++"}[compiler]
    for name in ("more", "shop"):
        subprocess.run([compiler, "-O2", f"-gdwarf-{version}", "-gsplit-dwarf", "-c", "-o", f"obj/{name}.o", f"{name}.cc"],
                       cwd=directory, check=True)
    subprocess.run([compiler, "-Wl,--build-id", "-o", "shop", "obj/more.o", "obj/shop.o"], cwd=directory, check=True)
    return os.path.join(directory, "shop")


def compile_many(work):
    directory = os.path.join(work, "many")
    os.makedirs(directory)
    for n in range(MANY):
        write(f"{directory}/part_{n}.c", PART.format(n=n))
    write(directory + "/main.c", "".join(f"int part_{n}(int);\n" for n in range(MANY)) + "int main(int argc, char **argv) { return " +
          " + ".join(f"part_{n}(argc)" for n in range(MANY)) + "; }\n")
    subprocess.run("gcc -O2 -gdwarf-5 -gsplit-dwarf -c *.c && gcc -Wl,--build-id -o many *.o", shell=True, cwd=directory, check=True)
    return os.path.join(directory, "many")


RECORDED = {}


def record(work, path, addresses):
    """To make one takes longer than to name it."""
    key = (lines.build_id(path), *addresses)
    if key not in RECORDED:
        RECORDED[key] = os.path.join(work, f"{len(RECORDED)}.otlp")
        lines.write(RECORDED[key], lines.Recording(path, addresses, ident=key[0]))
    return RECORDED[key]


class Named:
    """A recording of @addresses of a program, named."""

    def __init__(self, stacktap, work, path, addresses, *options):
        recorded, named = record(work, path, addresses), os.path.join(work, "out.otlp")
        self.status, said = lines.symbolize(stacktap, "--binary", path, *options, "-o", named, recorded)
        self.said = said
        self.note = said["objects"][0]["note"] or ""
        self.frames = {address: [(f[1], lines.normal(f[2]), f[3], f[4]) for f in frames]
                       for address, frames in lines.frames_of(named)[0].items()} if not self.status else {}

    def inlined(self):
        return sum(len(frames) > 1 for frames in self.frames.values())


def addresses_of(path, names=None):
    first, size = lines.text_range(path)
    if names:
        return sorted(a for a, all_names in lines.functions(path).items() if any(name in names for name in all_names))
    chosen = random.Random(os.path.basename(os.path.dirname(path))).sample(range(first, first + size), min(size, PER_FILE))
    return sorted(set(chosen) | {a for a in lines.functions(path) if first <= a < first + size})


def compare(named, path, addresses):
    """What differs from llvm-symbolizer's, which says a line also where there is no function."""
    same, wrong = lines.aliases(lines.functions(path)), []
    others = lines.theirs(path, addresses)
    if len(others) != len(addresses):
        return [f"{len(others)} answers for {len(addresses)} addresses"]
    for address, other in zip(addresses, others):
        mine = named.frames.get(address, [])
        # columns without a line are not recorded
        other = [(name, file, line, column if line else 0) for name, file, line, column in other]
        if lines.differ(mine, other, same):
            wrong.append(f"{address:x}: {mine}\n      llvm-symbolizer: {other}")
    return wrong


def check_variant(stacktap, work, compiler, version):
    path = compile_shop(work, compiler, version)
    addresses = addresses_of(path)
    named = Named(stacktap, work, path, addresses)
    wrong = compare(named, path, addresses)
    tell(not wrong and named.status == 0 and named.inlined() > len(addresses) // 4 and not named.note,
         f"{compiler}'s DWARF {version}: {len(addresses)} addresses, {named.inlined()} inlined", "\n".join(wrong) or named.said)


def check_many(stacktap, work):
    """More files than the parser has open at a time."""
    path = compile_many(work)
    directory = os.path.dirname(path)
    first, size = lines.text_range(path)
    addresses = list(range(first, first + size, max(1, size // (4 * MANY))))
    named = Named(stacktap, work, path, addresses)
    wrong = compare(named, path, addresses)
    tell(not wrong and named.inlined() > MANY // 2 and not named.note,
         f"{MANY} .dwo files: {len(addresses)} addresses, {named.inlined()} inlined", "\n".join(wrong) or named.said)
    # of some of them
    for n in range(0, MANY, 2):
        os.unlink(f"{directory}/part_{n}.dwo")
    half = Named(stacktap, work, path, addresses)
    lacking = {a for a in addresses if len(named.frames[a]) > 1 and len(half.frames[a]) < 2}
    of = [f"part_{n}" for n in range(0, MANY, 2)]
    tell(half.inlined() + len(lacking) == named.inlined() and len(lacking) > MANY // 4 and
         all(named.frames[a][-1][0] in of for a in lacking) and "are not here, such as part_0.dwo" in half.note and
         all(half.frames[a] == named.frames[a] for a in addresses if named.frames[a] and named.frames[a][-1][0] not in of),
         f"without half of them {len(lacking)} lack inlined functions, and the first is named", half.note)


def check_places(stacktap, work):
    """Where a .dwo file is found once it is not where it was compiled."""
    path = os.path.join(work, "gcc-5", "shop")
    directory = os.path.dirname(path)
    addresses = addresses_of(path)[::4]
    wanted = Named(stacktap, work, path, addresses)
    empty, away, objects = (os.path.join(work, name) for name in ("empty", "away", "objects"))
    os.makedirs(empty)
    shutil.move(directory + "/obj", objects)
    shutil.copytree(objects, away + directory + "/obj")
    named = Named(stacktap, work, path, addresses)
    tell(named.status == 0 and named.inlined() == 0 and named.said["objects"][0]["with_lines"] > 50 and
         "split DWARF" in named.note and "obj/more.dwo" in named.note, "none: lines without inlined functions", named.note)
    program = os.path.join(work, "elsewhere", "shop")
    os.makedirs(os.path.dirname(program))
    shutil.copy(path, program)
    relative, mixed = os.path.join(work, "relative"), os.path.join(work, "mixed")
    shutil.copytree(objects, relative + "/obj")
    # the right name leads to another build, to a pipe and to noise before it leads to the file
    os.makedirs(mixed + directory + "/obj")
    shutil.copy(os.path.join(work, "gcc-4", "obj", "shop.dwo"), mixed + directory + "/obj/shop.dwo")
    os.mkfifo(mixed + directory + "/obj/more.dwo")
    os.makedirs(mixed + "/obj")
    shutil.copy(os.path.join(work, "clang-5", "obj", "shop.dwo"), mixed + "/obj")
    write(mixed + "/obj/more.dwo", "noise" * 1000)
    shutil.copy(objects + "/shop.dwo", mixed)
    shutil.copy(objects + "/more.dwo", mixed)
    for what, options in (("below --sysroot", ["--sysroot", away]), ("below --debug-dir at the same path", ["--debug-dir", away]),
                          ("below --debug-dir, relative", ["--debug-dir", relative]),
                          ("in --debug-dir", ["--debug-dir", objects]),
                          ("in the second --debug-dir", ["--debug-dir", empty, "--debug-dir", objects]),
                          ("by its id, after files of the same name", ["--debug-dir", mixed])):
        named = Named(stacktap, work, program, addresses, *options)
        tell(named.frames == wanted.frames and not named.note, f"{what}: as where it was compiled", named.note)
    for name in ("more.dwo", "shop.dwo"):
        shutil.copy(os.path.join(objects, name), os.path.dirname(program))
    named = Named(stacktap, work, program, addresses, "--sysroot", empty)
    tell(named.frames == wanted.frames and not named.note, "beside the program", named.note)


def check_notes(stacktap, work):
    """What is said of a file that is there and does not do."""
    path = os.path.join(work, "clang-5", "shop")
    more = os.path.join(os.path.dirname(path), "obj", "more.dwo")
    addresses = addresses_of(path)[::4]
    whole = Named(stacktap, work, path, addresses)
    shutil.move(more, more + ".kept")
    shutil.copy(os.path.join(work, "gcc-4", "obj", "more.dwo"), more)
    named = Named(stacktap, work, path, addresses)
    tell("split DWARF are of another build, such as obj/more.dwo: pass" in named.note, "one of another build", named.note)
    write(more, "noise" * 1000)
    named = Named(stacktap, work, path, addresses)
    tell("split DWARF cannot be read, such as obj/more.dwo: pass" in named.note, "one of noise", named.note)
    shutil.move(more + ".kept", more)
    # no object file, and what must not be opened by whoever may read it: the name is as long as the one in its place
    for name in (b"/etc/passwd", b"/proc/kmsg", b"/sys/x/../y"):
        program = os.path.join(work, "told", "shop")
        os.makedirs(os.path.dirname(program), exist_ok=True)
        with open(path, "rb") as stream, open(program, "wb") as other:
            content = stream.read()
            other.write(content.replace(b"obj/more.dwo\0", name.ljust(13, b"\0")))
        named = Named(stacktap, work, program, addresses)
        tell(b"obj/more.dwo\0" in content and named.status == 0 and "cannot be read, such as " + name.decode() + ":" in named.note and
             named.said["objects"][0]["with_lines"] == whole.said["objects"][0]["with_lines"],
             f"a program that says {name.decode()}: its lines, and not that file", named.note)


def check_hostile(stacktap, work):
    """Entries of noise cost what they are of, and a huge file of nothing no more."""
    path = os.path.join(work, "clang-5", "shop")
    file = os.path.join(os.path.dirname(path), "obj", "shop.dwo")
    addresses = addresses_of(path)[::2]
    wanted = Named(stacktap, work, path, addresses)
    with open(file, "rb") as stream:
        content = stream.read()
    at, size = lines.section(file, ".debug_info.dwo")
    os.unlink(file)
    with open(file, "wb") as stream:
        stream.write(content[:at + 64] + random.Random(7).randbytes(size - 64) + content[at + size:])
    named = Named(stacktap, work, path, addresses)
    of_other = [a for a in addresses if wanted.frames[a] and wanted.frames[a][0][1].endswith("more.cc")]
    tell(named.status == 0 and named.said["objects"][0]["with_lines"] == wanted.said["objects"][0]["with_lines"] and
         all(named.frames[a] == wanted.frames[a] for a in of_other), f"entries of noise: the {len(of_other)} of the other file are whole",
         named.said)
    with open(file, "wb") as stream:
        stream.truncate(1 << 40)
    named = Named(stacktap, work, path, addresses)
    tell(named.status == 0 and named.said["objects"][0]["with_lines"] and "split DWARF" in named.note and
         all(named.frames[a] == wanted.frames[a] for a in of_other), "a terabyte of nothing", named.said)
    with open(file, "wb") as stream:
        stream.write(content)


def with_fault(stacktap, work, fault):
    """A program that meets with one when it opens a .dwo file."""
    library, program = os.path.join(work, "dwo_fault.so"), os.path.join(work, fault)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "preload", "dwo_fault.c")
    if not os.path.exists(library):
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    write(program, f"#!/bin/sh\nexec env LD_PRELOAD='{library}' DWO_FAULT={fault} '{stacktap}' \"$@\"\n")
    os.chmod(program, 0o755)
    return program


def check_faults(stacktap, work):
    """What befalls the parser with a .dwo file, or takes too long there, costs inlined functions and is told."""
    path = os.path.join(work, "gcc-4", "shop")
    addresses = addresses_of(path)
    whole = Named(stacktap, work, path, addresses)
    # of one file, behind which no other one shows that it is late
    addresses = [a for a in addresses if whole.frames[a] and whole.frames[a][-1][1].endswith("more.cc")]
    whole = Named(stacktap, work, path, addresses)
    objects = os.path.join(os.path.dirname(path), "obj")
    shutil.move(objects, objects + ".away")
    without = Named(stacktap, work, path, addresses)
    shutil.move(objects + ".away", objects)
    annotated = os.path.join(work, "annotated-fault.otlp")
    lines.write(annotated, lines.Recording(path, addresses, named={a: "more" for a in addresses}, ident=lines.build_id(path)))
    for fault, words in (("crash", "without inlined functions: its split DWARF (.dwp, .dwo) cannot be read: the parser crashed in it"),
                         ("late", "without inlined functions: .dwo files of its split DWARF take longer than 300 seconds to read: "
                                  "pack them as a .dwp file")):
        program = with_fault(stacktap, work, fault)
        named = Named(program, work, path, addresses)
        tell(named.status == 0 and words in named.note and whole.inlined() and not named.inlined() and
             named.frames == without.frames and named.said["objects"][0]["with_lines"] == whole.said["objects"][0]["with_lines"],
             f"{fault}: all has its function and line", named.said)
        said = json.loads(run(program, "annotate", "more", "--json", "--binary", path, annotated) or "{}")
        tell(words in (said.get("note") or "") and any(row["samples"] for section in said["sections"] for row in section["rows"]),
             f"{fault}: annotate", said)


def check_annotate(stacktap, work):
    """A sample of what was inlined counts at the line of the function that has it."""
    path = os.path.join(work, "clang-4", "shop")
    start = next(address for address, names in lines.functions(path).items() if any("4moreSt" in name for name in names))
    addresses = list(range(start, start + 600, 8))
    recorded = os.path.join(work, "annotated.otlp")
    lines.write(recorded, lines.Recording(path, addresses, named={a: "more" for a in addresses}, ident=lines.build_id(path)))
    said = json.loads(run(stacktap, "annotate", "more", "--json", "--binary", path, recorded))
    rows = [(os.path.basename(section["file"]), row["line"]) for section in said["sections"] for row in section["rows"]
            if row["samples"]]
    begin = lines.MORE.splitlines().index("int more(std::vector<int> v, int n) {") + 1
    tell(rows and all(file == "more.cc" and begin <= line <= begin + 2 for file, line in rows) and not said["note"], "annotate", said)


def main():
    stacktap, work = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    # that may have an object of the same source that was compiled in another directory
    os.environ["CCACHE_DISABLE"] = "1"
    for variant in VARIANTS:
        check_variant(stacktap, work, *variant)
    check_many(stacktap, work)
    check_places(stacktap, work)
    check_notes(stacktap, work)
    check_hostile(stacktap, work)
    check_faults(stacktap, work)
    check_annotate(stacktap, work)
    print(f"1..{len(lines.RESULTS)}")
    return 0 if all(lines.RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

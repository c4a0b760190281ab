# SPDX-License-Identifier: Apache-2.0
"""Name the kernel's frames of a recording by a file like its vmlinux, and compare with what llvm-symbolizer says. Prints TAP.

usage: vmlinux.py STACKTAP WORK-DIRECTORY [VMLINUX]

VMLINUX is a distribution's, of x86_64: 10,000 of its addresses. What llvm-symbolizer says of it differs as in debug_packages.py.

What is recorded of the kernel counts from where its image begins: at the address that x86_64 links it at, at 0 on arm64.
"""
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import debug_packages  # noqa: E402
import lines  # noqa: E402

tell, run = lines.tell, lines.run

# as vmlinux has them: per-CPU data at 0, and code of the start behind data
SCRIPT = """
PHDRS { text PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); percpu PT_LOAD FLAGS(6); init PT_LOAD FLAGS(7); note PT_NOTE FLAGS(4); }
SECTIONS {
	. = BASE;
	_text = .;
	.head.text : { *(.head.text) } :text
	.text ALIGN(4096) : { *(.text .text.*) } :text
	.rodata : { *(.rodata .rodata.*) } :text
	.notes : { *(.note.gnu.build-id) } :text :note
	. = ALIGN(0x200000);
	.data : { *(.data .bss) } :data
	.data..percpu 0 : AT(0x10000) { *(.percpu) } :percpu
	. = _text + 0x600000;
	.init.text : { *(.init.text) } :init
	/DISCARD/ : { *(.eh_frame) *(.comment) *(.note.gnu.property) }
}
"""
# arm64 has writable data in the segment that notes are in, so that a file of debug information keeps bytes of that one alone
SCRIPT_ARM64 = """
SECTIONS {
	. = BASE;
	_text = .;
	.head.text : { *(.head.text) }
	.text ALIGN(4096) : { *(.text .text.*) }
	. = ALIGN(0x10000);
	.rodata : { *(.rodata .rodata.*) *(.percpu) }
	.notes : { *(.note.gnu.build-id) }
	.init.text : { *(.init.text) }
	.data : { *(.data .bss) }
	/DISCARD/ : { *(.eh_frame) *(.comment) *(.note.gnu.property) }
}
"""
SOURCE = """
__attribute__((section(".percpu"))) long counter = 1;
int table[64];
static inline __attribute__((always_inline)) int square(int x) { return x * x + table[x & 63]; }
static inline __attribute__((always_inline)) int cube(int x) { return x * square(x); }
__attribute__((noinline)) int do_work(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += cube(i) % 7;
	return sum;
}
__attribute__((noinline)) int do_more(int x) { table[x & 63] = square(x); return do_work(x) + 1; }
__attribute__((section(".head.text"))) int _head(int x) { return do_more(x); }
__attribute__((section(".init.text"))) int start_kernel(int x) { return do_more(cube(x)); }
"""


def build(work, name, base, prefix, *flags):
    path = os.path.join(work, name)
    script = SCRIPT_ARM64 if name == "aarch64" else SCRIPT
    for end, text in ((".lds", script.replace("BASE", hex(base))), (".c", SOURCE)):
        with open(path + end, "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run([prefix + "gcc", "-O2", "-g", "-gdwarf-5", "-ffreestanding", "-fno-pic", "-nostdlib", "-static", "-no-pie",
                    *flags, "-Wl,--build-id", f"-Wl,-T,{path}.lds", "-Wl,-z,max-page-size=4096", "-Wl,-e,_head", "-Wl,--no-warn-rwx-segments",
                    "-o", path, path + ".c"], check=True)
    subprocess.run([prefix + "objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
    subprocess.run([prefix + "strip", "--strip-debug", "-o", path + ".plain", path], check=True)
    return path


def ranges(path):
    """Addresses of its functions, every fourth of them."""
    found = []
    for line in run("nm", "-S", "--defined-only", path).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "Tt":
            found += range(int(words[0], 16), int(words[0], 16) + int(words[1], 16), 4)
    # nothing is sampled at the first byte of the image, and withheld addresses are 0, which that is on arm64
    return sorted(found)[1:]


def without_code(path):
    """The same build, none of whose segments is executable."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    headers, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for flags in range(headers + 4, headers + 4 + size * count, size):
        struct.pack_into("<I", data, flags, struct.unpack_from("<I", data, flags)[0] & ~1)
    with open(path + ".flat", "wb") as file:
        file.write(data)
    return path + ".flat"


def record(path, addresses, base, start, ident, what="[kernel]", name=""):
    lines.record_kernel(path, what, ident, (start, start + 0x700000), [(a - base + start, name) for a in addresses])


def check(stacktap, work, path, base, start):
    what, ident, addresses = os.path.basename(path), lines.build_id(path), ranges(path)
    recorded, named = os.path.join(work, "in.otlp"), os.path.join(work, "out.otlp")
    tree = os.path.join(work, "debug-" + what, ".build-id", ident[:2])
    os.makedirs(tree)
    shutil.copy(path + ".debug", os.path.join(tree, ident[2:] + ".debug"))
    record(recorded, addresses, base, start, ident)
    others = dict(zip(addresses, lines.theirs(path, addresses)))
    for where in (("--binary", path), ("--debug-dir", os.path.join(work, "debug-" + what))):
        status, said = lines.symbolize(stacktap, *where, "-o", named, recorded)
        found = {a - start + base: [(f[1], lines.normal(f[2]), f[3], f[4]) for f in frames]
                 for a, frames in lines.frames_of(named)[0].items()}
        wrong = [f"{a:x}: {found.get(a)}\n      llvm-symbolizer: {other}" for a, other in others.items()
                 if lines.differ(found.get(a), [(n, f, l, c if l else 0) for n, f, l, c in other], {})]
        deep = sum(len(frames) > 2 for frames in found.values())
        tell(status == 0 and len(addresses) > 30 and deep > 5 and not wrong,
             f"{what} by {where[0]}: {len(addresses)} addresses, {deep} of two inlined functions", "\n".join(wrong) or said)
    # nothing is looked up of another build, of a module, and of what lies beyond the image
    for ident_of, mapping, shift in (("ab" * 20, "[kernel]", 0), (ident, "[nf_tables]", 0), (ident, "[kernel]", 0x700000)):
        record(recorded, [a + shift for a in addresses], base, start, ident_of, mapping)
        status, said = lines.symbolize(stacktap, "--binary", path, "-o", named, recorded)
        frames = lines.frames_of(named)[0] if os.path.exists(named) else {}
        tell(status == 0 and not any(frames.values()), f"{what}: no names: {said['objects'][0]['note']}", said)
    # an address that was withheld
    record(recorded, [base], base, start, ident)
    status, said = lines.symbolize(stacktap, "--binary", path, "-o", named, recorded)
    frames = lines.frames_of(named)[0] if os.path.exists(named) else {}
    note = said["objects"][0]["note"] or ""
    tell(status == 0 and not any(frames.values()) and "addresses were withheld when it was recorded" in note,
         f"{what}: the image's first byte is no function: {note}", (said, frames))
    record(recorded, addresses, base, start, ident)
    status, said = lines.symbolize(stacktap, "--binary", without_code(path), "-o", named, recorded)
    note = said["objects"][0]["note"] or ""
    tell(status == 0 and "does not say where the kernel's code begins" in note, f"{what} without code: {note}", said)
    some = [a for a in addresses if others[a][-1][0] == "do_work"]
    record(recorded, some, base, start, ident, name="do_work")
    status, said = lines.symbolize(stacktap, "--binary", path, "-o", named, recorded)
    found = {a - start + base: [f[:1] + f[3:4] for f in frames] for a, frames in lines.frames_of(named)[0].items()}
    tell(status == 0 and found == {a: [(f[0], f[2]) for f in others[a]] for a in some},
         f"{what}: names that are recorded get lines", said)
    tell(said["objects"][0]["found"] == len(some), f"{what}: that is what is found", said)
    for name, count in (("do_work", 0), ("", len(some))):
        record(recorded, some, base, start, ident, name=name)
        status, said = lines.symbolize(stacktap, "--binary", path + ".plain", "-o", named, recorded)
        tell(status == 0 and (said["objects"][0]["found"], said["objects"][0]["with_lines"]) == (count, 0),
             f"{what}: by symbols {count} are found where {'names' if name else 'none'} were recorded: {said['objects'][0]['note']}", said)
    record(recorded, some, base, start, ident, name="do_work")
    said = json.loads(run(stacktap, "annotate", "do_work", "--json", "--binary", path, recorded) or "{}")
    lined = {row["line"]: row["samples"] for section in said.get("sections", ()) for row in section["rows"] if row["samples"]}
    wanted = {}
    for a in some:
        wanted[others[a][-1][2]] = wanted.get(others[a][-1][2], 0) + 1
    tell(lined == wanted, f"{what}: annotate", (said, wanted))
    texts = []
    for places in ((), ("--debug-dir", os.path.join(work, "debug-" + what))):
        said = json.loads(run(stacktap, "annotate", "do_work", "--no-source", "--json", "--binary", path, *places, recorded) or "{}")
        rows = [row for section in said.get("sections", ()) for row in section["rows"]]
        tell(sum(row["samples"] for row in rows) == len(some), f"{what}: annotate --no-source", said)
        texts.append([row.get("text") for row in rows])
    tell(any(texts[0]) and texts[0] == texts[1], f"{what}: of the file that has code, not of that with debug information alone", texts)
    shown = subprocess.run([stacktap, "annotate", "do_work", "--no-source", recorded], capture_output=True, text=True, check=False)
    tell(shown.returncode == 1 and "--binary" in shown.stderr, f"{what}: where there is no file, how to say where one is", shown)


def read_by(command, path):
    """Seconds and bytes that it takes with nothing of the file in the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock, time.monotonic()
    command()
    return time.monotonic() - began, (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512


def check_debian(stacktap, work, path):
    """A kernel's own file, of most of a gigabyte, and how much of it a first line takes."""
    base, ident = 0xffffffff81000000, lines.build_id(path)
    recorded, named = os.path.join(work, "in.otlp"), os.path.join(work, "out.otlp")
    first, size = lines.text_range(path)
    addresses = sorted(random.Random(ident).sample(range(first, first + size), 10000))

    def record_some(some):
        lines.record_kernel(recorded, "[kernel]", ident, (base, base + size + 0x1000000), [(a, "") for a in some])

    def symbolize():
        return lines.symbolize(stacktap, "--binary", path, "-o", named, recorded)
    record_some(addresses[5000:5001])
    seconds, read = read_by(symbolize, path)
    whole, lined = os.path.getsize(path), [f for f in lines.frames_of(named)[0].values() if f and f[0][3]]
    tell(lined and read < whole / 4, f"vmlinux of {whole >> 20} MiB: a first line after {seconds:.2f} s, {read >> 20} MiB read", (lined, read))
    record_some(addresses)
    status, said = symbolize()
    found = {a: [(f[1], lines.normal(f[2]), f[3], f[4]) for f in frames] for message in lines.frames_of(named)
             for a, frames in message.items()}
    others, same, labels = lines.theirs(path, addresses, raw=True), lines.aliases(lines.functions(path)), debug_packages.labels(path)
    wrong = [f"{a:x}: {found.get(a)}\n      llvm-symbolizer: {other}" for a, other in zip(addresses, others)
             if lines.differ(found.get(a), debug_packages.expected(found.get(a, []), other, None, labels), same)]
    inlined = sum(len(frames) > 1 for frames in found.values())
    tell(status == 0 and len(others) == len(addresses) and not wrong and inlined > 2000,
         f"vmlinux: {len(addresses)} addresses, {inlined} with inlined functions", "\n".join(wrong) or said)


def main():
    stacktap, work, *debian = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    x86, arm = 0xffffffff81000000, 0xffff800008000000
    native = os.uname().machine
    for name, base, start, prefix, flags in (("x86_64", x86, x86, "x86_64-linux-gnu-", ("-mcmodel=kernel", "-mno-red-zone")),
                                             ("aarch64", arm, 0, "aarch64-linux-gnu-", ())):
        prefix = "" if native == name else prefix
        if shutil.which(prefix + "gcc"):
            check(stacktap, work, build(work, name, base, prefix, *flags), base, start)
    for path in debian:
        check_debian(stacktap, work, path)
    print(f"1..{len(lines.RESULTS)}")
    return 0 if all(lines.RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

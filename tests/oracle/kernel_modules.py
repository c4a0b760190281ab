# SPDX-License-Identifier: Apache-2.0
"""Name frames in a kernel module by its relocatable file, and compare with what llvm-symbolizer says of the same objects when the
linker has placed them as a kernel does. Prints TAP.

usage: kernel_modules.py STACKTAP WORK-DIRECTORY
"""
import json
import os
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True

import lines  # noqa: E402

tell, run = lines.tell, lines.run

BASE = 0x4000000

# one section after the other, as modules are linked; a kernel leaves out .exit.text if it cannot unload modules
TEXT = (".plt", ".text", ".text.unlikely", ".text.more", ".exit.text", ".text.late", ".init.text")
RELOCATABLE = "SECTIONS {\n" + "".join(f"\t{name} 0 : {{ *({name}) }}\n" for name in TEXT) + """
	.gnu.linkonce.this_module 0 : { KEEP(*(.gnu.linkonce.this_module)) }
	/DISCARD/ : { *(.comment) *(.note.gnu.property) *(.dropped) }
}
"""
PLACED = f"SECTIONS {{\n\t. = {BASE:#x};\n" + "".join(f"\t{name} : {{ *({name}) }}\n" for name in TEXT) + """
	. = ALIGN(0x10000);
	.rodata : { *(.rodata .rodata.*) }
	.data : { *(.data .bss .gnu.linkonce.this_module) }
	/DISCARD/ : { *(.comment) *(.note.gnu.property) *(.eh_frame) *(.dropped) }
}
"""
# both files have a function `help', and `dropped' is one that the linker leaves out
SOURCES = ("""
__attribute__((section(".gnu.linkonce.this_module"), used)) long module[8];
extern int more(int);
int table[64];
static inline __attribute__((always_inline)) int square(int x) { return x * x + table[x & 63]; }
static inline __attribute__((always_inline)) int cube(int x) { return x * square(x); }
__attribute__((cold, noinline)) static int fail(int x) { return more(cube(x)); }
__attribute__((noinline)) static int help(int x) { return square(x) % 5; }
__attribute__((noinline)) int do_work(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += cube(i) % 7 + help(i);
	if (__builtin_expect(sum == 3, 0))
		sum += fail(sum);
	return sum;
}
__attribute__((section(".dropped"), noinline)) int dropped(int x) { return square(x) + more(x); }
__attribute__((section(".init.text"))) int init_module(int x) { return do_work(cube(x)); }
""", """
extern int do_work(int);
extern int table[64];
static inline __attribute__((always_inline)) int half(int x) { return x / 2 + table[x & 7]; }
__attribute__((noinline)) static int help(int x) { return half(x) % 3 + half(x + 1); }
__attribute__((noinline)) int more(int x) { table[x & 63] = help(x); return do_work(x) + 1; }
__attribute__((section(".text.more"), aligned(64))) int further(int x) { return more(half(x)); }
__attribute__((section(".exit.text"))) void cleanup_module(void) { table[0] = more(half(table[1])); }
__attribute__((section(".text.late"))) int late(int x) { return more(x) + half(x); }
""")


# as lld leaves it to arm64's kernel, which makes it larger, and code of it
PLT = """
__asm__(".pushsection .plt,\\"a\\"\\n.byte 0\\n.popsection");
"""


def build(work, name, compiler, prefix, *flags, more=""):
    path = os.path.join(work, name + ".ko")
    for end, text in ((".rel.lds", RELOCATABLE), (".lds", PLACED)):
        with open(path + end, "w", encoding="utf-8") as file:
            file.write(text)
    objects = []
    for i, text in enumerate(SOURCES):
        source = f"{path}.{i}.c"
        with open(source, "w", encoding="utf-8") as file:
            file.write(text + more)
        more = ""
        objects.append(f"{path}.{i}.o")
        subprocess.run([*compiler, "-O2", "-g", "-ffreestanding", "-fno-pic", "-fno-asynchronous-unwind-tables", *flags, "-c", "-o",
                        objects[-1], source], check=True)
    subprocess.run([prefix + "ld", "-r", "--build-id", "-T", path + ".rel.lds", "-o", path, *objects], check=True)
    subprocess.run([prefix + "ld", "-T", path + ".lds", "-e", "do_work", "--no-warn-rwx-segments", "-o", path + ".placed", *objects],
                   check=True)
    subprocess.run([prefix + "objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
    subprocess.run([prefix + "strip", "--strip-debug", "-o", path + ".stripped", path], check=True)
    return path


def functions(path):
    """Addresses of all functions, from where the module begins, with their names."""
    found = {}
    for line in run("nm", "-S", "--defined-only", path + ".placed").splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "Tt":
            start, size = int(words[0], 16) - BASE, int(words[1], 16)
            found.update({a: words[3] for a in range(start, start + size, 4)})
    # the first byte is an address that was withheld
    found.pop(0, None)
    return found


def record(path, names, ident, what="[shop_floor]"):
    lines.record_kernel(path, what, ident, (0, 0x100000), sorted(names.items()))


def put(path, *directory):
    tree = os.path.join(*directory)
    os.makedirs(os.path.dirname(tree), exist_ok=True)
    shutil.copy(path, tree)
    return directory[0]


class Case:
    def __init__(self, stacktap, work, path, what):
        self.stacktap, self.work, self.path, self.what = stacktap, work, path, what
        self.ident, self.names = lines.build_id(path), functions(path)
        # an arm64 kernel may align all sections but the first by more than the file says
        unknown = ("cleanup_module", "late", "init_module") + (("fail", "further") if "aarch64" in what else ())
        self.inside = {a: n for a, n in self.names.items() if n not in unknown}
        self.recorded, self.named = os.path.join(work, "in.otlp"), os.path.join(work, "out.otlp")
        self.others = {a - BASE: frames for a, frames in zip(sorted(a + BASE for a in self.names), lines.theirs(
            path + ".placed", sorted(a + BASE for a in self.names)))}

    def symbolize(self, *where, names=None, ident=None, what="[shop_floor]"):
        """What is said, and frames with a line, of each address."""
        record(self.recorded, self.names if names is None else names, ident or self.ident, what)
        status, said = lines.symbolize(self.stacktap, *where, "-o", self.named, self.recorded)
        frames = lines.frames_of(self.named)[0] if os.path.exists(self.named) else {}
        lined = {a: [(f[0], lines.normal(f[2]), f[3], f[4]) for f in found] for a, found in frames.items() if any(f[3] for f in found)}
        return status, said["objects"][0]["note"] or "", lined

    def all_right(self, title, *where):
        status, note, lined = self.symbolize(*where)
        # compilers give some instructions no line
        wanted = {a for a in self.inside if any(f[2] for f in self.others[a])}
        wrong = [f"{a:x}: {lined.get(a)}\n      llvm-symbolizer: {self.others[a]}" for a in wanted
                 if lines.differ(lined.get(a), [(n, f, l, c if l else 0) for n, f, l, c in self.others[a]], {})]
        deep = sum(len(frames) > 2 for frames in lined.values())
        tell(status == 0 and len(wanted) > 60 and deep >= 3 and not wrong and lined.keys() == wanted,
             f"{self.what} {title}: {len(wanted)} addresses, {deep} of two inlined functions",
             "\n".join(wrong) or (note, lined.keys() ^ wanted))

    def none(self, title, *where, word="", **recorded):
        status, note, lined = self.symbolize(*where, **recorded)
        tell(status == 0 and not lined and word in note, f"{self.what} {title}: {note}", lined)


def check_places(case):
    base, debug = os.path.join(case.work, case.what), case.path + ".debug"
    case.all_right("by --binary", "--binary", case.path)
    case.all_right("by build-id", "--debug-dir",
                   put(debug, base + "-ids", ".build-id", case.ident[:2], case.ident[2:] + ".debug"))
    case.all_right("where distributions install debug files", "--debug-dir",
                   put(debug, base + "-debug", "lib/modules/6.1.0/kernel/net/shop-floor.ko.debug"))
    root = put(case.path + ".stripped", base + "-root", "usr/lib/modules/6.1.0/kernel/net/shop_floor.ko")
    os.symlink("usr/lib", os.path.join(root, "lib"))
    case.none("of an image has no DWARF", "--sysroot", root, word="it has no DWARF")
    put(debug, root, "usr/lib/debug/lib/modules/6.1.0/kernel/net/shop_floor.ko.debug")
    case.all_right("by --sysroot", "--sysroot", root)
    case.none("of another name is not looked into", "--sysroot", root, what="[shop_flood]", word="there is no file of this build")
    case.none("of another build", "--sysroot", root, ident="ab" * 20, word="is of another build")


def check_packed(case):
    """As distributions install them; one that ends too early, and one that has much more in it."""
    for end, tool in ((".gz", ("gzip",)), (".xz", ("xz", "--check=crc32")), (".zst", ("zstd", "-q"))):
        packed = case.path + end
        with open(packed, "wb") as file:
            subprocess.run([*tool, "-c", case.path], check=True, stdout=file)
        case.all_right(f"by --binary, {end}", "--binary", packed)
        root = put(packed, os.path.join(case.work, case.what + end), "lib/modules/6.1.0/kernel/net/shop-floor.ko" + end)
        case.all_right(f"where distributions install it, {end}", "--debug-dir", root)
        check_annotate_packed(case, packed)
        placed = os.path.join(root, "lib/modules/6.1.0/kernel/net/shop-floor.ko" + end)
        os.truncate(placed, os.path.getsize(placed) // 2)
        case.none(f"half of {end}", "--debug-dir", root, word="it is damaged or truncated")
        if end != ".zst":
            continue
        with open(placed, "wb") as file:
            zeros = subprocess.Popen(["head", "-c", "200M", "/dev/zero"], stdout=subprocess.PIPE)
            subprocess.run([*tool, "-c"], check=True, stdin=zeros.stdout, stdout=file)
            zeros.communicate()
        case.none(f"200 MiB of zeros in {end}", "--debug-dir", root, word="it is too large to read")


def check_annotate_packed(case, packed):
    """The same rows as by the file itself."""
    record(case.recorded, {a: n for a, n in case.names.items() if n == "do_work"}, case.ident)
    shown = [json.loads(run(case.stacktap, "annotate", "do_work", "--json", "--binary", path, case.recorded) or "{}").get("sections")
             for path in (case.path, packed)]
    tell(shown[0] and [s["rows"] for s in shown[0]] == [s["rows"] for s in shown[1]],
         f"{case.what}: annotate by {os.path.basename(packed)}", shown)


def check_names(case):
    where = ("--binary", case.path)
    status, note, lined = case.symbolize(*where, names={a: n if a % 16 else "other" for a, n in case.names.items()})
    wanted = {a for a in case.inside if a % 16}
    tell(status == 0 and lined.keys() == wanted and "stay as recorded" in note,
         f"{case.what}: what has another function there stays as it was: {note}", lined.keys() ^ wanted)
    # as by a kernel that has put something in front of it, also less than most functions are long
    for shift in (0x90, 8):
        case.none(f"whose code is {shift} bytes further on", *where, word="all stay as recorded",
                  names={a + shift: n for a, n in case.names.items()})
    # a right .text does not vouch for what is behind it
    case.none("a part of whose code is elsewhere", *where, word="all stay as recorded",
              names={a + (8 if n in ("help", "more") else 0): n for a, n in case.names.items()})
    # labels of the kernel's table that are no functions of the file, of most
    status, note, lined = case.symbolize(*where, names={a: n if a % 16 == 4 else "label" for a, n in case.names.items()})
    wanted = {a for a in case.inside if a % 16 == 4}
    tell(status == 0 and lined.keys() == wanted and "another function at their addresses" in note,
         f"{case.what}: labels refuse nothing but themselves: {note}", lined.keys() ^ wanted)
    case.none("whose address was withheld", *where, names={0: "do_work"}, word="withheld (kernel.kptr_restrict)")
    case.none("without names", *where, names={a: "" for a in case.names}, word="nothing recorded says")
    case.none("with a kernel's Mapping", *where, what="[kernel]", word="is a kernel module's file")


def check_broken(case):
    """A relocation that is none of debug information, and one of a symbol that there is not."""
    with open(case.path, "rb") as file:
        whole = bytearray(file.read())
    offset = lines_section(case.path, ".rela.debug_info")
    for what, at, number in (("an unknown relocation", 8, 0x99), ("a symbol that there is not", 12, 0x7fffffff),
                             ("a place outside", 4, 0x7fffffff)):
        changed = bytearray(whole)
        struct.pack_into("<I", changed, offset + at, number)
        with open(case.path + ".broken", "wb") as file:
            file.write(changed)
        status, note, lined = case.symbolize("--binary", case.path + ".broken")
        tell(status == 0 and not lined and "relocations" in note, f"{case.what}: {what}: {note}", lined)


def check_plt(case):
    """Nothing of a file whose .plt, without flags of code, is in front of all."""
    # binutils give that name those flags, whatever is asked for
    with open(case.path, "r+b") as file:
        file.seek(0x28)
        headers = struct.unpack("<Q", file.read(8))[0]
        number = next(int(line.split("]")[0].split("[")[1]) for line in run("readelf", "-SW", case.path).splitlines() if "] .plt " in line)
        file.seek(headers + number * 64 + 8)
        file.write(struct.pack("<Q", 2))
    case.none("behind a .plt", "--binary", case.path, word="depends on the kernel",
              names={a + 0x40: n for a, n in case.names.items()})
    case.none("right behind a .plt", "--binary", case.path, word="depends on the kernel")


def check_kinds(case):
    """Files of the right build-id, or of a debug link's checksum, that are no modules of these machines; and what is no module's tree."""
    with open(case.path, "rb") as file:
        whole = bytearray(file.read())
    struct.pack_into("<H", whole, 18, 243)
    other = os.path.join(case.work, case.what + ".machine.ko")
    with open(other, "wb") as file:
        file.write(whole)
    case.none("of another machine", "--binary", other, word="for an unsupported machine")
    for name in ("build", "source", "vdso"):
        root = put(case.path, os.path.join(case.work, f"{case.what}-{name}"), f"lib/modules/6.1.0/{name}/shop-floor.ko")
        case.none(f"in {name}", "--debug-dir", root, word="there is no file of this build")
    # one more than are looked at
    root = put(case.path, os.path.join(case.work, case.what + "-many"), "lib/modules/6.1.0/a/unlike.ko")
    many = os.path.join(root, "lib/modules/6.1.0/a/")
    for i in range(0x10000):
        os.symlink("unlike.ko", f"{many}{i}")
    case.none("among too many", "--debug-dir", root, word="among the first 65536")
    shutil.rmtree(root)


def check_link(stacktap, work, case):
    """A debug link to a module's file, which has no build-id: its checksum is right."""
    program, module = os.path.join(work, "linked"), os.path.join(work, "linked.debug")
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", case.path, module], check=True)
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write("int main(void) { return 0; }")
    subprocess.run(["gcc", "-s", "-Wl,--build-id=none", "-o", program, program + ".c"], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={module}", program], check=True)
    recorded = os.path.join(work, "linked.otlp")
    lines.write(recorded, lines.Recording(program, [0x1000], htlhash=lines.htlhash_of(program)))
    said = lines.symbolize(stacktap, "--binary", program, "-o", recorded + ".out", recorded)[1]
    tell(said["objects"][0].get("file") == program, "a debug link to a module's file", said)


def lines_section(path, name):
    for line in run("readelf", "-SW", path).splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == name:
            return int(words[4], 16)
    raise ValueError(name)


def check_annotate(case):
    some = {a: n for a, n in case.names.items() if n == "do_work"}
    record(case.recorded, some, case.ident)
    wanted = {}
    for a in some:
        wanted[case.others[a][-1][2]] = wanted.get(case.others[a][-1][2], 0) + 1
    said = json.loads(run(case.stacktap, "annotate", "do_work", "--json", "--binary", case.path, case.recorded) or "{}")
    lined = {row["line"]: row["samples"] for section in said.get("sections", ()) for row in section["rows"] if row["samples"]}
    tell(lined == wanted, f"{case.what}: annotate", (said, wanted))
    for more, word in ((("--no-source", "--binary", case.path), "targets are filled in when it is loaded"),
                       (("--binary", case.path + ".stripped"), "it has no DWARF; --binary"),
                       ((), "there is no file of this build; --binary")):
        shown = subprocess.run([case.stacktap, "annotate", "do_work", *more, case.recorded], capture_output=True, text=True, check=False)
        tell(shown.returncode == 1 and word in shown.stderr, f"{case.what}: {shown.stderr.strip()}", shown)
    record(case.recorded, {a: "elsewhere" for a in some}, case.ident)
    shown = subprocess.run([case.stacktap, "annotate", "elsewhere", "--binary", case.path, case.recorded], capture_output=True,
                           text=True, check=False)
    tell(f"has another function at {len(some)} of its addresses; these" in shown.stdout + shown.stderr,
         f"{case.what}: annotate what has another function there", shown)
    # moved by less than it is long, and where the file has none
    for what, moved, word in (("is elsewhere", {a - 32: n for a, n in some.items()}, "elsewhere; none has a line"),
                              ("is behind all", {**some, 0x80000: "do_work"}, "has no function at 1 of its addresses")):
        record(case.recorded, moved, case.ident)
        shown = subprocess.run([case.stacktap, "annotate", "do_work", "--json", "--binary", case.path, case.recorded],
                               capture_output=True, text=True, check=False)
        said = json.loads(shown.stdout or "{}")
        tell(word in shown.stdout and (what != "is elsewhere" or not any(
            row["samples"] for section in said.get("sections", ()) for row in section["rows"])),
             f"{case.what}: annotate what {what}", shown)
    check_annotate_lined(case, some)


def check_annotate_lined(case, some):
    """What is recorded with its lines is shown, whatever there is of files."""
    record(case.recorded, some, case.ident)
    lines.symbolize(case.stacktap, "--binary", case.path, "-o", case.named, case.recorded)
    for more in ((), ("--binary", case.path + ".stripped")):
        shown = subprocess.run([case.stacktap, "annotate", "do_work", *more, case.named], capture_output=True, text=True, check=False)
        tell(shown.returncode == 0 and "cannot be shown" not in shown.stdout + shown.stderr,
             f"{case.what}: annotate what has lines {' '.join(more[:1])}", shown)
    shown = subprocess.run([case.stacktap, "annotate", "do_work", "--no-source", case.named], capture_output=True, text=True, check=False)
    tell(shown.stderr.endswith("targets are filled in when it is loaded\n"), f"{case.what}: annotate --no-source: {shown.stderr.strip()}", shown)


def main():
    stacktap, work = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    native = os.uname().machine
    for name, flags in (("x86_64", ("-mcmodel=kernel", "-mno-red-zone")), ("aarch64", ())):
        prefix = "" if native == name else name + "-linux-gnu-"
        if not shutil.which(prefix + "gcc"):
            continue
        gcc = [prefix + "gcc"]
        case = Case(stacktap, work, build(work, name, gcc, prefix, "-gdwarf-5", *flags), name)
        check_places(case)
        if native == name:
            check_packed(case)
        check_names(case)
        check_broken(case)
        check_annotate(case)
        if name == "x86_64":
            check_kinds(case)
            if native == name:
                check_link(stacktap, work, case)
        for what, more in (("DWARF 4", ("-gdwarf-4",)), ("compressed", ("-gdwarf-5", "-gz"))):
            again = Case(stacktap, work, build(work, f"{name}-{more[-1]}", gcc, prefix, *more, *flags), f"{name} {what}")
            again.all_right("by --binary", "--binary", again.path)
        check_plt(Case(stacktap, work, build(work, name + "-plt", gcc, prefix, "-gdwarf-5", *flags, more=PLT), name + " plt"))
        if shutil.which("clang"):
            # without .debug_aranges: an index is made of the units, and kept for the second time
            clang = ["clang", "--target=" + name + "-linux-gnu"]
            again = Case(stacktap, work, build(work, name + "-clang", clang, prefix, "-gdwarf-5", *flags), name + " of clang")
            for time in ("first", "second"):
                again.all_right(f"for the {time} time", "--binary", again.path)
    print(f"1..{len(lines.RESULTS)}")
    return 0 if all(lines.RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

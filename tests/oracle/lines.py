# SPDX-License-Identifier: Apache-2.0
"""Compare our functions, lines and inlined frames with llvm-symbolizer's, some also with addr2line's and eu-addr2line's, then name
recordings by them. Prints TAP.

usage: lines.py LINE_NAMES STACKTAP WORK-DIRECTORY

Where llvm-symbolizer and we differ by intent (the others: peers.py):
* one address, several names: any of those that nm has there is right;
* in no function: llvm-symbolizer says the line, we say nothing;
* without a line: the file is the one that the function is declared in for us, none or the STT_FILE symbol for
  llvm-symbolizer.
"""
import collections
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "otlp"))

import check  # noqa: E402
import make_sample  # noqa: E402
import peers  # noqa: E402
import wire  # noqa: E402
from wire import Message  # noqa: E402

RESULTS = []
PER_FILE = 2000
PER_PEER = 600 if os.environ.get("FULL") else 50    # of those, for addr2line and eu-addr2line
PER_MESSAGE = 500
START = 1_790_000_000_000_000_000
NO_LINES = "without lines: its DWARF has none for these addresses, or is damaged"

CXX = r"""
#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>
namespace shop { template <class T> struct cart { std::map<std::string, std::vector<T>> items;
    __attribute__((noinline)) size_t add(const std::string &k, T v) { items[k].push_back(v);
        return items.size(); } }; }
static inline int twice(int x)
{
    return x * 2 + printf("%d", x);
}
static inline __attribute__((always_inline)) int thrice(int x)
{
    return twice(x) + twice(x + 1);
}
static __attribute__((noinline)) int hidden(int x) { return thrice(x) + thrice(x * 7); }
int main(int argc, char **argv) { shop::cart<int> c; shop::cart<std::string> d;
    std::vector<std::string> all(argv, argv + argc);
    std::sort(all.begin(), all.end(), [](const std::string &a, const std::string &b) { return a > b; });
    struct local { static int calc(int n) { std::vector<int> v(n); std::iota(v.begin(), v.end(), 3);
        return std::accumulate(v.begin(), v.end(), 0); } };
    return (int)(c.add(argv[0], argc) + d.add("x", all[0])) + hidden(argc) + local::calc(argc); }
"""

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static inline int step(int x) {
    return x & 1 ? 3 * x + 1 : x / 2; }
static inline int steps(int x) {
    int n = 0;
    for (; x != 1; n++)
        x = step(x);
    return n; }
__attribute__((noinline)) int longest(int limit) {
    int best = 0;
    for (int i = 1; i < limit; i++)
        if (steps(i) > best)
            best = steps(i);
    return best; }
#define TWICE(x) ((x) + (x))
static void fail(const char *why) { fprintf(stderr, "%s\n", why); exit(TWICE(1)); }
int main(int argc, char **argv) {
    int numbers[64];
    int nested(int x) { return x + argc; }
    if (argc > 60) fail(argv[0]);
    for (int i = 0; i < 64; i++) numbers[i] = nested(longest(i + argc));
    qsort(numbers, 64, sizeof(*numbers), compare);
    return numbers[argc]; }
"""

# functions in two parts (.cold), and one that is picked when it is first called
COLD = r"""
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int mix(int x) { return x * 31 ^ x >> 3; }
static __attribute__((cold, noinline)) void complain(int x) { fprintf(stderr, "%d\n", mix(x)); }
__attribute__((noinline)) int check(int x) {
    for (int i = 0; i < x; i++)
        if (__builtin_expect(mix(i) == 77, 0)) {
            complain(i);
            complain(mix(i));
            if (x > 1000)
                abort();
        }
    return mix(x); }
static int one(int x) { return mix(x) + 1; }
static int two(int x) { return mix(x) + 2; }
static int (*pick(void))(int) { return getenv ? one : two; }
int picked(int x) __attribute__((ifunc("pick")));
int main(int argc, char **argv) {
    (void)argv;
    return check(argc) + picked(argc); }
"""

# internal procedures, which are entries inside of others; a module's procedure
FORTRAN = """
module heat
contains
  pure function mix(a, b) result(c)
    real, intent(in) :: a, b
    real :: c
    c = 0.5 * a + 0.25 * b
  end function
  subroutine relax(t, n)
    integer, intent(in) :: n
    real, intent(inout) :: t(n)
    integer :: i, k
    do k = 1, 3
      do i = 2, n - 1
        t(i) = mix(t(i), t(i - 1) + t(i + 1))
      end do
      call bound()
    end do
  contains
    subroutine bound()
      t(1) = sum(t) / n
      t(n) = maxval(t) - t(1)
      if (t(n) > 100.0) print *, 'hot', t(n)
    end subroutine
  end subroutine
end module
program main
  use heat
  real :: t(100)
  character(8) :: arg
  call random_number(t)
  call get_command_argument(1, arg)
  call relax(t, 100 - len_trim(arg))
  print *, t(50)
end program
"""

RUST = """
use std::collections::BTreeMap;
#[inline(always)]
fn step(x: u64) -> u64 { if x & 1 == 1 { 3 * x + 1 } else { x / 2 } }
#[inline(never)]
fn longest(limit: u64) -> u64 {
    (1..limit).map(|i| { let (mut x, mut n) = (i, 0); while x != 1 { x = step(x); n += 1; } n }).max().unwrap_or(0)
}
trait Shape { fn area(&self) -> f64; }
struct Square(f64);
impl Shape for Square { #[inline(never)] fn area(&self) -> f64 { self.0 * self.0 + longest(10) as f64 } }
fn main() {
    let count = std::env::args().count() as u64;
    let mut seen: BTreeMap<u64, String> = BTreeMap::new();
    for i in 0..count * 10 { seen.insert(longest(i * 7), format!("{i}")); }
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(count as f64))];
    println!("{} {}", seen.len(), shapes.iter().map(|s| s.area()).sum::<f64>());
}
"""

OCAML = """
let rec insert x = function [] -> [ x ] | y :: rest as all -> if x <= y then x :: all else y :: insert x rest
let sort list = List.fold_left (fun sorted x -> insert x sorted) [] list
module Shop = struct
  let cart : (string, int list) Hashtbl.t = Hashtbl.create 16
  let add name price = Hashtbl.replace cart name (price :: (try Hashtbl.find cart name with Not_found -> []))
end
let () =
  let n = Array.length Sys.argv in
  for i = 0 to 100 * n do Shop.add (string_of_int (i mod 7)) (i * 31 mod 97) done;
  Hashtbl.iter (fun name prices -> Printf.printf "%s %d\\n" name (List.hd (sort prices))) Shop.cart
"""

# a function whose origin is itself, and one inlined in it whose origin is in the other file and there itself again
CIRCLE = r"""
    .text
    .globl _start
    .type _start, %function
_start: .skip 32
.Lend:
    .size _start, . - _start
    .section .debug_abbrev, "", %progbits
    .uleb128 1, 0x11; .byte 1; .uleb128 0x11, 1, 0x12, 7, 0, 0
    .uleb128 2, 0x2e; .byte 1; .uleb128 0x11, 1, 0x12, 7, 0x31, 0x13, 0, 0      # origin: in this unit
    .uleb128 3, 0x1d; .byte 0; .uleb128 0x11, 1, 0x12, 7, 0x31, 0x1f20, 0, 0    # origin: in the other file
    .uleb128 0
    .section .debug_info, "", %progbits
0:  .long 2f - 1f
1:  .short 4; .long .debug_abbrev; .byte 8
    .uleb128 1; .quad _start; .quad .Lend - _start
3:  .uleb128 2; .quad _start; .quad .Lend - _start; .long 3b - 0b
    .uleb128 3; .quad _start + 8; .quad 8; .long 12
    .uleb128 0, 0
2:  .section .gnu_debugaltlink, "", %progbits
    .asciz "/usr/lib/debug/.dwz/other.debug"
    .byte 0xab, 0xcd, 0xef, 0x01
"""
OTHER_CIRCLE = r"""
    .section .debug_abbrev, "", %progbits
    .uleb128 1, 0x3c; .byte 1; .uleb128 0, 0
    .uleb128 2, 0x2e; .byte 0; .uleb128 0x31, 0x1f20, 0, 0
    .uleb128 0
    .section .debug_info, "", %progbits
0:  .long 2f - 1f
1:  .short 4; .long 0; .byte 8
    .uleb128 1
3:  .uleb128 2; .long 3b - 0b
    .uleb128 0
2:  .section .gnu_debugaltlink, "", %progbits
    .asciz "/usr/lib/debug/.dwz/other.debug"
    .byte 0xab, 0xcd, 0xef, 0x01
"""

# a second unit, so that not all of a package begins at 0
MORE = r"""
#include <algorithm>
#include <vector>
static inline __attribute__((always_inline)) int fold(int x) { return (x ^ x >> 7) * 31; }
static inline __attribute__((always_inline)) int folded(const std::vector<int> &v) {
    int sum = 0;
    for (int x : v)
        sum += fold(x);
    return sum; }
int more(std::vector<int> v, int n) {
    std::sort(v.begin(), v.end());
    return v.empty() || n < 3 ? fold(n) : folded(v) + more(std::vector<int>(v.begin(), v.begin() + n / 2), n / 2); }
"""

# what is compiled of two sources, and the packager, if there is one that reads that: dwp of Binutils 2.40 has no DWARF 5,
# and llvm-dwp 14 does not end on gcc's
SPLIT = (
    ("gcc", "g++", 4, "dwp"),
    ("gcc", "g++", 4, "llvm-dwp"),
    ("clang", "clang++", 4, "dwp"),
    ("clang", "clang++", 5, "llvm-dwp"),
)

ARM64 = "aarch64-linux-gnu-"

# where packages have what dwz has moved
MOVED = "/usr/lib/debug/.dwz/some-linux-gnu/shared.debug"

# what is compiled: name, compiler, flags
VARIANTS = (
    ("gcc-dwarf5", "g++", "shop.cc", "-O2 -g -gdwarf-5"),
    ("gcc-dwarf4-gz", "g++", "shop.cc", "-O2 -g -gdwarf-4 -gz"),
    ("gcc-O0", "g++", "shop.cc", "-O0 -g"),
    ("gcc-lto", "g++", "shop.cc", "-O2 -g -flto"),
    ("gcc-relative", "g++", "./shop.cc", "-O2 -g -fdebug-prefix-map=/tmp=/built"),
    ("gcc-relative-directory", "g++", "./shop.cc", "-O2 -g -gdwarf-5 -fdebug-prefix-map=/tmp=."),
    ("gcc-c-nested", "gcc", "tree.c", "-O2 -g"),
    ("gcc-nested-dwarf64-gz", "gcc", "tree.c", "-O2 -g -gdwarf64 -gz"),
    ("gcc-cold", "gcc", "cold.c", "-O2 -g"),
    ("clang-dwarf4", "clang++", "shop.cc", "-O2 -g -gdwarf-4"),
    ("clang-dwarf5-gz", "clang++", "shop.cc", "-O2 -g -gdwarf-5 -gz"),
    ("clang-sections", "clang++", "shop.cc", "-O2 -g -ffunction-sections -Wl,--gc-sections"),
    ("gcc-split", "g++", "shop.cc", "-O2 -g -gsplit-dwarf"),
    ("gfortran", "gfortran", "heat.f90", "-O2 -g -Jheat-O2"),
    ("gfortran-O0", "gfortran", "heat.f90", "-O0 -g -Jheat-O0"),
    ("rustc", "rustc", "walk.rs", "-g -O"),
    ("rustc-O0", "rustc", "walk.rs", "-g"),
    ("ocamlopt", "ocamlopt", "shop.ml", "-g"),
    ("arm64-cxx", ARM64 + "g++", "shop.cc", "-O2 -g -gdwarf-5"),
    ("arm64-c-nested", ARM64 + "gcc", "tree.c", "-O2 -g -gdwarf-4"),
    ("arm64-c-cold", ARM64 + "gcc", "cold.c", "-O2 -g -gdwarf-5"),
)
NOT_ASKED = {"addr2line": ("split", "dwarf64"), "eu-addr2line": ("clang",)}
LINKED_BY = {"rustc": ("-C", "link-arg=-Wl,--build-id"), "ocamlopt": ("-ccopt", "-Wl,--build-id")}


def tell(good, what, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - lines: {what}", flush=True)
    if not good and detail:
        print("\n".join("# " + line for line in str(detail).splitlines()[:20]))


run, normal = peers.run, peers.normal


def ours(program, path, addresses, *more):
    """Per address a list of (name, file, line, column), innermost first."""
    answers, frames = [], []
    for line in run(program, path, *more, text="".join(f"{a:x}\n" for a in addresses)).splitlines():
        if line:
            name, file, number, column, _ = line.split("\t")
            frames.append((name, normal(file), int(number), int(column)))
        else:
            answers.append(frames)
            frames = []
    return answers


def theirs(path, addresses, raw=False):
    """The same of llvm-symbolizer; @raw: with paths as they are told."""
    answers = []
    text = run("llvm-symbolizer", "-e", path, "--no-demangle", "-i", "--functions=linkage",
               text="".join(f"{a:#x}\n" for a in addresses))
    for block in text.strip("\n").split("\n\n"):
        lines, frames = block.split("\n"), []
        for name, place in zip(lines[::2], lines[1::2]):
            file, number, column = place.rsplit(":", 2)
            frames.append(("" if name == "??" else name, file if raw else normal(file), int(number), int(column)))
        answers.append(frames)
    return answers


def functions(path):
    names = {}
    for line in run("nm", "--defined-only", path).splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TtWwi":
            names.setdefault(int(words[0], 16), set()).add(words[2].split("@")[0])
    return names


def text_range(path):
    for line in run("readelf", "-SW", path).splitlines():
        found = re.search(r"\] \.text +[A-Z]+ +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", line)
        if found:
            return int(found[1], 16), int(found[2], 16)
    return 0, 0


def aliases(names):
    """Every name with all that begin where it does."""
    same = {}
    for group in names.values():
        for name in group:
            same.setdefault(name, set()).update(group)
    return same


def differ(mine, other, same):
    if not mine:
        return bool(other[0][0])
    mine, other = ([frame if frame[2] else (frame[0], "", 0, frame[3]) for frame in frames]
                   for frames in (mine, other))
    if mine[-1][0] in same.get(other[-1][0], ()):
        mine = mine[:-1] + [other[-1][:1] + mine[-1][1:]]
    return mine != other


def compare(program, path, debug, *more, is_split=False, asked=None, peer_path=None):
    """@asked: {tool: (rules, what is wrong)} of others, which are asked about some of the addresses, in @peer_path."""
    names = functions(path)
    first, size = text_range(path)
    addresses = random.Random(os.path.basename(path)).sample(range(first, first + size), min(size, PER_FILE))
    addresses = sorted(set(addresses) | {a for a in names if first <= a < first + size})
    same, wrong, inlined, lined = aliases(names), [], 0, 0
    mine, others = ours(program, debug, addresses, *more), theirs(path, addresses)
    if not len(mine) == len(others) == len(addresses):
        return len(addresses), 0, 0, [f"{len(mine)} and {len(others)} answers for {len(addresses)} addresses"]
    agreed = []
    for address, frames, other in zip(addresses, mine, others):
        inlined += len(frames) > 1
        lined += bool(frames) and frames[0][2] > 0
        if is_split and frames:
            # the innermost line and the outermost name are in the file itself
            other = [other[-1][:1] + other[0][1:]]
        agreed.append(not differ(frames, other, same))
        if not agreed[-1]:
            wrong.append(f"{address:x}: {frames}\n      llvm-symbolizer: {other}")
    chosen = sorted(random.Random(7).sample(range(len(addresses)), min(PER_PEER, len(addresses))))
    for tool, (rules_met, unlike) in (asked or {}).items():
        prefix = ARM64 if os.path.basename(path).startswith("arm64") else ""
        peer = peers.Peer(tool, peer_path or path, [addresses[i] for i in chosen], same, prefix).compare(
            *([values[i] for i in chosen] for values in (addresses, mine, agreed)))
        rules_met.update(peer.counts)
        unlike += [f"{os.path.basename(path)}: {text}" for text in peer.wrong]
    return len(addresses), inlined, lined, wrong


def build(work):
    for name, text in (("shop.cc", CXX), ("tree.c", C), ("cold.c", COLD), ("heat.f90", FORTRAN), ("walk.rs", RUST),
                       ("shop.ml", OCAML)):
        with open(os.path.join(work, name), "w", encoding="utf-8") as file:
            file.write(text)
    # they run at once, and each compiler of Fortran renames its module's file
    for directory in ("heat-O2", "heat-O0"):
        os.mkdir(os.path.join(work, directory))
    running = [subprocess.Popen([compiler, *flags.split(), *LINKED_BY.get(compiler, ("-Wl,--build-id",)), "-o", name, source], cwd=work)
               for name, compiler, source, flags in VARIANTS]
    return all([process.wait() == 0 for process in running])


def split_debug(path):
    """PATH.stripped and PATH.debug, as packages have them."""
    subprocess.run(["objcopy", "--only-keep-debug", path, path + ".debug"], check=True)
    subprocess.run(["strip", "-o", path + ".stripped", path], check=True)


def check_lines(program, work, own):
    asked = {tool: (collections.Counter(), []) for tool in peers.TOOLS}
    for name, _, _, flags in VARIANTS:
        path = os.path.join(work, name)
        count, inlined, lined, wrong = compare(program, path, path, is_split="split" in flags, asked={
            tool: found for tool, found in asked.items() if not any(part in name for part in NOT_ASKED[tool])})
        few = "-O0" in flags or any(part in name for part in ("split", "nested", "gfortran", "ocamlopt"))
        enough = lined > count // 3 and (few or inlined > (20 if "cold" in name else 100))
        tell(not wrong and enough, f"{name}: {count} addresses, {lined} with lines, {inlined} inlined",
             "\n".join(wrong) or "too few")
    for tool, (rules_met, unlike) in asked.items():
        tell(not unlike and peers.is_alike(rules_met), f"as {tool} -fi says: {peers.told(rules_met)}", "\n".join(unlike))
    path = os.path.join(work, "gcc-dwarf5")
    # llvm-symbolizer 14 does not know the compression, so it has the file without
    subprocess.run(["objcopy", "--compress-debug-sections=zstd", path, path + "-zstd"], check=True)
    count, inlined, _, wrong = compare(program, path, path + "-zstd")
    tell(not wrong and inlined > 100 and os.path.getsize(path + "-zstd") < os.path.getsize(path),
         f"compressed by zstd: {count} addresses, {inlined} inlined", "\n".join(wrong))
    split_debug(path)
    count, inlined, _, wrong = compare(program, path, path + ".debug")
    tell(not wrong and inlined > 100, f"a separate debug file: {count} addresses, {inlined} inlined", "\n".join(wrong))
    count, inlined, _, wrong = compare(program, own, own)
    tell(not wrong and inlined > 100, f"{os.path.basename(own)}: {count} addresses, {inlined} inlined",
         "\n".join(wrong))


def build_split(work, name, compiler, version, packager):
    directory = os.path.join(work, f"{name}-split-{version}-{packager}")
    os.makedirs(directory)
    with open(os.path.join(directory, "more.cc"), "w", encoding="utf-8") as file:
        file.write(MORE)
    shutil.copy(os.path.join(work, "shop.cc"), directory)
    subprocess.run([compiler, "-O2", "-g", f"-gdwarf-{version}", "-gsplit-dwarf", "-Wl,--build-id", "-o", "shop",
                    "more.cc", "shop.cc"], cwd=directory, check=True)
    subprocess.run([packager, "-e", "shop", "-o", "shop.dwp"], cwd=directory, timeout=120, stderr=subprocess.DEVNULL, check=False)
    return os.path.join(directory, "shop")


def check_split(program, work):
    """Entries of functions are in a package, or in a .dwo file; llvm-symbolizer takes the .dwo files of the names that it reads."""
    for variant in SPLIT:
        path = build_split(work, *variant)
        count, inlined, lined, wrong = compare(program, path, path, "--split", path + ".dwp")
        tell(not wrong and lined > count // 3 and inlined > count // 2,
             f"split DWARF {variant[2]} of {variant[0]} packed by {variant[3]}: {count} addresses, {inlined} inlined",
             "\n".join(wrong) or "too few")
    path = os.path.join(work, "gcc-split")
    count, inlined, _, wrong = compare(program, path, path, "--split", path + "-shop.dwo")
    tell(not wrong and inlined > count // 2, f"gcc-split with its .dwo file: {count} addresses, {inlined} inlined",
         "\n".join(wrong) or "too few")
    package = os.path.join(work, "clang-split-5-llvm-dwp", "shop")
    with open(package + ".dwp", "rb") as file:
        content = file.read()
    noise = random.Random(5)
    at, size = section(package + ".dwp", ".debug_cu_index")
    info, info_size = section(package + ".dwp", ".debug_info.dwo")
    bad = os.path.join(work, "bad.dwp")
    for what, damaged in (("of another program", open_bytes(os.path.join(work, "gcc-split-4-dwp", "shop.dwp"))),
                          ("that is cut off", content[:len(content) // 3]),
                          ("with an index of noise", content[:at + 16] + noise.randbytes(size - 16) + content[at + size:]),
                          ("whose index is full", content[:at + 16] + b"\1" * (size - 16) + content[at + size:]),
                          ("whose index has 2^31 slots", content[:at + 12] + (1 << 31).to_bytes(4, "little") + content[at + 16:])):
        with open(bad, "wb") as file:
            file.write(damaged)
        count, _, lined, wrong = compare(program, package, package, "--split", bad, is_split=True)
        tell(not wrong and lined > count // 3, f"a package {what}: lines without inlined functions", "\n".join(wrong[:5]))
    with open(bad, "wb") as file:
        file.write(content[:info + 64] + noise.randbytes(info_size - 64) + content[info + info_size:])
    addresses = sorted(functions(package))
    tell(len(ours(program, package, addresses, "--split", bad)) == len(addresses), "a package with entries of noise")


def check_dwz(program, stacktap, work):
    """What two programs share is in a third file, as Debian packages have it. The same as before that was done, and as others read it."""
    asked = {tool: (collections.Counter(), []) for tool in peers.TOOLS}
    for version in (5, 4):
        directory = os.path.join(work, f"dwz-{version}")
        os.makedirs(directory)
        for name, level in (("one", "-O2"), ("two", "-O1")):
            subprocess.run(["g++", level, "-g", f"-gdwarf-{version}", "-Wl,--build-id", "-o", name, os.path.join(work, "shop.cc")],
                           cwd=directory, check=True)
        shutil.copy(os.path.join(directory, "one"), os.path.join(directory, "whole"))
        subprocess.run(["dwz", "-m", "shared.debug", "-M", MOVED, "one", "two"], cwd=directory, check=True)
        path, shared = os.path.join(directory, "one"), os.path.join(directory, "shared.debug")
        count, inlined, lined, wrong = compare(program, os.path.join(directory, "whole"), path, shared, asked=asked,
                                               peer_path=peers.relink(path, shared, os.path.join(directory, "beside")))
        moved = run("readelf", "--debug-dump=info", path).count("(alt indirect string")
        tell(not wrong and moved > 100 and lined > count // 3 and inlined > count // 3,
             f"DWARF {version} of which dwz has moved {moved} names: {count} addresses, {inlined} inlined", "\n".join(wrong) or "too few")
        check_dwz_recording(program, stacktap, directory, path, shared)
    for tool, (rules_met, unlike) in asked.items():
        tell(not unlike and peers.is_alike(rules_met), f"what dwz has moved, as {tool} -fi says: {peers.told(rules_met)}", "\n".join(unlike))


def check_dwz_standard(program, stacktap, work):
    """The same by DWARF 5's .debug_sup, by which neither file needs a build-id of GNU's."""
    directory = os.path.join(work, "dwz-standard")
    os.makedirs(directory)
    for name, level in (("one", "-O2"), ("two", "-O1")):
        subprocess.run(["g++", level, "-g", "-gdwarf-5", "-Wl,--build-id", "-o", name, os.path.join(work, "shop.cc")], cwd=directory,
                       check=True)
    shutil.copy(os.path.join(directory, "one"), os.path.join(directory, "whole"))
    subprocess.run(["dwz", "-5", "-m", "shared.debug", "-M", MOVED, "one", "two"], cwd=directory, check=True)
    path, shared = os.path.join(directory, "one"), os.path.join(directory, "shared.debug")
    first, size = text_range(path)
    addresses = random.Random("standard").sample(range(first, first + size), min(size, PER_FILE))
    addresses = sorted(set(addresses) | {a for a in functions(path) if first <= a < first + size})
    whole, moved = ours(program, os.path.join(directory, "whole"), addresses), ours(program, path, addresses, shared)
    wrong = [f"{a:x}: {m}, not {w}" for a, m, w in zip(addresses, moved, whole) if m != w]
    tell(not wrong and sum(len(frames) > 1 for frames in whole) > len(addresses) // 3 and ".debug_sup" in run("readelf", "-SW", path),
         f"DWARF 5 with .debug_sup: {len(addresses)} addresses as before dwz moved a part", "\n".join(wrong) or "too few")
    check_dwz_recording(program, stacktap, directory, path, shared)


def supplementary_id(path):
    """By which others refer to it: version, kind, name, length, and the id."""
    section = path + ".sup"
    subprocess.run(["objcopy", "-O", "binary", "--only-section=.debug_sup", "--set-section-flags", ".debug_sup=alloc", path, section],
                   check=True)
    with open(section, "rb") as file:
        data = file.read()
    return data[data.index(b"\0", 3) + 2:].hex()


def check_dwz_recording(program, stacktap, directory, path, shared):
    split_debug(path)
    ident, moved = build_id(path), supplementary_id(shared) if ".debug_sup" in run("readelf", "-SW", shared) else build_id(shared)
    tree, empty = os.path.join(directory, "tree"), os.path.join(directory, "empty")
    os.makedirs(f"{tree}/.build-id/{ident[:2]}")
    os.makedirs(empty)
    shutil.copy(path + ".debug", f"{tree}/.build-id/{ident[:2]}/{ident[2:]}.debug")
    first, size = text_range(path)
    addresses = list(range(first, first + size, max(1, size // 200)))
    recorded, named = os.path.join(directory, "in.otlp"), os.path.join(directory, "out.otlp")
    write(recorded, Recording(path + ".stripped", addresses, ident=ident))
    wanted = {a: [(n, f, l, c if l else 0) for n, f, l, c in frames] for a, frames in
              zip(addresses, ours(program, os.path.join(directory, "whole"), addresses))}

    def found_by(*where):
        status, said = symbolize(stacktap, "--debug-dir", tree, "--sysroot", empty, *where, "-o", named, recorded)
        frames = {a: [(f[1], normal(f[2]), f[3], f[4]) for f in frames] for a, frames in frames_of(named)[0].items()}
        return status == 0 and not rules(named) and frames, said
    frames, said = found_by()
    tell(frames and not said["objects"][0]["with_lines"] and moved in (said["objects"][0]["note"] or "") and
         {a: f[0][0] for a, f in frames.items() if f} == {a: f[-1][0] for a, f in wanted.items() if f},
         "without the file that dwz moved a part into there are symbols alone, and it is named", said)
    frames, said = found_by("--binary", shared)
    tell(frames == wanted and not said["objects"][0]["note"], "with the file that dwz moved a part into", said)
    os.makedirs(os.path.dirname(tree + MOVED.removeprefix("/usr/lib/debug")))
    shutil.copy(shared, tree + MOVED.removeprefix("/usr/lib/debug"))
    frames, said = found_by()
    tell(frames == wanted and not said["objects"][0]["note"], "with the same where packages put it", said)


def open_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def section(path, name):
    """File offset and size."""
    found = re.search(re.escape(name) + r" +[A-Z_0-9]+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", run("readelf", "-SW", path))
    return int(found[1], 16), int(found[2], 16)


# recordings


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", path))[1]


def segment(path):
    """vaddr, file offset and size of the executable segment."""
    for line in run("readelf", "-lW", path).splitlines():
        found = re.match(r" +LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+) 0x[0-9a-f]+ R E", line)
        if found:
            return int(found[2], 16), int(found[1], 16), int(found[3], 16)
    raise ValueError(path)


def swap_segments(path, output):
    """The segment behind the code becomes executable, too, and its header comes first."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    at, entry, count = (int.from_bytes(content[i:i + n], "little") for i, n in ((32, 8), (54, 2), (56, 2)))
    headers = [content[at + i * entry:at + (i + 1) * entry] for i in range(count)]
    code = next(i for i, header in enumerate(headers) if header[0] == 1 and header[4] == 5)
    assert headers[code + 1][0] == 1
    headers[code + 1][4] = 5
    headers[code], headers[code + 1] = headers[code + 1], headers[code]
    content[at:at + count * entry] = b"".join(headers)
    with open(output, "wb") as file:
        file.write(content)


class Recording:
    """A message with frames of one program, at these addresses; `named` have names already."""

    def __init__(self, program, addresses, named=None, base=None, ident=None, htlhash="0123456789abcdef" * 2, seed=0, skip=0):
        vaddr, offset, size = (number + sign * skip for number, sign in zip(segment(program), (1, 1, -1)))
        self.builder = builder = make_sample.Builder()
        start = vaddr if base is None else base
        attributes = builder.attributes(**{"process__executable__build_id__htlhash": htlhash})
        if ident:
            attributes += builder.attributes(**{"process__executable__build_id__gnu": ident})
        mapping = builder.intern("mapping_table", Message(
            "Mapping", memory_start=start, memory_limit=start + size, file_offset=offset,
            filename_strindex=builder.string("/opt/" + os.path.basename(program)), attribute_indices=attributes))
        locations = [builder.location((named or {}).get(a), a - vaddr + start, mapping=mapping) for a in addresses]
        if not named:
            # some know where their function begins
            for location in builder.dictionary.location_table[1::3]:
                location.fields["attribute_indices"] += builder.attributes(stacktap__function__start=start)
        times = [START + 1000 * (i + 1) for i in range(len(locations))]
        thread = builder.attributes(thread__id=7, thread__name="shop")
        samples = [make_sample.sample(builder.stack(*locations[i:i + 8]), thread, [times[i]])
                   for i in range(len(locations))]
        builder.resource([Message(
            "Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
            time_unix_nano=START, duration_nano=10**9, period_type=builder.value_type("cpu", "nanoseconds"),
            period=10**7, profile_id=bytes([seed + 1]) * 16)], process__pid=7, process__executable__name="shop")
        self.payload = make_sample.encode(builder.data)


def write(path, *recordings):
    with open(path, "wb") as file:
        for recording in recordings:
            file.write(wire.frame(recording.payload))


def kernel_message(what, ident, memory, frames, seed=0):
    builder = make_sample.Builder()
    mapping = builder.intern("mapping_table", Message(
        "Mapping", memory_start=memory[0], memory_limit=memory[1], filename_strindex=builder.string(what),
        attribute_indices=builder.attributes(process__executable__build_id__htlhash="0123456789abcdef" * 2,
                                             process__executable__build_id__gnu=ident)))
    locations = [builder.location(name, address, "kernel", mapping=mapping) for address, name in frames]
    thread = builder.attributes(thread__id=7, thread__name="shop")
    samples = [make_sample.sample(builder.stack(location), thread, [START + i]) for i, location in enumerate(locations)]
    builder.resource([Message(
        "Profile", sample_type=builder.value_type("samples", "count"), samples=samples,
        time_unix_nano=START, duration_nano=10**9, period_type=builder.value_type("cpu", "nanoseconds"),
        period=10**7, profile_id=bytes([seed + 1]) * 16)], process__executable__name="[kernel]")
    return make_sample.encode(builder.data)


def record_kernel(path, what, ident, memory, frames):
    """Messages with frames of the kernel or a module, each (address, name); to make one of all takes the square of it."""
    with open(path, "wb") as file:
        for i in range(0, len(frames), PER_MESSAGE):
            file.write(wire.frame(kernel_message(what, ident, memory, frames[i:i + PER_MESSAGE], i // PER_MESSAGE)))


def frames_of(path):
    """Each message's Locations: {address: [(name, system name, file, line, column, start line)]}"""
    found = []
    for payload in wire.read(path):
        data, _ = wire.decode(payload)
        tables = data.dictionary
        strings = tables.string_table
        found.append({location.address: [
            (strings[tables.function_table[line.function_index].name_strindex],
             strings[tables.function_table[line.function_index].system_name_strindex],
             strings[tables.function_table[line.function_index].filename_strindex], line.line, line.column,
             tables.function_table[line.function_index].start_line) for line in location.lines]
            for location in tables.location_table[1:]})
    return found


def fields(data):
    """(number, bytes with tag, value) of a message's fields, as they stand there."""
    at = 0
    while at < len(data):
        begin = at

        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 0x7f) << shift
                shift += 7
                if byte < 0x80:
                    return value
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            value = data[at:at + size]
            at += size
        yield tag >> 3, data[begin:at], value


def entries(payload):
    """What stands outside of the dictionary, and its tables, as bytes."""
    outside, tables = [], {number: [] for number in range(1, 8)}
    for number, whole, value in fields(payload):
        if number != 2:
            outside.append(whole)
            continue
        for table, whole_entry, entry in fields(value):
            tables[table].append((whole_entry, entry))
    return outside, tables


def changes(before, after):
    """What changed beside names; an empty list is what is wanted."""
    wrong = []
    old, new = wire.read(before), wire.read(after)
    if len(old) != len(new):
        return [f"{len(old)} messages became {len(new)}"]
    for one, other in zip(old, new):
        (outside, tables), (outside_now, tables_now) = entries(one), entries(other)
        if outside != outside_now:
            wrong.append("something outside of the dictionary")
        for table in (1, 4, 6, 7):
            if tables[table] != tables_now[table]:
                wrong.append(f"table {table} of the dictionary")
        if tables_now[5][:len(tables[5])] != tables[5]:
            wrong.append("strings that were there")
        if len(tables_now[2]) != len(tables[2]):
            wrong.append("the number of Locations")
        for (_, entry), (_, entry_now) in zip(tables[2], tables_now[2]):
            rest = [whole for number, whole, _ in fields(entry) if number != 3]
            if rest != [whole for number, whole, _ in fields(entry_now) if number != 3]:
                wrong.append("a Location beside its Lines")
            numbers = [number for number, _, _ in fields(entry_now)]
            if numbers != sorted(numbers):
                wrong.append("the order of a Location's fields")
    return wrong


def rules(path, named_later=True):
    return [f"message {i}: {text}" for i, payload in enumerate(wire.read(path)) for text in check.check(payload, named_later)]


def symbolize(stacktap, *arguments):
    done = subprocess.run([stacktap, "symbolize", "--json", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"error": done.stdout + done.stderr}
    return done.returncode, said


def demangled(names):
    return dict(zip(names, run("c++filt", "-p", text="".join(n + "\n" for n in names)).splitlines()))


def htlhash_of(path):
    """By its definition: the first and the last 4,096 bytes and the size, by SHA-256, half of it."""
    with open(path, "rb") as file:
        data = file.read()
    return hashlib.sha256(data[:4096] + data[-4096:] + struct.pack(">Q", len(data))).hexdigest()[:32]


def check_htlhash(program, stacktap, work):
    """Without a build-id it is the file's own bytes that tell which one it is."""
    tree = os.path.join(work, "without-id")
    path = os.path.join(tree, "opt", "without-id")
    os.makedirs(os.path.dirname(path))
    run("objcopy", "--remove-section=.note.gnu.build-id", os.path.join(work, "gcc-dwarf5"), path)
    vaddr, _, size = segment(path)
    addresses = sorted(random.Random(7).sample(range(vaddr, vaddr + size), 100))
    recorded, named = os.path.join(work, "hashed.otlp"), os.path.join(work, "hashed.named.otlp")
    write(recorded, Recording(path, addresses, htlhash=htlhash_of(path)))
    status, said = symbolize(stacktap, "--sysroot", tree, "-o", named, recorded)
    wanted = ours(program, path, addresses)
    found = frames_of(named)[0]
    tell(status == 0 and [[frame[1] for frame in found.get(a, ())] for a in addresses] ==
         [[frame[0] for frame in frames] for frames in wanted], "a file without a build-id is known by its htlhash", said)
    with open(path, "ab") as file:
        file.write(b"\0")
    status, said = symbolize(stacktap, "--sysroot", tree, "-o", named, recorded)
    tell(not any(frames_of(named)[0].values()) and "another build" in json.dumps(said), "and another file is not taken for it", said)


def assemble(path, text, ident):
    subprocess.run(["gcc", "-nostdlib", "-static", "-x", "assembler", "-o", path, "-", "-Wl,--entry=0",
                    f"-Wl,--build-id=0x{ident}"], input=text, encoding="utf-8", check=True)


def check_circles(stacktap, work):
    """Whose entries are their own origins ends, and costs a name."""
    one, other = os.path.join(work, "circle"), os.path.join(work, "circle.other")
    assemble(one, CIRCLE, "1234")
    assemble(other, OTHER_CIRCLE, "abcdef01")
    recorded, named = os.path.join(work, "circle.otlp"), os.path.join(work, "circle.named.otlp")
    write(recorded, Recording(one, [segment(one)[0] + at for at in (4, 9, 20)], ident="1234"))
    status, said = symbolize(stacktap, "--debug-dir", work, "--binary", one, "--binary", other, "-o", named, recorded)
    found = [[frame[0] for frame in frames] for frames in frames_of(named)[0].values()]
    tell(status == 0 and len(found) == 3 and all(frames[-1:] == ["_start"] for frames in found) and
         said["objects"][0]["note"] == NO_LINES,
         "origins in a circle end, in one file and in the other", (found, said))


def check_recordings(program, stacktap, work):
    whole = os.path.join(work, "gcc-dwarf5")
    debug, stripped, ident = whole + ".debug", whole + ".stripped", build_id(whole)
    vaddr, offset, size = segment(whole)
    starts = {a: sorted(n)[0] for a, n in functions(whole).items() if vaddr <= a < vaddr + size}
    addresses = sorted(random.Random(3).sample(range(vaddr, vaddr + size), 300))
    tree = os.path.join(work, "debug")
    os.makedirs(f"{tree}/.build-id/{ident[:2]}")
    shutil.copy(debug, f"{tree}/.build-id/{ident[:2]}/{ident[2:]}.debug")
    empty = os.path.join(work, "empty")
    os.makedirs(empty)
    recorded, named = os.path.join(work, "in.otlp"), os.path.join(work, "out.otlp")
    write(recorded, Recording(stripped, addresses, ident=ident), Recording(stripped, addresses[50:], ident=ident, seed=1))
    tell(not rules(recorded, False), "the recording keeps every rule", rules(recorded, False))

    status, said = symbolize(stacktap, "--debug-dir", tree, "--sysroot", empty, "-o", named, recorded)
    wanted = dict(zip(addresses, ours(program, debug, addresses)))
    plain = demangled({frame[0] for frames in wanted.values() for frame in frames})
    got = {a: [frame[1:5] for frame in frames] for a, frames in frames_of(named)[0].items()}
    expected = {a: [(n, normal(f), l, c if l else 0) for n, f, l, c in frames] for a, frames in wanted.items()}
    got = {a: [(n, normal(f), l, c) for n, f, l, c in frames] for a, frames in got.items()}
    tell(status == 0 and got == expected and sum(len(f) > 1 for f in got.values()) > 30,
         "an unnamed recording gets the names, lines and inlined frames of the debug file",
         "\n".join(f"{a:x} {got.get(a)} {expected[a]}" for a in expected if got.get(a) != expected[a]) or said)
    odd = {(frame[0], plain[frame[1]]) for frames in frames_of(named)[0].values() for frame in frames
           if frame[0].split("(")[0] != plain[frame[1]].split("(")[0] and "[clone" not in plain[frame[1]]}
    tell(not odd, "names are demangled", odd)
    tell(not rules(named), "what comes out keeps every rule", "\n".join(rules(named)))
    tell(not changes(recorded, named), "and only names have changed", changes(recorded, named))
    again = os.path.join(work, "again.otlp")
    symbolize(stacktap, "--debug-dir", tree, "-o", again, named)
    with open(named, "rb") as one, open(again, "rb") as other:
        tell(one.read() == other.read(), "a second time changes nothing")
    tell(said["named_before"] == 0 and 0 < said["named_after"] <= said["frames"] and
         said["objects"][0]["file"].endswith(".debug"), "it says what it found", said)

    found = json.loads(run(stacktap, "objects", "--json", recorded))["objects"]
    tell([(o["build_id"], o["frames"], o["unnamed"]) for o in found] == [(ident, len(addresses), len(addresses))],
         "objects: what a recording needs", found)
    left = json.loads(run(stacktap, "objects", "--json", "--missing", named))["objects"]
    unknown = sum(not frames for frames in expected.values())
    tell([o["unnamed"] for o in left] == ([unknown] if unknown else []), "objects --missing: what is left", left)

    # names that are there stay, and gain lines
    write(recorded, Recording(stripped, sorted(starts), named={a: "kept_" + n for a, n in starts.items()}, ident=ident))
    status, said = symbolize(stacktap, "--debug-dir", tree, "-o", named, recorded)
    got = frames_of(named)[0]
    lined = [a for a, frames in got.items() if any(frame[3] for frame in frames)]
    tell(len(lined) > 20 and all(got[a][-1][0] == "kept_" + starts[a] for a in starts) and not rules(named) and
         not changes(recorded, named), "names that are there stay, and gain lines",
         "\n".join(rules(named) + changes(recorded, named)) or got)

    # other ways to the same file
    in_whole = {a: [(n, normal(f), l, c if l else 0) for n, f, l, c in frames]
                for a, frames in zip(addresses, ours(program, whole, addresses))}
    write(recorded, Recording(stripped, addresses, ident=ident))
    loose = os.path.join(work, "loose")
    os.makedirs(loose)
    shutil.copy(debug, os.path.join(loose, "whatever"))
    cache = os.path.join(work, "cache", ident)
    os.makedirs(cache)
    shutil.copy(debug, os.path.join(cache, "debuginfo"))
    root = os.path.join(work, "root")
    os.makedirs(root + "/opt/.debug")
    linked = root + "/opt/" + os.path.basename(stripped)
    shutil.copy(debug, root + "/opt/.debug/linked.debug")
    subprocess.run(["objcopy", f"--add-gnu-debuglink={root}/opt/.debug/linked.debug", stripped, linked], check=True)
    for what, arguments in (("a loose file", ["--debug-dir", loose]),
                            ("debuginfod's cache", ["--debug-dir", os.path.dirname(cache)]),
                            ("the file itself", ["--binary", whole]),
                            ("a debug link in the sysroot", ["--sysroot", root])):
        if "--sysroot" not in arguments:
            arguments += ["--sysroot", empty]
        status, said = symbolize(stacktap, *arguments, "-o", named, recorded)
        found = {a: [(f[1], normal(f[2]), f[3], f[4]) for f in frames] for a, frames in frames_of(named)[0].items()}
        # entries of the PLT have names in the file itself alone
        tell(status == 0 and found == (in_whole if whole in arguments else expected), f"found by {what}", said)
    # links lead nowhere else than inside of the sysroot
    outside, leading = os.path.join(work, "outside"), os.path.join(work, "leading")
    os.makedirs(outside)
    os.makedirs(leading + "/opt")
    shutil.copy(linked, leading + "/opt/")
    shutil.copy(debug, outside + "/linked.debug")
    os.symlink(outside, leading + "/opt/.debug")
    status, said = symbolize(stacktap, "--sysroot", leading, "--debug-dir", empty, "-o", named, recorded)
    tell(status == 0 and not said["objects"][0]["with_lines"], "a link out of the sysroot is not followed", said)
    os.makedirs(leading + outside)
    shutil.copy(debug, leading + outside + "/linked.debug")
    status, said = symbolize(stacktap, "--sysroot", leading, "--debug-dir", empty, "-o", named, recorded)
    tell(status == 0 and said["objects"][0]["with_lines"] > 50, "it leads to what is there inside", said)
    later = [a for a in addresses if a >= vaddr + 4096]
    shift = 0x7f1234560000 + vaddr % 4096 - vaddr
    write(recorded, Recording(whole, addresses, ident=ident, base=vaddr + shift),
          Recording(whole, later, ident=ident, base=vaddr + shift + 4096, seed=1, skip=4096))
    symbolize(stacktap, "--binary", whole, "-o", named, recorded)
    found = [{a - shift: [(f[1], normal(f[2]), f[3], f[4]) for f in frames] for a, frames in message.items()}
             for message in frames_of(named)]
    tell(len(later) > 50 and found == [in_whole, {a: in_whole[a] for a in later}],
         "addresses as they were at run time, in one mapping or several", said)
    _, said = symbolize(stacktap, "--debug-dir", tree, "--sysroot", empty, "-o", named, recorded)
    tell(not any(frames_of(named)[0].values()) and "only the program or library itself" in (said["objects"][0]["note"] or ""),
         "a debug file alone cannot tell what those are", said)
    # the first entry of the PLT is no function's
    write(recorded, Recording(stripped, [section(whole, ".plt")[0] - offset + vaddr], ident=ident))
    status, said = symbolize(stacktap, "--binary", whole, "--sysroot", empty, "-o", named, recorded)
    tell(status == 0 and said["objects"][0]["found"] == 0 and said["objects"][0]["note"] == "it has no function at these addresses",
         "addresses in no function are said to be", said)
    # a mapping of 64 KiB pages begins before the segment
    before = offset % 65536
    base = 0x7f1234560000
    write(recorded, Recording(whole, addresses, ident=ident, base=base, skip=-before))
    symbolize(stacktap, "--binary", whole, "-o", named, recorded)
    found = {a - base + vaddr - before: [(f[1], normal(f[2]), f[3], f[4]) for f in frames]
             for a, frames in frames_of(named)[0].items()}
    tell(before and found == in_whole, "addresses as they were at run time, with pages of 64 KiB", said)

    # segments in another order, of which the host takes the lowest for the beginning
    swapped = os.path.join(work, "swapped")
    swap_segments(whole, swapped)
    write(recorded, Recording(whole, addresses, ident=ident))
    status, said = symbolize(stacktap, "--binary", swapped, "--debug-dir", empty, "--sysroot", empty, "-o", named, recorded)
    found = {a: [(f[1], normal(f[2]), f[3], f[4]) for f in frames] for a, frames in frames_of(named)[0].items()}
    tell(status == 0 and found == in_whole, "program headers that are not ascending", said)

    # a string that goes on behind a NUL is another one
    name = next(frames[0][1] for frames in frames_of(named)[0].values() if frames)
    recording = Recording(whole, addresses, ident=ident)
    recording.builder.string(name + "\0behind")
    recording.payload = make_sample.encode(recording.builder.data)
    write(recorded, recording)
    symbolize(stacktap, "--binary", whole, "-o", named, recorded)
    found = {a: [(f[1], normal(f[2]), f[3], f[4]) for f in frames] for a, frames in frames_of(named)[0].items()}
    tell(found == in_whole and not changes(recorded, named), "a string with a NUL inside is not taken for a name",
         {a: frames for a, frames in found.items() if frames != in_whole[a]})

    # what is wrong costs names, and says so
    write(recorded, Recording(stripped, addresses, ident=ident))
    bad = os.path.join(work, "bad")
    os.makedirs(bad)

    def with_file(make):
        shutil.rmtree(bad)
        os.makedirs(f"{bad}/.build-id/{ident[:2]}")
        make(f"{bad}/.build-id/{ident[:2]}/{ident[2:]}.debug")
        return symbolize(stacktap, "--debug-dir", bad, "--sysroot", empty, "-o", named, recorded)

    status, said = with_file(lambda path: shutil.copy(os.path.join(work, "clang-dwarf4"), path))
    with open(recorded, "rb") as one, open(named, "rb") as other:
        tell(status == 0 and one.read() == other.read() and "another build" in said["objects"][0]["note"],
             "a file of another build names nothing, and the recording stays as it is", said)

    def damaged(name, change):
        def make(path):
            dump = os.path.join(work, "section")
            subprocess.run(["objcopy", "--dump-section", f"{name}={dump}", debug, os.path.join(work, "copy")], check=True)
            with open(dump, "rb") as file:
                content = change(bytearray(file.read()))
            with open(dump, "wb") as file:
                file.write(content)
            subprocess.run(["objcopy", "--update-section", f"{name}={dump}", debug, path], check=True)
        return make

    noise = random.Random(9)
    for what, make in (
            ("entries of noise", damaged(".debug_info", lambda b: b[:64] + noise.randbytes(len(b) - 64))),
            ("abbreviations of noise", damaged(".debug_abbrev", lambda b: noise.randbytes(len(b)))),
            ("entries in a circle", damaged(".debug_info", lambda b: b[:len(b) // 2] + b"\1" * (len(b) // 2))),
            ("a line table of noise", damaged(".debug_line", lambda b: b[:64] + noise.randbytes(len(b) - 64)))):
        status, said = with_file(make)
        said = said["objects"][0]
        tell(status == 0 and not rules(named) and said["found"] > 50 and not changes(recorded, named) and
             said["note"] == (None if said["with_lines"] else NO_LINES), f"{what}: names of symbols are left", said)

    def cut(path):
        with open(debug, "rb") as file, open(path, "wb") as out:
            out.write(file.read()[:os.path.getsize(debug) // 2])
    status, said = with_file(cut)
    tell(status == 0 and not rules(named) and not changes(recorded, named), "a debug file that is cut off", said)

    def moved(path):
        link = os.path.join(work, "altlink")
        with open(link, "wb") as file:
            file.write(b"/usr/lib/debug/.dwz/some\0" + bytes(range(20)))
        subprocess.run(["objcopy", "--add-section", f".gnu_debugaltlink={link}", debug, path], check=True)

    def moved_to_noise(path):
        moved(path)
        link = os.path.join(work, "altlink")
        bare = os.path.join(bad, "bare")
        with open(link, "wb") as file:
            file.write(noise.randbytes(4096))
        flags = ["--only-keep-debug", "--remove-section=.debug_*", "--add-section", f".debug_info={link}",
                 "--set-section-flags", ".debug_info=readonly,debug"]
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", bare + ".so", "-Wl,--build-id=0x" + bytes(range(20)).hex(),
                        "-x", "c", "/dev/null"], check=True)
        subprocess.run(["objcopy", *flags, bare + ".so", bare], check=True)
        # a bit that says that the noise is compressed
        with open(bare, "r+b") as file:
            header = file.read(64)
            at, entry, count = (int.from_bytes(header[i:i + n], "little") for i, n in ((40, 8), (58, 2), (60, 2)))
            names = int(re.search(r"\[ *(\d+)\] \.debug_info", run("readelf", "-SW", bare))[1])
            assert names < count
            file.seek(at + names * entry + 8)
            file.write((0x800).to_bytes(8, "little"))
    status, said = with_file(moved_to_noise)
    tell(status == 0 and "cannot be read" in (said["objects"][0]["note"] or "") and
         said["objects"][0]["found"] > 50 and not said["objects"][0]["with_lines"],
         "with a damaged file that dwz moved a part into there are symbols alone, too", said)

    split = os.path.join(work, "gcc-split")
    some = [a for a, n in functions(split).items() if "main" in n or any("add" in name for name in n)]
    os.unlink(split + "-shop.dwo")
    write(recorded, Recording(split, some, ident=build_id(split)))
    status, said = symbolize(stacktap, "--binary", split, "-o", named, recorded)
    tell("split DWARF" in (said["objects"][0]["note"] or "") and said["objects"][0]["with_lines"],
         "split DWARF gives lines, and says what it does not give", said)

    # a package beside the program, which has to be a file
    split = os.path.join(work, "gcc-split-4-dwp", "shop")
    first, length = text_range(split)
    for name in os.listdir(os.path.dirname(split)):
        if name.endswith(".dwo"):
            os.unlink(os.path.join(os.path.dirname(split), name))
    write(recorded, Recording(split, list(range(first + length // 2, first + length, 64)), ident=build_id(split)))
    status, said = symbolize(stacktap, "--binary", split, "-o", named, recorded)
    chains = sum(len(frames) > 1 for frames in frames_of(named)[0].values())
    tell(status == 0 and chains > 20 and not said["objects"][0]["note"], "a package beside the program gives inlined functions",
         said)
    packages = os.path.join(work, "packages")
    os.makedirs(packages)
    os.rename(split + ".dwp", packages + "/shop.dwp")
    os.mkfifo(split + ".dwp")
    status, said = symbolize(stacktap, "--binary", split, "-o", named, recorded)
    tell(status == 0 and "split DWARF" in (said["objects"][0]["note"] or "") and said["objects"][0]["with_lines"],
         "one that is a FIFO is left alone", said)
    status, said = symbolize(stacktap, "--binary", split, "--debug-dir", packages, "-o", named, recorded)
    tell(status == 0 and sum(len(frames) > 1 for frames in frames_of(named)[0].values()) == chains,
         "a package in a debug directory", said)
    os.unlink(split + ".dwp")
    with open(split + ".dwp", "wb") as file:
        file.truncate(1 << 40)
    status, said = symbolize(stacktap, "--binary", split, "-o", named, recorded)
    tell(status == 0 and said["objects"][0]["with_lines"] and said["objects"][0]["note"], "one of a terabyte of nothing", said)

    # a store of two files
    store, elsewhere = os.path.join(work, "store"), os.path.join(work, "elsewhere")
    os.makedirs(store)
    names = ["profiles-1764000000000.otlp", "profiles-1764000015000.otlp"]
    write(os.path.join(store, names[0]), Recording(stripped, addresses[:20], ident=ident))
    write(os.path.join(store, names[1]), Recording(stripped, addresses[20:], ident=ident, seed=1))
    status, said = symbolize(stacktap, "--debug-dir", tree, "-o", elsewhere + "/", store)
    write(recorded, Recording(stripped, addresses, ident=ident))
    symbolize(stacktap, "--debug-dir", tree, "-o", named, recorded)
    found = {}
    for name in names:
        found.update(frames_of(os.path.join(elsewhere, name))[0])
    tell(status == 0 and sorted(os.listdir(elsewhere)) == names and found == frames_of(named)[0] and
         not any(changes(os.path.join(store, name), os.path.join(elsewhere, name)) for name in names),
         "a store, file by file into another directory", said)

    # files and streams
    write(recorded, Recording(stripped, addresses, ident=ident))
    symbolize(stacktap, "--debug-dir", tree, "-o", named, recorded)
    with open(named, "rb") as file:
        whole_output = file.read()
    with open(recorded, "rb") as file:
        streamed = subprocess.run(f"cat | '{stacktap}' symbolize --debug-dir '{tree}' -o - - 2>/dev/null | cat", shell=True,
                                  stdin=file, stdout=subprocess.PIPE, check=False).stdout
    tell(streamed == whole_output, "from and to a pipe")
    with open(recorded, "rb") as file:
        content = file.read()
    with open(again, "wb") as file:
        file.write(content[4:])
    symbolize(stacktap, "--debug-dir", tree, "-o", again, again)
    with open(again, "rb") as file:
        tell(file.read() == whole_output[4:], "a bare message, in its own place")
    with open(again, "wb") as file:
        file.write(content + content[:-1])
    status, said = symbolize(stacktap, "--debug-dir", tree, "-o", named, again)
    with open(named, "rb") as file:
        tell(status == 0 and said["cut"] and file.read() == whole_output, "a file that is cut off, up to the cut", said)
    with open(again, "wb") as file:
        file.write(noise.randbytes(4096))
    status, said = symbolize(stacktap, "--debug-dir", tree, "-o", named, again)
    with open(named, "rb") as file:
        tell(status == 1 and "error" in said and file.read() == whole_output, "what is no recording leaves the output alone", said)


def check_index(stacktap, work):
    """Of a program without .debug_aranges the index is made once, and what is wrong with the one that is kept costs nothing."""
    path, recorded, named = (os.path.join(work, name) for name in ("clang-dwarf4", "index.otlp", "index.named"))
    ident = build_id(path)
    kept = os.path.join(os.environ["XDG_CACHE_HOME"], "stacktap", "dwarf-index", ident + ".index")
    write(recorded, Recording(path, sorted(functions(path))[5:60], ident=ident))

    def named_now():
        status, _ = symbolize(stacktap, "--binary", path, "-o", named, recorded)
        with open(named, "rb") as file:
            return status, file.read()
    first = named_now()
    with open(kept, "rb") as file:
        index = file.read()
    tell(first[0] == 0 and index.startswith(b"dwarfidx") and os.stat(kept).st_mode & 0o777 == 0o600,
         "the index of a program is kept, for its owner alone")
    made = os.stat(kept).st_ino
    tell(named_now() == first and os.stat(kept).st_ino == made, "and used again")
    damages = (b"", index[:100], index + b"x", index[:16] + b"\xff" * 8 + index[24:], os.urandom(len(index)))
    good = True
    for damage in damages:
        with open(kept, "wb") as file:
            file.write(damage)
        good &= named_now() == first
        with open(kept, "rb") as file:
            good &= file.read() == index
    tell(good, "one that is damaged is made anew")
    os.unlink(kept)
    os.mkfifo(kept)
    tell(named_now() == first, "one that is no file is left alone")


def riddle(number):
    """A C++ name that takes longer to read than there is: pairs of the pair before, twice, 60 times."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    known = "".join(f"S{digits[n // 36] if n >= 36 else ''}{digits[n % 36]}_E" for n in range(60, 119))
    return f"_Z1fIDp{'St4pairI' * 60}iiE{known}Evv.{number}"


def check_riddles(stacktap, work):
    """In the parser as it is shipped, which few system calls are allowed to."""
    long = "_ZNSt6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESaIS5_EE5clearEv"
    names = [riddle(i) for i in range(6)] + [long]
    source, path = os.path.join(work, "riddles.c"), os.path.join(work, "riddles")
    with open(source, "w", encoding="utf-8") as file:
        file.write("".join(f'int f{i}(void) __asm__("{name}"); int f{i}(void) {{ return {i}; }}\n'
                           for i, name in enumerate(names)) + "int main(void) { return f0(); }\n")
    subprocess.run(["gcc", "-O1", "-Wl,--build-id", "-o", path, source], check=True)
    at = {name: address for address, all_names in functions(path).items() for name in all_names if name in names}
    recorded, named = os.path.join(work, "riddles.otlp"), os.path.join(work, "riddles.named")
    write(recorded, Recording(path, sorted(at.values()), ident=build_id(path)))
    status, said = symbolize(stacktap, "--binary", path, "-o", named, recorded)
    got = {address: frames[0][:2] for address, frames in frames_of(named)[0].items() if frames}
    tell(status == 0 and len(at) == 7 and all(got[at[name]] == (name, name) for name in names[:6]),
         "names that take too long are left as they are", said)
    tell(got.get(at[long], ("",))[0].endswith("::clear"), "and the parser goes on with others", got.get(at[long]))


def main():
    program, stacktap, work = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    if not build(work):
        tell(False, "the programs are built")
    else:
        check_lines(program, work, stacktap)
        check_split(program, work)
        check_dwz(program, stacktap, work)
        check_dwz_standard(program, stacktap, work)
        check_recordings(program, stacktap, work)
        check_htlhash(program, stacktap, work)
        check_circles(stacktap, work)
        check_index(stacktap, work)
        check_riddles(stacktap, work)
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

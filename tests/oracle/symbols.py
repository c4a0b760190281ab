# SPDX-License-Identifier: Apache-2.0
"""Compare our names of functions with those of binutils. Prints TAP.

usage: symbols.py SYMBOL_NAMES WORK-DIRECTORY
"""
import glob
import gzip
import os
import random
import re
import shutil
import subprocess
import sys

WANTED = 24
RESULTS = []

CXX = r"""
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace shop { template <class T> struct cart { std::map<std::string, std::vector<T>> items;
    __attribute__((noinline)) size_t add(const std::string &k, T v) { items[k].push_back(v);
        return items.size(); } }; }
static __attribute__((noinline)) int hidden(int x) { return x * 3; }
int main(int argc, char **argv) { shop::cart<int> c; shop::cart<std::string> d;
    std::vector<std::string> all(argv, argv + argc); std::sort(all.begin(), all.end());
    return (int)(c.add(argv[0], argc) + d.add("x", all[0])) + hidden(argc); }
"""


def tell(good, what, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - symbols: {what}")
    if not good and detail:
        print("\n".join("# " + line for line in str(detail).splitlines()[:20]))


def run(*command, text=None):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding="utf-8", errors="surrogateescape", check=False)
    return done.stdout


def without_version(name):
    return name.split("@")[0]


def code_ranges(path):
    """Sections with code. nm shows a weak thread-local variable like a weak function."""
    found = re.findall(r"PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +[0-9a-f]+ +[A-Z]*X",
                       run("readelf", "-SW", path))
    return [(int(start, 16), int(start, 16) + int(size, 16)) for start, size in found]


def symbols_of(path, prefix=""):
    """Functions as nm lists them: {start: {name}}, and their sizes."""
    code = code_ranges(path)
    text = run(f"{prefix}nm", "--defined-only", "-S", path)
    if not text.strip():
        text = run(f"{prefix}nm", "-D", "--defined-only", "-S", path)
    names, sizes = {}, {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "TtWwi":
            start, size = int(words[0], 16), int(words[1], 16)
            if not any(low <= start < high for low, high in code):
                continue
            names.setdefault(start, set()).add(without_version(words[3]))
            sizes[start] = max(size, sizes.get(start, 0))
    return names, sizes


def ask_all(program, path, addresses):
    """(start, name) of the function that holds each; a function without a name has ""."""
    lines = run(program, path, text="".join(f"{a:x}\n" for a in addresses)).splitlines()
    assert len(lines) == len(addresses), f"{path}: {len(lines)} answers"
    answers = []
    for line in lines:
        start, _, name = line.removeprefix("G").partition(" ")
        answers.append(None if start == "-" else (int(start, 16), name))
    return answers


def ask(program, path, addresses):
    return [answer if answer and answer[1] else None for answer in ask_all(program, path, addresses)]


def text_range(path):
    for line in run("readelf", "-SW", path).splitlines():
        found = re.search(r"\] \.text +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", line)
        if found:
            return int(found[1], 16), int(found[2], 16)
    return 0, 0


def check_starts(program, path, names, sizes):
    """Every function that nm knows has one of its names, a byte into it."""
    starts = [start for start in names if sizes[start] > 1]
    wrong = []
    for start, answer in zip(starts, ask(program, path, [start + 1 for start in starts])):
        # one that begins within the first byte is nearer
        if start + 1 in names:
            continue
        if not answer or answer[0] != start or answer[1] not in names[start]:
            wrong.append(f"{start:x}: {answer}, nm says {sorted(names[start])}")
    return len(starts), wrong


def check_inside(program, path, names, sizes):
    """Anywhere in .text: addr2line's function, or none where that one ends before."""
    first, size = text_range(path)
    if not size:
        return 0, []
    addresses = sorted(random.Random(path).sample(range(first, first + size), min(size, 400)))
    said = run("addr2line", "-f", "-e", path, *[f"{a:#x}" for a in addresses]).splitlines()[::2]
    wrong, named = [], 0
    for address, answer, theirs in zip(addresses, ask(program, path, addresses), said):
        theirs = without_version(theirs)
        if not answer:
            holders = [n for s, n in names.items() if s <= address < s + sizes[s]]
            if holders:
                wrong.append(f"{address:x}: none, but it is in {holders[:3]}")
            continue
        named += 1
        start, name = answer
        # or an alias of what addr2line says; functions nested in others are told apart by size
        if name != theirs and theirs not in names.get(start, ()) and not (
                start in names and address < start + sizes[start] and name in names[start]):
            wrong.append(f"{address:x}: {answer}, addr2line says {theirs}")
    return named, wrong


def check_plt(program, path, prefix=""):
    labels = {}
    for line in run(f"{prefix}objdump", "-d", "--section=.plt", "--section=.plt.sec",
                    "--section=.plt.got", path).splitlines():
        found = re.fullmatch(r"([0-9a-f]+) <([^*>]+)@plt>:", line)
        if found:
            labels[int(found[1], 16)] = without_version(found[2])
    wrong = []
    for (address, name), answer in zip(labels.items(), ask(program, path, list(labels))):
        if not answer or answer[1] != name + "@plt":
            wrong.append(f"{address:x}: {answer}, objdump says {name}@plt")
    return len(labels), wrong


PLT = "".join(f"#include <{name}.h>\n" for name in ("ctype", "math", "stdio", "stdlib", "string", "time", "unistd")) + """
void *volatile taken;
int main(int argc, char **argv)
{
	char text[64];
	double x = strtod(argv[0], NULL);

	taken = (void *)puts;
	puts(argv[0]);
	snprintf(text, sizeof(text), "%g %g %g %ld", sin(x), cos(x), pow(x, argc), (long)time(NULL));
	qsort(text, strlen(text), 1, (int (*)(const void *, const void *))strcmp);
	return isatty(1) + atoi(strdup(text)) + tolower(text[0]) + getpid() + (int)write(1, text, sizeof(text));
}
"""
# machine, kind, flags, and what objdump shows where it is: entries of .plt.sec and, of a function whose address is taken as well,
# .plt.got; on arm64 those that indirect branches may lead to (BTI)
PLTS = (
    ("x86_64", "lazily bound", ["-Wl,-z,lazy"], r"<puts@plt>:\n[^\n]*jmp"),
    ("x86_64", "for indirect branch tracking", ["-fcf-protection", "-Wl,-z,ibtplt"], r"section \.plt\.sec:\n"),
    ("x86_64", "bound at the start", ["-fpie", "-pie", "-Wl,-z,now"], r"section \.plt\.got:\n"),
    ("aarch64", "lazily bound", ["-Wl,-z,lazy"], r"<puts@plt>:\n[^\n]*adrp"),
    ("aarch64", "for branch targets", ["-mbranch-protection=standard", "-Wl,-z,force-bti", "-no-pie"], r"<puts@plt>:\n[^\n]*bti"),
    ("aarch64", "bound at the start", ["-fpie", "-pie", "-Wl,-z,now"], r"<puts@plt>:\n[^\n]*adrp"),
)


def check_plts(program, work):
    source = os.path.join(work, "plt.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PLT)
    for machine, kind, flags, shown in PLTS:
        prefix, path = f"{machine}-linux-gnu-", os.path.join(work, "plt")
        subprocess.run([f"{prefix}gcc", "-O1", "-fno-builtin", "-w", *flags, "-o", path, source, "-lm"], check=True,
                       stderr=subprocess.DEVNULL)
        count, wrong = check_plt(program, path, prefix)
        there = re.search(shown, run(f"{prefix}objdump", "-d", path))
        tell(count > 12 and there and not wrong, f"{machine}: {count} entries of a PLT {kind} are called as objdump calls them",
             "\n".join(wrong) or f"{count} entries")


def check_ranges(program, work, path, prefix=""):
    """Of a program that is stripped, the functions that its symbols told: the same ones, by their starts."""
    bare = os.path.join(work, "stripped")
    subprocess.run([f"{prefix}strip", "-o", bare, path], check=True)
    names, sizes = symbols_of(path, prefix)
    pick = random.Random(path)
    starts = pick.choices(list(names), weights=[sizes[start] for start in names], k=10000)
    addresses = [start + pick.randrange(max(sizes[start], 1)) for start in starts]
    # symbols may nest, and then the nearest one counts
    there = ask(program, path, addresses)
    wrong, same = [], 0
    for address, ours, full in zip(addresses, ask_all(program, bare, addresses), there):
        if ours and full and ours[0] == full[0]:
            same += 1
        else:
            wrong.append(f"{address:x}: {ours}, with symbols {full}")
    tell(same >= 0.995 * len(addresses), f"{prefix}{os.path.basename(path)}: stripped, {same} of {len(addresses)} addresses "
         "are in the function that its symbols say", "\n".join(wrong))
    return ask_all(program, bare, addresses)


def check_covered(program, files):
    """What a profile of the system's own programs could not tell apart."""
    known = asked = 0
    for path in files:
        first, size = text_range(path)
        pick = random.Random(path)
        addresses = [pick.randrange(first, first + size) for _ in range(1000)] if size else []
        found = sum(answer is not None for answer in ask_all(program, path, addresses))
        print(f"# {os.path.basename(path)}: {found} of {len(addresses)} addresses are in a known function")
        known += found
        asked += len(addresses)
    # what aligns functions is in none, nor are tables between them
    tell(known >= 0.96 * asked, f"{known} of {asked} addresses of the system's programs are in a known function")


GO = """package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	fmt.Println(strings.Repeat("x", len(os.Args)))
}
"""


def check_go(program, work):
    if not shutil.which("go"):
        RESULTS.append(True)
        print(f"ok {len(RESULTS)} - symbols: a stripped Go program # SKIP no go")
        return
    source, path = os.path.join(work, "main.go"), os.path.join(work, "go-program")
    with open(source, "w", encoding="utf-8") as file:
        file.write(GO)
    built = subprocess.run(["go", "build", "-o", path, source], check=False,
                           env=dict(os.environ, GO111MODULE="off", GOCACHE=os.path.join(work, "cache"),
                                    GOFLAGS="-p=2", GOTOOLCHAIN="local", CGO_ENABLED="0"))
    tell(built.returncode == 0, "a Go program is built")
    if built.returncode:
        return
    answers = check_ranges(program, work, path)
    there = {name for names in symbols_of(path)[0].values() for name in names}
    named = [name for _, name in filter(None, answers) if name]
    lines = run(program, os.path.join(work, "stripped"), text="".join(f"{start:x}\n" for start, _ in answers))
    tell(all(line.startswith("G") for line in lines.splitlines()), "go-program: all of its code is Go's")
    # symbols have a suffix where one Go function has several entries, and functions that the linker found to
    # be equal have the name of another one
    strange = [name for name in named if name not in there and name + ".abi0" not in there]
    tell(len(named) >= 0.99 * len(answers) and len(strange) <= len(answers) / 1000,
         f"go-program: stripped, {len(named)} of {len(answers)} have Go's names", "\n".join(strange))


GOSYM = """package main

import (
	"debug/gosym"
	"encoding/binary"
	"fmt"
	"os"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, binary.LittleEndian.Uint64(data[16:])))
	if err != nil {
		panic(err)
	}
	for _, f := range table.Funcs {
		fmt.Printf("%x %x %s\\n", f.Entry, f.End, f.Name)
	}
}
"""


def check_old_go(program, work):
    """The table of a program of Go 1.15, which Go's sources have for their own tests, in a file of ours, beside Go's reader."""
    root = subprocess.run(["go", "env", "GOROOT"], stdout=subprocess.PIPE, encoding="utf-8",
                          check=False).stdout.strip() if shutil.which("go") else ""
    path = os.path.join(root, "src/debug/gosym/testdata/pcln115.gz")
    if not os.path.exists(path):
        RESULTS.append(True)
        print(f"ok {len(RESULTS)} - symbols: functions of Go 1.15 # SKIP no go with its sources")
        return
    with gzip.open(path) as file:
        table = file.read()
    source, reader, raw, elf = (os.path.join(work, name) for name in ("gosym.go", "gosym", "table", "old-go"))
    with open(raw, "wb") as file:
        file.write(table)
    with open(source, "w", encoding="utf-8") as file:
        file.write(GOSYM)
    subprocess.run(["go", "build", "-o", reader, source], check=True,
                   env=dict(os.environ, GO111MODULE="off", GOCACHE=os.path.join(work, "cache"), GOFLAGS="-p=2",
                            GOTOOLCHAIN="local", CGO_ENABLED="0"))
    functions = [line.split(" ", 2) for line in run(reader, raw).splitlines()]
    functions = [(int(start, 16), int(end, 16), name) for start, end, name in functions]
    first, last = functions[0][0], functions[-1][1]
    subprocess.run(["gcc", "-nostdlib", "-static", "-no-pie", "-x", "assembler", "-", "-o", elf, f"-Wl,-Ttext={first:#x}",
                    "-Wl,-z,noseparate-code"], check=True, encoding="utf-8", input=(
                        f".globl _start\n.text\n_start: .skip {last - first}, 0x90\n"
                        f'.section .gopclntab, "a"\n.incbin "{raw}"\n'))
    subprocess.run(["strip", elf], check=True)
    # in each function its first byte, its last, and one between
    wanted = [(address, start, name) for start, end, name in functions if end > start
              for address in sorted({start, end - 1, (start + end) // 2})]
    wrong = [f"{address:x}: {ours}, Go's reader says {start:x} {name}" for (address, start, name), ours in
             zip(wanted, ask_all(program, elf, [address for address, _, _ in wanted])) if ours != (start, name)]
    tell(len(functions) > 1000 and not wrong, f"functions of Go 1.15: {len(functions)}, as Go's own reader tells them",
         "\n".join(wrong))


def pick():
    """Programs and libraries with functions to name, the big ones that everybody has first."""
    first = ["libc.so.6", "libstdc++.so.6", "libcrypto.so.3", "libm.so.6", "libpython3*.so*",
             "libcurl-gnutls.so.4", "libgnutls.so.30", "libelf.so.1", "libdw.so.1",
             "ld-linux-*.so*", "libz.so.1", "libzstd.so.1", "libsystemd.so.0", "libkmod.so.2",
             "libbfd-*.so", "libglib-2.0.so.0", "libperl.so.*", "libLLVM-*.so.1"]
    paths = []
    for name in first:
        for directory in ("/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*", "/lib64"):
            paths += glob.glob(f"{directory}/{name}")
    paths += ["/usr/bin/python3", "/bin/bash", "/usr/bin/perl", "/usr/bin/openssl"]
    paths += sorted(glob.glob("/usr/lib/*-linux-gnu/lib*.so.[0-9]"))
    seen, chosen = set(), []
    for path in paths:
        real = os.path.realpath(path)
        if real in seen or not os.path.isfile(real) or os.path.getsize(real) > 200 << 20:
            continue
        seen.add(real)
        if len(symbols_of(real)[0]) >= 10:
            chosen.append(real)
        if len(chosen) == WANTED:
            break
    return chosen


def build(work):
    source = os.path.join(work, "shop.cc")
    with open(source, "w", encoding="utf-8") as file:
        file.write(CXX)
    built = []
    for name, flags in (("shop-symtab", []), ("shop-dynamic", ["-s", "-rdynamic"]),
                        ("shop-static", ["-static", "-O2"])):
        path = os.path.join(work, name)
        subprocess.run(["g++", "-o", path, source, *flags], check=True)
        built.append(path)
    return built


def main():
    program, work = sys.argv[1:]
    files = build(work) + pick()
    tell(len(files) >= 20, f"{len(files)} files to compare", files)
    totals = [0, 0, 0]
    for path in files:
        names, sizes = symbols_of(path)
        counts, wrong = [], []
        for check in (check_starts(program, path, names, sizes),
                      check_inside(program, path, names, sizes), check_plt(program, path)):
            counts.append(check[0])
            wrong += check[1]
        totals = [a + b for a, b in zip(totals, counts)]
        tell(not wrong, f"{os.path.basename(path)}: {counts[0]} functions, {counts[1]} addresses, "
             f"{counts[2]} PLT entries", "\n".join(wrong))
    for name in ("shop-symtab", "shop-static"):
        check_ranges(program, work, os.path.join(work, name))
    for arch, prefix in (("x86_64", "x86_64-linux-gnu-"), ("arm64", "aarch64-linux-gnu-")):
        path = os.path.join(os.path.dirname(program), os.pardir, f"user-{arch}", "stacktapd")
        if os.path.exists(path) and shutil.which(f"{prefix}strip"):
            check_ranges(program, work, path, prefix)
    check_plts(program, work)
    check_covered(program, files)
    check_go(program, work)
    check_old_go(program, work)
    tell(totals[0] > 20000 and totals[1] > 2000 and totals[2] > 100,
         f"in all {totals[0]} functions, {totals[1]} addresses, {totals[2]} PLT entries")
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

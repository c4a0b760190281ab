# SPDX-License-Identifier: Apache-2.0
"""Name recordings of Debian's own stripped libraries by their debug packages, and compare with what others say of the debug files:
llvm-symbolizer, addr2line and eu-addr2line of lines and chains, nm of functions. Prints TAP.

usage: debug_packages.py ORACLE-DIRECTORY STACKTAP WORK-DIRECTORY

WORK-DIRECTORY has the packages unpacked, in amd64/ and arm64/. 10,000 addresses of each library with FULL=1.

libc.so.6 has DWARF 5, with relative directories and code of assembler. libbfd has been through -flto, and dwz has moved what it
shares with libopcodes into /usr/lib/debug/.dwz.

How llvm-symbolizer 14 differs, besides what lines.py says:
* version: a symbol's version is a part of the name.
* directory: as in peers.py.
* dwz: it does not read what was moved out, and an inlined function whose name is there has none. readelf has to find ours there.
* label: a symbol without a type, as -flto leaves (archive.c.b627f310) and kernels have, is a function.
"""
import glob
import os
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import lines  # noqa: E402
import peers  # noqa: E402
import symbols  # noqa: E402

run = lines.run
WANTED = 10000 if os.environ.get("FULL") else 1000
PER_PEER = 10000 if os.environ.get("FULL") else 200
LIBRARIES = (("libc.so.6", False), ("libbfd-*-system.so", True))
OTHERS = ("libm.so.6", "ld-linux-*.so.*")       # of which functions are compared
PREFIXES = {"amd64": "x86_64-linux-gnu-", "arm64": "aarch64-linux-gnu-"}


def tell(good, what, detail=""):
    lines.RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(lines.RESULTS)} - debug packages: {what}", flush=True)
    if not good and detail:
        print("\n".join("# " + line[:2000] for line in str(detail).splitlines()[:20]))


class Library:
    """A library as it is installed, and its file of debug information."""

    def __init__(self, work, arch, name):
        self.arch, self.root = arch, os.path.join(work, arch)
        self.path = os.path.realpath(sorted(glob.glob(f"{self.root}/lib/*-linux-gnu/{name}") +
                                            glob.glob(f"{self.root}/usr/lib/*-linux-gnu/{name}"))[0])
        self.what = f"{arch}'s {os.path.basename(self.path)}"
        self.ident = lines.build_id(self.path)
        self.tree = os.path.join(self.root, "usr/lib/debug")
        self.debug = f"{self.tree}/.build-id/{self.ident[:2]}/{self.ident[2:]}.debug"
        first, size = lines.text_range(self.path)
        places = range(first, first + size, 4 if arch == "arm64" else 1)
        self.addresses = sorted(random.Random(self.what).sample(places, min(WANTED, len(places))))
        self.prefix = "" if {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine) == arch else PREFIXES[arch]


class Moved:
    """What dwz has moved out of a library's debug file."""

    def __init__(self, library, work):
        link = run("readelf", "--string-dump=.gnu_debugaltlink", library.debug)
        self.path = library.root + re.search(r"\] +(/usr/lib/debug/\.dwz/\S+)", link)[1]
        self.strings = run("readelf", "-z", "--string-dump=.debug_str", self.path)
        # addr2line does not unpack it
        unpacked = os.path.join(work, f"{library.arch}.moved")
        subprocess.run([library.prefix + "objcopy", "--decompress-debug-sections", self.path, unpacked], check=True)
        self.beside = peers.relink(library.debug, unpacked, os.path.join(work, f"{library.arch}.debug"), library.prefix)

    def __contains__(self, name):
        return bool(name) and f"{name}\n" in self.strings


def labels(path):
    return {words[7] for words in map(str.split, run("readelf", "-sW", path).splitlines()) if len(words) == 8 and words[3] == "NOTYPE"}


def expected(mine, other, moved, unlike_functions):
    """llvm-symbolizer's frames, with those differences that are known taken out where they are."""
    frames = []
    for i, (name, file, line, column) in enumerate(other):
        ours = mine[i] if len(mine) == len(other) else ("", "", 0, 0)
        name = name.partition("@")[0]
        if moved and not name and i < len(other) - 1:
            name = ours[0] if ours[0] in moved else "(a name that was moved)"
        elif i == len(other) - 1 and name in unlike_functions:
            name = ours[0]
        frames.append((name, peers.once(file), line, column if line else 0))
    return frames


def check_lines(stacktap, work, library, moved):
    """As a recording of the host is named later, where the package was unpacked."""
    recorded, named = os.path.join(work, "in.otlp"), os.path.join(work, "out.otlp")
    # to make one message of all takes the square of it
    lines.write(recorded, *(lines.Recording(library.path, library.addresses[i:i + lines.PER_MESSAGE], ident=library.ident, seed=i // lines.PER_MESSAGE)
                            for i in range(0, WANTED, lines.PER_MESSAGE)))
    status, said = lines.symbolize(stacktap, "--debug-dir", library.tree, "--sysroot", os.path.join(work, "empty"), "-o", named, recorded)
    found = {address: frames for message in lines.frames_of(named) for address, frames in message.items()}
    mine = [[(f[1], lines.normal(f[2]), f[3], f[4]) for f in found.get(address, ())] for address in library.addresses]
    others = lines.theirs(library.debug, library.addresses, raw=True)
    same, unlike = lines.aliases(lines.functions(library.debug)), labels(library.debug)
    agreed = [not lines.differ(one, expected(one, other, moved, unlike), same) for one, other in zip(mine, others)]
    wrong = [f"{address:x}: {one}\n      llvm-symbolizer: {other}" for address, one, other, good in
             zip(library.addresses, mine, others, agreed) if not good]
    inlined, lined = (sum(test(frames) for frames in mine) for test in (lambda f: len(f) > 1, lambda f: any(x[2] for x in f)))
    tell(status == 0 and len(mine) == len(others) == WANTED and not wrong and lined > 0.9 * WANTED and inlined > 0.1 * WANTED,
         f"{library.what}: {WANTED} addresses by --debug-dir, {lined} with lines, {inlined} inlined, as llvm-symbolizer says",
         "\n".join(wrong) or (said, lined, inlined))
    if moved:
        of_moved = [frame for one, other in zip(mine, others) if one for frame in other if not frame[0]]
        tell(len(of_moved) > 3 and not said["objects"][0]["note"],
             f"{library.what}: {len(of_moved)} names of inlined functions are where dwz has moved them", said)
    check_peers(library, moved, mine, agreed, same)


def check_peers(library, moved, mine, agreed, same):
    chosen = sorted(random.Random(7).sample(range(WANTED), min(PER_PEER, WANTED)))
    addresses, mine, agreed = ([values[i] for i in chosen] for values in (library.addresses, mine, agreed))
    for tool in peers.TOOLS:
        peer = peers.Peer(tool, moved.beside if moved else library.debug, addresses, same, library.prefix).compare(addresses, mine, agreed)
        tell(not peer.wrong and peers.is_alike(peer.counts, 0.5 if moved else 0.7),
             f"{library.what} as {tool} -fi says: {peers.told(peer.counts)}", "\n".join(peer.wrong))


def check_functions(program, library):
    """All functions have nm's names, and a stripped library's are told apart where its debug package does."""
    code, names, sizes = symbols.code_ranges(library.path), {}, {}
    for words in map(str.split, run("nm", "--defined-only", "-S", library.debug).splitlines()):
        if len(words) == 4 and words[2] in "tTwWi" and any(a <= int(words[0], 16) < b for a, b in code):
            start = int(words[0], 16)
            names.setdefault(start, set()).add(symbols.without_version(words[3]))
            sizes[start] = max(sizes.get(start, 0), int(words[1], 16))
    count, wrong = symbols.check_starts(program, library.debug, names, sizes)
    entries, unlike = symbols.check_plt(program, library.path, library.prefix)
    tell(count > 200 and not wrong + unlike, f"{library.what}: {count} functions have nm's names, {entries} entries of the PLT objdump's",
         "\n".join(wrong + unlike))
    pick = random.Random(library.what)
    starts = pick.choices(list(sizes), weights=list(sizes.values()), k=10000)
    addresses = [start + pick.randrange(max(sizes[start], 1)) for start in starts]
    pairs = list(zip(addresses, symbols.ask_all(program, library.path, addresses), symbols.ask(program, library.debug, addresses)))
    wrong = [f"{address:x}: {ours}, the debug package {full}" for address, ours, full in pairs
             if not ours or not full or ours[0] != full[0]]
    tell(len(wrong) <= 0.005 * len(addresses), f"{library.what}: stripped, {len(addresses) - len(wrong)} of {len(addresses)} addresses "
         f"are in the function of {len(sizes)} that the debug package says", "\n".join(wrong))


def main():
    oracle, stacktap, work = sys.argv[1:]
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    os.makedirs(os.path.join(work, "empty"))
    for arch in PREFIXES:
        for name, is_moved in LIBRARIES:
            library = Library(work, arch, name)
            check_lines(stacktap, work, library, Moved(library, work) if is_moved else None)
            check_functions(os.path.join(oracle, "symbol_names"), library)
        for name in OTHERS:
            check_functions(os.path.join(oracle, "symbol_names"), Library(work, arch, name))
    print(f"1..{len(lines.RESULTS)}")
    return 0 if all(lines.RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What addr2line -fi and eu-addr2line -fi say of addresses, and how that may differ from what we say.

Names, all demangled by the same c++filt, files, lines, columns (addr2line has none) and chains of inlined functions have to be
equal but for these.

Conventions:
* outside: in no function of the symbol table we say nothing; they go on with the one before, or say a mapping symbol ($x).
* symbol: the outermost function has the name of its symbol, main.cold, or another of the same address; they say what DWARF
  calls it, main, which may be without a class and parameters.
* no line: without a line we say no file; they say the object's or the unit's.
* directory: a relative directory is put in front of a path once, as DWARF 5 has it (6.2.4: directory 0 is where the
  compiler ran, others are relative to it); they put it in front of itself.

Where llvm-symbolizer has to say what we say:
* twin: of functions that gcc found to be equal (-fipa-icf) DWARF has the name of one and the symbol table, as we say, of another.
* addr2line 2.40, first file: line programs of DWARF 5 begin in file 1; it says file 0, which is another one where the first
  rows are a header's, and after -flto. readelf --debug-dump=decodedline of the same version says file 1.
* addr2line 2.40, innermost: an inlined function without a linkage name is called like the one around it.
* addr2line 2.40, left out: inlined functions whose ranges are given by an index (DW_FORM_rnglistx, clang's DWARF 5), or whose
  names are in another unit or file (-flto, dwz); there also without a name.
* eu-addr2line 0.188, left out: inlined functions below entries without an address, which libdw's dwarf_getscopes passes over
  (namespaces of Rust, modules of Fortran), and all of -flto.
* eu-addr2line 0.188, twice: a function, and itself again with the line of a call that does not have the address.
* eu-addr2line 0.188, no row: where no row of the line table has the address it says the last one before.
* eu-addr2line 0.188, call: another call of the same inlined function, or a frame more or less: of one in 100 addresses at most.
  llvm-dwarfdump --lookup finds the call that we say.
Not asked: addr2line 2.40 about DWARF 64, whose line tables it misreads, and split DWARF; eu-addr2line about programs without
.debug_aranges (clang), of which it has no units.
"""
import bisect
import collections
import os
import re
import subprocess

DOUBLE = re.compile(r"^(\./[^/]+(?:/[^/]+)*)/\1/")
FAULTS = ("twin", "first file", "innermost", "left out", "twice", "no row", "call")
CALLS = 0.01
TOOLS = ("addr2line", "eu-addr2line")


def run(*command, text=None, cwd=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd,
                          encoding="utf-8", errors="surrogateescape", check=False).stdout


def normal(path):
    return os.path.normpath(path) if path not in ("", "??") else ""


def once(path):
    """A relative directory in front of itself is there by mistake."""
    return normal(DOUBLE.sub(r"\1/", path))


def demangled(names):
    return dict(zip(names, run("c++filt", text="".join(n + "\n" for n in names)).splitlines()))


def ask(tool, path, addresses, prefix=""):
    """Per address a list of (name, file, line, column), innermost first."""
    command = prefix * (tool == "addr2line") + tool
    answers, lines = [], iter(run(command, "-a", "-f", "-i", "-e", path, text="".join(f"{a:#x}\n" for a in addresses)).splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            answers.append([])
            continue
        file, number, column = re.fullmatch(r"(.*?):(\d+|\?)(?::(\d+))?(?: \(.*\))?", next(lines)).groups()
        name = line.split(" inlined at ")[0]
        answers[-1].append(("" if name == "??" else name, file, 0 if number == "?" else int(number), int(column or 0)))
    return answers


def relink(path, moved, output, prefix=""):
    """The file with what dwz moved out of it beside it: tools look there, or else at an absolute path of this machine."""
    link, objcopy = output + ".link", prefix + "objcopy"
    subprocess.run([objcopy, "--dump-section", f".gnu_debugaltlink={link}", path, output], check=True)
    with open(link, "rb") as file:
        ident = file.read().partition(b"\0")[2]
    with open(link, "wb") as file:
        file.write(os.path.basename(moved).encode() + b"\0" + ident)
    subprocess.run([objcopy, "--update-section", f".gnu_debugaltlink={link}", path, output], check=True)
    return output


class Covered:
    """Where a file's symbol table has functions."""

    def __init__(self, path):
        self.starts, self.ends = [], []
        for line in run("nm", "-S", "-n", "--defined-only", path).splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "TtWwi":
                self.starts.append(int(words[0], 16))
                self.ends.append(max(self.starts[-1] + int(words[1], 16), self.ends[-1] if self.ends else 0))

    def __contains__(self, address):
        at = bisect.bisect(self.starts, address) - 1
        return at >= 0 and address < self.ends[at]


class Peer:
    """One tool's answers about one file, of whose names some are @same."""

    def __init__(self, tool, path, addresses, same, prefix=""):
        self.tool, self.same, self.counts, self.wrong = tool, same, collections.Counter(), []
        self.answers, self.covered = ask(tool, path, addresses, prefix), Covered(path)
        self.plain = {}

    def name(self, frame):
        return self.plain.get(frame[0], frame[0])

    def parts(self, mine, other, is_outer):
        """Conventions by which two frames differ, and parts that are not equal."""
        found, one, name = set(), self.name(mine), self.name(other)
        base = re.split(r"[<.(\[]", name)[0]
        if one != name:
            found.add("symbol" if is_outer and (mine[0] in self.same.get(other[0], ()) or
                                                base and re.search(rf"(?<!\w){re.escape(base)}(?!\w)", one)) else "NAME")
        if not mine[2] and not other[2]:
            found |= {"no line"} - {"no line" * (mine[1] == normal(other[1]))}
        elif mine[1] != once(other[1]):
            found.add("FILE")
        elif mine[1] != normal(other[1]):
            found.add("directory")
        if mine[2] != other[2] or self.tool != "addr2line" and mine[2] and mine[3] != other[3]:
            found.add("LINE")
        return found

    def rule(self, address, mine, other, is_agreed):
        """Why they differ, "": they do not, None: that is what is looked for."""
        if not mine:
            return "outside" if other[0][0] and address not in self.covered else None if other[0][0] else ""
        found = set()
        if len(mine) == len(other):
            frames = [self.parts(one, another, one is mine[-1]) for one, another in zip(mine, other)]
            found = set.union(*frames)
            if not any(map(str.isupper, found)):
                return ", ".join(sorted(found))
        return self.fault(mine, other, found and frames) if is_agreed else None

    def fault(self, mine, other, frames):
        is_eu = self.tool == "eu-addr2line"
        bad = [{part for part in parts if part.isupper()} for parts in frames]
        if not is_eu and frames:
            if not any(bad[1:]) and bad[0] == {"FILE"}:
                return "first file"
            if not any(bad[1:]) and "NAME" in bad[0] and bad[0] <= {"NAME", "FILE"} and (
                    self.name(other[0]) == self.name(other[-1]) or other[0][0] in self.same.get(mine[-1][0], ())):
                return "innermost"
            if set.union(*bad) <= {"NAME"} and all(not another[0] for another, parts in zip(other, bad) if parts):
                return "left out"
        if frames and bad[-1] == {"NAME"} and not any(bad[:-1]):
            return "twin"
        if is_eu and not mine[0][2] and len(mine) == 1 and not bad[0] - {"FILE", "LINE"}:
            return "no row"
        if is_eu and len(other) == len(mine) + 1 and other[-1][0] == other[-2][0] and not any(
                map(str.isupper, set.union(*(self.parts(one, another, one is mine[-1]) for one, another in zip(mine, other))))):
            return "twice"
        if len(other) < len(mine) and other[0][2] == mine[0][2] and (not is_eu or once(other[0][1]) == mine[0][1]):
            rest = iter(mine)
            if (len(other) == 1 or not is_eu) and all(any("NAME" not in self.parts(one, another, one is mine[-1]) for one in rest)
                                                      for another in other):
                return "left out" if once(other[0][1]) == mine[0][1] else "left out, first file"
        if is_eu and (not frames or not bad[0] and set.union(*bad) == {"LINE"}):
            return "call"
        return None

    def compare(self, addresses, mine, agreed):
        """@agreed: of each, whether llvm-symbolizer says the same."""
        self.plain = demangled({frame[0] for frames in (*mine, *self.answers) for frame in frames})
        if not len(addresses) == len(mine) == len(self.answers):
            self.wrong.append(f"{len(mine)} and {len(self.answers)} answers for {len(addresses)} addresses")
        for address, one, other, is_agreed in zip(addresses, mine, self.answers, agreed):
            rule = self.rule(address, one, other, is_agreed)
            if rule is None:
                self.wrong.append(f"{address:x}: {one}\n      {self.tool}: {other}")
            else:
                self.counts.update(rule.split(", ") if rule else ["equal"])
        if self.counts["call"] > max(2, CALLS * len(addresses)):
            self.wrong.append(f"{self.counts['call']} of {len(addresses)} have another call")
        return self


def told(counts):
    return ", ".join(f"{count} {rule}" for rule, count in counts.most_common())


def is_alike(counts, share=0.7):
    """Faults are no excuse for most."""
    good = sum(counts[rule] for rule in ("equal", "symbol", "directory", "no line", "outside"))
    return good > share * (good + sum(counts[rule] for rule in FAULTS))

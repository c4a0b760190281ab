# SPDX-License-Identifier: Apache-2.0
"""Lines and inlined functions as the daemon finds them while it records, of programs of which a part of their DWARF is in other
files: what dwz has moved out, a package of split DWARF, .dwo files. The same as llvm-symbolizer says, or as before dwz came.
Prints TAP.

usage: daemon_lines.py DAEMON-LINES LINE-NAMES WORK-DIRECTORY
"""
import os
import random
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

import dwo  # noqa: E402
import lines  # noqa: E402

tell = lines.tell

FULL = bool(os.environ.get("FULL"))


class Asked:
    """What the daemon finds for @addresses of a program, and what it counts."""

    def __init__(self, daemon, path, addresses, *indices):
        done = subprocess.run([daemon, path, *indices], input="".join(f"{a:x}\n" for a in addresses), capture_output=True, text=True, check=False)
        self.status, self.said, frames, answers = done.returncode, done.stderr, [], []
        for line in done.stdout.splitlines():
            if line:
                name, file, number, column, _ = line.split("\t")
                frames.append((name, lines.normal(file), int(number), int(column)))
            else:
                answers.append(frames)
                frames = []
        self.frames = dict(zip(addresses, answers))
        words = done.stderr.split("\n")[-2].split() if done.stderr else []
        self.counts = dict(zip(words[::2], map(int, words[1::2])))

    def inlined(self):
        return sum(len(frames) > 1 for frames in self.frames.values())

    def lined(self):
        return sum(bool(frames) and frames[0][2] > 0 for frames in self.frames.values())


def check_dwos(daemon, path, what, least):
    addresses = dwo.addresses_of(path)
    asked = Asked(daemon, path, addresses)
    wrong = dwo.compare(asked, path, addresses)
    tell(not wrong and asked.inlined() > len(addresses) // 5 and asked.counts["dwos"] >= least and not asked.counts["without_inlined"],
         f"{what}: {len(addresses)} addresses, {asked.inlined()} inlined", "\n".join(wrong) or asked.said)


def check_package(daemon, path):
    addresses = dwo.addresses_of(path)
    first = Asked(daemon, path, addresses)
    subprocess.run(["llvm-dwp", "-e", path, "-o", path + ".dwp"], cwd=os.path.dirname(path), check=True)
    shutil.rmtree(os.path.join(os.path.dirname(path), "obj"))
    asked = Asked(daemon, path, addresses)
    wrong = [f"{a:x}: {asked.frames.get(a)}, not {frames}" for a, frames in first.frames.items() if asked.frames.get(a) != frames]
    tell(not wrong and asked.inlined() > len(addresses) // 5 and asked.counts["packages"] == 1 and not asked.counts["dwos"],
         "a package beside the program", "\n".join(wrong) or asked.said)
    os.chmod(path + ".dwp", 0o666)
    asked = Asked(daemon, path, addresses)
    tell(not asked.inlined() and asked.lined() > len(addresses) // 3 and asked.counts["refused"] and asked.counts["without_inlined"],
         "one that everybody may write to is refused, and there are lines all the same", asked.said)


def check_who_may_write(daemon, path):
    """Others than the program's owner and root may not say what is in it."""
    addresses = dwo.addresses_of(path)
    whole = Asked(daemon, path, addresses)
    objects = os.path.join(os.path.dirname(path), "obj")
    for what, change in (("its group", lambda name: os.chmod(name, 0o664)), ("another user", lambda name: os.chown(name, 12345, 12345))):
        if what == "another user" and os.geteuid():
            continue
        for name in ("more.dwo", "shop.dwo"):
            change(os.path.join(objects, name))
        asked = Asked(daemon, path, addresses)
        tell(not asked.inlined() and asked.lined() == whole.lined() > len(addresses) // 3 and asked.counts["refused"] >= 2 and
             not asked.counts["dwos"], f"what {what} may write to is refused", asked.said)
        for name in ("more.dwo", "shop.dwo"):
            os.chmod(os.path.join(objects, name), 0o644)
    if not os.geteuid():
        # the program is theirs as well
        os.chown(path, 12345, 12345)
        asked = Asked(daemon, path, addresses)
        tell(asked.frames == whole.frames, "what is the program's owner's is taken", asked.said)
        for name in (path, os.path.join(objects, "more.dwo"), os.path.join(objects, "shop.dwo")):
            os.chown(name, 0, 0)


def check_hostile(daemon, path, other):
    """What is no object file, another build's, or noise costs what is in it."""
    addresses = dwo.addresses_of(path)
    whole = Asked(daemon, path, addresses)
    file = os.path.join(os.path.dirname(path), "obj", "more.dwo")
    with open(file, "rb") as stream:
        content = stream.read()
    at, size = lines.section(file, ".debug_info.dwo")
    of_other = [a for a in addresses if whole.frames[a] and whole.frames[a][-1][1].endswith("shop.cc")]

    def noise():
        dwo.write(file, "noise" * 1000)

    def entries():
        with open(file, "wb") as stream:
            stream.write(content[:at + 64] + random.Random(3).randbytes(size - 64) + content[at + size:])
    for what, replace in (("a pipe", lambda: os.mkfifo(file)), ("noise", noise), ("entries of noise", entries),
                          ("another build's", lambda: shutil.copy(os.path.join(os.path.dirname(other), "obj", "more.dwo"), file)),
                          ("the kernel's", lambda: os.symlink("/proc/kmsg", file))):
        os.unlink(file)
        replace()
        asked = Asked(daemon, path, addresses)
        tell(asked.status == 0 and asked.lined() == whole.lined() and all(asked.frames[a] == whole.frames[a] for a in of_other),
             f"{what}: the {len(of_other)} of the other file are whole", asked.said)


def check_index(daemon, work, path):
    """A second daemon makes none of what clang's programs lack, and one that is damaged is made anew."""
    addresses, directory = dwo.addresses_of(path), os.path.join(work, "indices")
    wanted = Asked(daemon, path, addresses).frames

    def is_made(is_wanted, is_refused, what):
        asked = Asked(daemon, path, addresses, directory)
        loaded, made, refused, late = (asked.counts["index_" + name] for name in ("loaded", "made", "refused", "late"))
        # a host that is busy may open it too late, or ask more than once
        tell(asked.frames == wanted and (made if is_wanted else made <= late and loaded + late) and bool(refused) == is_refused,
             f"the index of a program: {what}", asked.said)
    is_made(True, False, "made")
    is_made(False, False, "read by the next daemon")
    file = os.path.join(directory, os.listdir(directory)[0])
    with open(file, "r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        last = stream.read(1)[0]
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([last ^ 1]))
    is_made(True, True, "damaged, and made anew")
    os.chmod(file, 0o620)
    is_made(True, True, "that its group may write to, and made anew")
    is_made(False, False, "read by the next daemon again")
    # another file with the same build-id
    other = path + ".other"
    shutil.copy(path, other)
    asked = Asked(daemon, other, addresses, directory)
    tell(asked.counts["index_loaded"] == 0 and asked.counts["index_made"] == 1, "the index of a program is not another's of its build-id",
         asked.said)


def check_moved(daemon, line_names, work):
    """What two programs share is in a third file, which is named relative to the first."""
    for version, options in ((4, ()), (5, ()), (5, ("-5",)))[0 if FULL else 1:]:
        directory = os.path.join(work, f"moved-{version}{''.join(options)}")
        os.makedirs(directory)
        dwo.write(directory + "/shop.cc", lines.CXX)
        for name, level in (("one", "-O2"), ("two", "-O1")):
            subprocess.run(["g++", level, "-g", f"-gdwarf-{version}", "-Wl,--build-id", "-o", name, "shop.cc"], cwd=directory, check=True)
        path, whole = os.path.join(directory, "one"), os.path.join(directory, "whole")
        shutil.copy(path, whole)
        subprocess.run(["dwz", *options, "-m", "shared.debug", "-M", "shared.debug", "one", "two"], cwd=directory, check=True)
        first, size = lines.text_range(path)
        addresses = random.Random(version).sample(range(first, first + size), 600)
        addresses = sorted(set(addresses) | {a for a in lines.functions(path) if first <= a < first + size})
        wanted = dict(zip(addresses, lines.ours(line_names, whole, addresses)))
        what = f"DWARF {version} {' '.join(options)}".strip()
        asked = Asked(daemon, path, addresses)
        wrong = [f"{a:x}: {asked.frames.get(a)}, not {frames}" for a, frames in wanted.items() if asked.frames.get(a) != frames]
        tell(not wrong and asked.counts["moved"] == 1 and asked.inlined() > len(addresses) // 3,
             f"{what}: {len(addresses)} addresses as before dwz moved a part", "\n".join(wrong) or asked.said)
        # of a stripped program it is its debug file that names it
        subprocess.run("objcopy --only-keep-debug one one.debug && strip one && objcopy --add-gnu-debuglink=one.debug one", shell=True,
                       cwd=directory, check=True)
        asked = Asked(daemon, path, addresses)
        tell(asked.frames == wanted and asked.counts["moved"] == 1, f"{what}: by the debug file beside it", asked.said)
        os.rename(directory + "/two", directory + "/shared.debug")
        asked = Asked(daemon, path, addresses)
        tell(not asked.lined() and not asked.counts["moved"] and any(asked.frames.values()),
             f"{what}: without what was moved there are names", asked.said)


def main():
    daemon, line_names, work = sys.argv[1:]
    # that may have an object of the same source that was compiled in another directory
    os.environ["CCACHE_DISABLE"] = "1"
    shops = {variant: dwo.compile_shop(work, *variant) for variant in (dwo.VARIANTS if FULL else (("gcc", 5), ("clang", 4)))}
    for (compiler, version), path in shops.items():
        check_dwos(daemon, path, f"{compiler}'s DWARF {version}", 2)
    check_dwos(daemon, dwo.compile_many(work), f"{dwo.MANY} .dwo files", dwo.MANY)
    check_who_may_write(daemon, shops["gcc", 5])
    check_hostile(daemon, shops["gcc", 5], shops["clang", 4])
    check_index(daemon, work, shops["clang", 4])
    check_package(daemon, shops["clang", 4])
    check_moved(daemon, line_names, work)
    print(f"1..{len(lines.RESULTS)}")
    return 0 if all(lines.RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

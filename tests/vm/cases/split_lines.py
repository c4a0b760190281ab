# SPDX-License-Identifier: Apache-2.0
"""Lines and inlined functions while recording, of programs that have a part of their DWARF in another file: split DWARF, on the
host and in a root of its own, and what dwz has moved out, also of a container's program whose debug files are the host's; those of
others are refused."""

import os
import re
import shutil
import subprocess

ARCHES = ("x86_64",)
# local storage, which what the programs come from is not
SPLIT = "/var/split"
SECONDS = "3"
# a tmpfs that is the root of the program's process
ALONE = "/var/alone"


def guest(t):
    theirs = "/var/theirs"
    os.mkdir(ALONE)
    t.run("mount", "-t", "tmpfs", "none", ALONE)
    shutil.copytree("/opt/stacktap/workload/split", SPLIT)
    os.mkdir(theirs)
    with open(f"{SPLIT}/apart.id", encoding="ascii") as file:
        ident = file.read().strip()
    # as the host's packages install them
    for path, name in ((f".build-id/{ident[:2]}/{ident[2:]}.debug", "apart.debug"), (".dwz/stacktap/apart", "apart.dwz")):
        os.makedirs(os.path.dirname(f"/usr/lib/debug/{path}"), exist_ok=True)
        shutil.copy(f"{SPLIT}/{name}", f"/usr/lib/debug/{path}")
    shutil.copy(f"{SPLIT}/apart", ALONE)
    for name in ("lined", "lined.dwo"):
        shutil.copy(f"{SPLIT}/{name}", theirs)
        shutil.copy(f"{SPLIT}/{name}", ALONE)
    os.chmod(f"{theirs}/lined.dwo", 0o666)
    for name, command in (("lined", (f"{SPLIT}/lined", SECONDS)), ("moved", (f"{SPLIT}/moved", SECONDS)),
                          ("alone", ("chroot", ALONE, "/lined", SECONDS)),
                          ("apart", ("chroot", ALONE, "/apart", SECONDS)), ("theirs", (f"{theirs}/lined", SECONDS))):
        done = t.stacktap("record", "-e", "cpu-clock", "-F", 499, "-q", "--lines", "-o", t.path(f"{name}.otlp"), "--", *command)
        t.equal(done.returncode, 0, f"{name} is recorded")
    t.run("umount", ALONE)


def told(path, addresses):
    """Per address its frames as llvm-symbolizer says, innermost first: name, file's name, line."""
    text = subprocess.run(["llvm-symbolizer", "-e", path, "--no-demangle", "-i", "--functions=linkage"], check=True, text=True,
                          input="".join(f"{a:#x}\n" for a in addresses), stdout=subprocess.PIPE).stdout
    answers = []
    for block in text.strip("\n").split("\n\n"):
        rows = block.split("\n")
        answers.append([(name, os.path.basename(place.rsplit(":", 2)[0]), int(place.rsplit(":", 2)[1]))
                        for name, place in zip(rows[::2], rows[1::2])])
    return dict(zip(addresses, answers))


def leaves(samples):
    """Per address of a leaf in the program's own code: its frames, and how many samples."""
    found = {}
    for sample in samples:
        frames = sample.stack
        count = next(i for i, frame in enumerate(frames) if not frame.inlined) + 1
        if frames[0].mapping and re.search(r"/(lined|moved|apart)$", frames[0].mapping):
            at = found.setdefault(frames[0].address, [[(f.function, os.path.basename(f.file), f.line) for f in frames[:count]], 0])
            at[1] += sample.count
    return found


def host(t):
    import model
    split = os.path.join(t.output, f"stage-{t.arch}", "workload", "split")
    for name, program, whole in (("lined", "lined", "lined"), ("moved", "moved", "moved.whole"), ("alone", "lined", "lined"),
                                 ("apart", "apart", "apart.whole")):
        found = leaves(model.of_process(t.load(f"{name}.otlp"), program))
        wanted = told(os.path.join(split, whole), sorted(found))
        total = sum(count for _, count in found.values())
        inlined = sum(count for frames, count in found.values() if len(frames) == 3)
        wrong = {hex(a): (frames, wanted[a]) for a, (frames, _) in found.items() if frames[0][1] == "lined.c" and frames != wanted[a]}
        t.ok(not wrong, f"{name}: {len(found)} addresses as llvm-symbolizer says" + (f": {wrong}" if wrong else ""))
        t.ok(total > 50 and inlined > 0.8 * total, f"{name}: {inlined} of {total} samples in functions that are inlined twice")
    found = leaves(model.of_process(t.load("theirs.otlp"), "lined"))
    total = sum(count for _, count in found.values())
    plain = sum(count for frames, count in found.values() if len(frames) == 1 and frames[0][2])
    t.ok(total > 200 and plain > 0.8 * total,
         f"a .dwo file that everybody may write to is refused, and lines are there: {plain} of {total}")

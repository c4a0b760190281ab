# SPDX-License-Identifier: Apache-2.0
"""What the documents show of outputs, and the commands in them that read recordings.

Outputs: a block without a language is what a command prints, of a recording that is made here with the same names.
Each of its lines has to be in what is printed now, in the same order and the same but for the numbers; what it leaves
out is fine, but for a table's heading. Commands are run as they stand there, in a directory that has the recordings
that they name. Prints TAP.

usage: shown.py STACKTAP SCRATCH-DIRECTORY DOCUMENT...
"""

import collections
import os
import random
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, os.pardir, os.pardir)
sys.path[:0] = [os.path.join(TOP, "tests/otlp"), os.path.join(TOP, "tests/oracle")]

NUMBER = r"\d+(?:[.,]\d+)*"
# a line of capitals above a table
HEADING = re.compile(r" *[A-Z]{4,}(?: +[A-Z]{4,})*")
Block = collections.namedtuple("Block", "document line lines")


def pattern(line, names=()):
    """
    What a line of a document may look like: its numbers differ, and with them how wide columns are; and what @names,
    regular expressions without groups, match there.
    """
    found, step = "", 3 + len(names)
    for i, part in enumerate(re.split("|".join(f"({one})" for one in (*names, NUMBER, r"\s+")), line.strip())):
        if part is not None:
            kind = i % step
            found += {0: re.escape(part), step - 2: NUMBER, step - 1: r"\s+"}.get(kind, ".*")
    return re.compile(found)


def blocks(document):
    """Its fenced blocks without a language that are no drawing."""
    found, lines = [], None
    with open(os.path.join(TOP, document), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("```"):
                if lines is None:
                    lines, start, is_output = [], number, line == "```\n"
                else:
                    if is_output and not re.search("[─►]", "".join(lines)):
                        found.append(Block(document, start, lines))
                    lines = None
            elif lines is not None:
                lines.append(line.rstrip("\n"))
    return found


def missing(block, said, names=()):
    """What a block shows that is not printed, and headings that are printed and not shown."""
    rest, wrong = iter(said.splitlines()), []
    for line in filter(str.strip, block.lines):
        wanted = pattern(line, names)
        if not any(wanted.fullmatch(other.strip()) for other in rest):
            wrong.append(f"{block.document}:{block.line}: not printed (any more, or there): {line}")
            rest = iter(())
    shown = {tuple(line.split()) for line in block.lines}
    wrong += [f"{block.document}:{block.line}: not shown: {line}" for line in said.splitlines()
              if HEADING.fullmatch(line) and tuple(line.split()) not in shown]
    return wrong


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def same(self, text, have, want):
        self.count += 1
        self.failed += have != want
        print(f"{'ok' if have == want else 'not ok'} {self.count} - {text}", flush=True)
        if have != want:
            for line in [f"{have!r}", "not", f"{want!r}"] if not isinstance(have, list) else have[:20]:
                print(f"#   {line}")


Process = collections.namedtuple("Process", "pid name share stacks")
START = 1_790_000_000_000_000_000
# a program that takes its time in a function, in one that is inlined there, and in the C library's, which it brings along
SOURCE = """#include <stdio.h>

static inline __attribute__((always_inline)) int step(int x)
{
    return x & 1 ? 3 * x + 1 : x / 2;
}

static int best;

int __attribute__((noinline)) longest(int limit)
{
    for (int i = 1; i < limit; i++) {
        int n = 0;
        for (int x = i; x != 1; n++)
            x = step(x);
        best = n > best ? n : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    return printf("%s %d\\n", argv[0], longest(argc * 100));
}
"""
LIBRARY = "void *memcpy(void *to, const void *from, unsigned long n)\n{\n    for (char *t = to; n--; t++)\n        *t = *(const char *)from++;\n    return to;\n}\n"


def write(path, processes, seconds, count, stays=0.5, seed=1, start=START, quality=None, service=None, **told):
    """
    A recording: of each sample the process and stack, from the leaf on, are drawn by their shares; it is those of the
    sample before with probability @stays, or with the stack's own.
    """
    import make_sample
    import wire
    from wire import Message
    pick, builder = random.Random(seed), make_sample.Builder()
    choices = [(process, stack, process.share * share, *rest) for process in processes for stack, share, *rest in process.stacks]
    drawn = pick.choices(range(len(choices)), [choice[2] for choice in choices], k=count)
    times, now = [[] for _ in choices], drawn[0]
    for i, other in enumerate(drawn):
        if pick.random() >= (choices[now][3:] or [stays])[0]:
            now = other
        times[now].append(start + i * seconds * 10**9 // count)

    def location(name, file):
        address = 64 * builder.string(name) + (0x2000 if file else 0xffffffff81000000)
        return builder.location(name, address, "native" if file else "kernel", builder.mapping(file, 0x1000, 0x900000) if file else 0)

    for process in processes:
        thread = builder.attributes(thread__id=process.pid, thread__name=process.name)
        samples = [make_sample.sample(builder.stack(*(location(*frame) for frame in stack)), thread, at)
                   for (owner, stack, *_), at in zip(choices, times) if owner is process and at]
        taken = sum(len(sample.timestamps_unix_nano) for sample in samples)
        attributes = {name: int(taken * share) for name, share in (quality or {}).items()} | told
        builder.resource([Message(
            "Profile", sample_type=builder.value_type("samples", "count"), samples=samples, time_unix_nano=start,
            duration_nano=seconds * 10**9, period_type=builder.value_type("cpu", "nanoseconds"), period=seconds * 10**9 // count,
            profile_id=bytes([process.pid % 256]) * 16,
            attribute_indices=builder.attributes(**{f"stacktap__{name}": value for name, value in attributes.items()}))],
            process__pid=process.pid, process__executable__name=process.name, service__name=service or process.name)
    with open(path, "ab") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def frames(file, *names):
    return [(name, file) for name in names]


def demo(path):
    """Of README.md: a program with symbols, and two that are without for the most part."""
    python, xz = "/usr/bin/python3.11", "/usr/lib/x86_64-linux-gnu/liblzma.so.5.4.1"
    split = "/opt/stacktap/workload/static/known_split"
    write(path, [
        Process(174, "known_split", 0.5, [
            (frames(split, "hot_a", "main"), 0.6), (frames(split, "hot_b", "main"), 0.3), (frames(split, "main"), 0.1)]),
        Process(182, "python3.11", 0.2, [
            (frames(python, "_PyEval_EvalFrameDefault", "main"), 0.6), (frames(python, "main"), 0.1),
            (frames(python, "python3.11+0x55d4c0", "_PyEval_EvalFrameDefault", "main"), 0.3)]),
        Process(179, "xz", 0.3, [(frames(xz, "liblzma.so.5.4.1+0x190e0"), 0.6), (frames(xz, "liblzma.so.5.4.1+0x15b10"), 0.4)])],
        70, 7000, source="cycles", event="cpu-clock", fallback_errno=2, service="stacktap-demo",
        quality={"samples": 1, "complete": 0.95, "named": 0.5, "by_range": 0.49, "stale": 0.001, "missed": 0.015})


def summarized(path):
    """Of views.md: a function that comes in bursts has most of the samples."""
    deep = "/opt/workload/deep"
    write(path, [Process(7, "deep", 0.3, [(frames(deep, "bottom", "descend", "main"), 0.97, 0.9), (frames(deep, "descend", "main"), 0.03)])] +
          [Process(pid, name, 0.2, [(frames("", f"do_{name}"), 1)]) for pid, name in ((8, "sshd"), (9, "cron"), (10, "bash"))],
          36, 7000, stays=0, source="cpu-clock", event="cpu-clock",
          quality={"samples": 1, "complete": 0.995, "named": 0.014, "by_range": 0.98})


def compared(path, share, seed=1, start=START):
    """Of diff.md."""
    libz = "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13"
    rest = [(frames("/usr/bin/shop", f"serve_{i}", "main"), (1 - share) / 40) for i in range(40)]
    write(path, [Process(4711, "shop", 1, [(frames(libz, "inflate_fast") + frames("/usr/bin/shop", "main"), share), *rest])],
          60, 60000, stays=0.7, seed=seed, start=start, source="cycles", event="cycles", quality={"samples": 1, "complete": 1, "named": 1})


def annotated(path, work, name, function, source_name, text, *options):
    """Of views.md: a program or library that is here, with its source; samples of one of its functions."""
    import annotate
    import lines
    program, source = os.path.join(work, "usr/bin", name), os.path.join(work, "home/me/shop", source_name)
    for file in (program, source):
        os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(source, "w", encoding="ascii") as file:
        file.write(text)
    lines.run(os.environ.get("CC", "cc"), "-g", "-O2", "-w", "-Wl,--build-id", *options, "-o", program, source)
    start, size = next((start, size) for symbol, start, size in annotate.symbols(program) if symbol == function)
    code = [address for address, _ in annotate.instructions(program, start, size)]
    recorded = os.path.join(work, f"{function}.otlp")
    annotate.record(recorded, {address: 3 + i % 7 for i, address in enumerate(code)}, program, function,
                    stacktap__source="cycles", stacktap__event="cycles")
    with open(recorded, "rb") as file, open(path, "ab") as out:
        out.write(file.read())
    # a share of all has an error only if it is not all
    for start in (start for symbol, start, _ in annotate.symbols(program) if symbol == "main"):
        annotate.record(recorded, {start: 200}, program, "main", stacktap__source="cycles", stacktap__event="cycles")
        with open(recorded, "rb") as file, open(path, "ab") as out:
            out.write(file.read())


def read_only(line):
    """The commands of a line, if all of it is stacktap's, and may run here."""
    line = line.split("  #")[0].strip().replace("sudo ", "")
    parts = re.split(r"\|\||[|;]|&&", line)
    programs = [part.split()[0] if part.split() else "" for part in parts]
    return line if programs[0] == "stacktap" and set(programs) <= {"stacktap", "echo"} else None


def commands(document):
    """[(line, command)]: lines of code, and what stands in `...`, that begin with stacktap."""
    found, is_fenced = [], False
    with open(os.path.join(TOP, document), encoding="utf-8") as file:
        # a line that goes on in the next one is one
        for number, line in enumerate(re.sub(r"\\\n(.*)", r" \1\n", file.read()).split("\n"), 1):
            is_fenced ^= line.startswith("```")
            if is_fenced:
                continue
            is_code = line.startswith("    ") and not line.lstrip().startswith(("*", "|"))
            for text in [line] if is_code else re.findall(r"`([^`]+)`", line):
                command = read_only(text)
                # neither a mention in a sentence, nor one in which something has to be filled in
                words = command.split() if command else []
                is_mention = not is_code and (len(words) < 3 or words[-1] == "-o")
                if words and not is_mention and not re.search(r"(?<![\w-])[A-Z]+(?![\w=])|\.\.\.", command):
                    found.append((number, command))
    return found


# what they do without the module, and for the examples' process, service and so on
WANTS_MODULE = ("record", "top", "set", "start", "stop", "status", "events")
LACKS = re.compile(r"modprobe stacktap|no process 4711|cgroup .*No such file")


def typed(tap, program, work, document):
    """Each of a document's commands, in the order in which they stand there. Recordings that they would make are here."""
    made = {name: os.path.join(work, os.pardir, f"kept-{name}") for name in os.listdir(work) if name.endswith(".otlp")}
    for name, kept in made.items():
        shutil.copy(os.path.join(work, name), kept)
    environment = dict(os.environ, HOME=work, PAGER="cat", LC_ALL="C.UTF-8", TZ="UTC", PATH=f"{os.path.dirname(program)}:{os.environ['PATH']}")
    wrong, count = [], 0
    for number, command in commands(document):
        line = command.replace("/var/lib/stacktap", "store").replace("-l 8080", "-l 0")
        if "perf" in line:      # which would have to be here
            continue
        name = line.split()[1]
        child = subprocess.Popen(["timeout", "--signal=INT", "0.5" if name == "serve" else "60", "sh", "-c", line], cwd=work, env=environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = child.communicate()
        count += 1
        good = child.returncode == 0 or (name == "diff" and child.returncode == 3)
        if name == "serve":
            good = re.match(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/\n", out)
        elif name in WANTS_MODULE:
            good = child.returncode == 1 and LACKS.search(out + err)
            for file, kept in made.items():
                shutil.copy(kept, os.path.join(work, file))
        elif name == "doctor":
            good = child.returncode in (0, 1)
        if not good:
            wrong.append(f"{document}:{number}: {command}: exit status {child.returncode}: {out[-300:]}{err[-300:]}")
    if count:
        tap.same(f"{document}: what its {count} commands do, typed as they stand there", wrong, [])
    return count


def main(program, work, *documents):
    tap = Tap()

    def run(*command):
        done = subprocess.run([program, *command], cwd=work, capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, HOME=work, PAGER="cat", LC_ALL="C.UTF-8"))
        return done.returncode, done.stdout, done.stderr

    os.makedirs(os.path.join(work, "typed/store"))
    annotated(os.path.join(work, "shop.otlp"), work, "shop", "longest", "tree.c", SOURCE)
    annotated(os.path.join(work, "libc.otlp"), work, "libc.so.6", "memcpy", "memcpy.c", LIBRARY, "-shared", "-fPIC", "-fno-builtin")
    demo(os.path.join(work, "demo.otlp"))
    summarized(os.path.join(work, "host.otlp"))
    for where in ("", "typed"):
        compared(os.path.join(work, where, "old.otlp"), 0.10)
        compared(os.path.join(work, where, "new.otlp"), 0.13, seed=2)
    for name in ("shop.otlp", "libc.otlp", "old.otlp"):
        with open(os.path.join(work, name), "rb") as file, open(os.path.join(work, "typed/host.otlp"), "ab") as out:
            out.write(file.read())
    # before and after a deployment, of which the documents tell
    for minutes, share in ((-30, 0.10), (10, 0.13)):
        compared(os.path.join(work, f"typed/store/profiles-{1795442400 + 60 * minutes}000.otlp"), share,
                 start=(1795442400 + 60 * minutes) * 10**9)
    shutil.copy(os.path.join(work, "typed/host.otlp"), os.path.join(work, "typed/stacktap.otlp"))
    run("convert", "-o", "typed/cpu.pb.gz", "shop.otlp")
    run("symbolize", "-o", "named.otlp", "shop.otlp")
    shown = {
        "README.md: N % ± N known_split": ("report", "--limit", "5", "demo.otlp"),
        "docs/views.md: recording": ("report", "--summary", "host.otlp"),
        "docs/quickstart.md: recording": ("report", "--summary", "host.otlp"),
        "docs/views.md: longest": ("annotate", "longest", "named.otlp"),
        "docs/diff.md: before": ("diff", "old.otlp", "new.otlp"),
    }
    count = 0
    for document in documents:
        for block in blocks(document):
            head = f"{document}: " + " ".join(re.sub(NUMBER, "N", block.lines[0]).split())
            command = next((command for key, command in shown.items() if head.startswith(key)), None)
            tap.same(f"{document}:{block.line}: it is known what this is the output of", bool(command), True)
            if command:
                _, out, err = run(*command)
                tap.same(f"{document}:{block.line} is what stacktap {' '.join(command)} prints",
                         missing(block, (out + err).replace(work, "")), [])
        count += typed(tap, program, os.path.join(work, "typed"), document)
    tap.same("they were found", count > 60, True)
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

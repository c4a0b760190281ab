# SPDX-License-Identifier: Apache-2.0
"""Wrong input and missing privilege: each has a clear sentence, an exit status, and does no harm."""

import os
import random

LOAD = False
# GETFAMILY of the generic netlink controller, as any library asks for a family by its name
ASK = """
import socket, struct
family = b"stacktap\\0"
attr = struct.pack("=HH", 4 + len(family), 2) + family + bytes(-len(family) % 4)
message = struct.pack("=IHHIIBBH", 20 + len(attr), 16, 5, 1, 0, 3, 1, 0) + attr
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16) as s:
    s.send(message)
    print(struct.unpack("=IHHIIi", s.recv(4096)[:20])[5])
"""


def refused(t, what, result, *words, status=None):
    said = (result.stderr + result.stdout).lower()
    t.ok(result.returncode != 0 and all(word.lower() in said for word in words)
         and (status is None or result.returncode == status),
         f"{what}: refused with a sentence (exit {result.returncode})", said)


def guest(t):
    def stacktap(*arguments):
        return t.stacktap(*arguments, check=False)

    refused(t, "no module", stacktap("status"), "modprobe stacktap", status=1)
    refused(t, "no module, record", stacktap("record", "-a", "--duration", 1), "modprobe stacktap",
            status=1)
    result = stacktap("status", "--json")
    t.ok(result.returncode == 1 and '"error"' in result.stdout + result.stderr,
         "no module: --json says it in JSON", result.stdout + result.stderr)
    by_name(t)
    t.insmod()
    out = "/tmp/out.otlp"
    # one that is not refused after all ends by itself
    record = ("record", "-a", "--duration", "1", "-o", out)
    for what, arguments, words in (
            ("rate 0", (*record, "-F", "0"), ("rate",)),
            ("rate 10^9", (*record, "-F", "1000000000"), ("10000",)),
            ("rate in words", (*record, "-F", "many"), ("many",)),
            ("period 0", (*record, "-c", "0"), ("period",)),
            ("unknown event", (*record, "-e", "cylces"), ("cylces", "cycles")),
            ("no such process", ("record", "--duration", "1", "-p", "4194303", "-o", out), ("4194303",)),
            ("no such CPU", (*record, "-C", "77"), ("77",)),
            ("bad CPU list", (*record, "-C", "1-"), ("1-",)),
            ("unknown option", (*record, "--bogus"), ("bogus",)),
            ("unknown command", ("recrod",), ("recrod",)),
            ("no such directory", ("record", "-a", "--duration", "1", "-o", "/no/such/x.otlp"),
             ("/no/such",)),
            ("no such session", ("stop", "424242"), ("424242",)),
            ("no such file", ("report", "/no/such.otlp"), ("/no/such.otlp",))):
        refused(t, what, stacktap(*arguments), *words)
        t.ok(not os.path.exists(out), f"{what}: no file is left behind")

    nobody = t.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   "/opt/stacktap/bin/stacktap", "record", "-a", "--duration", "1", "-o", out,
                   check=False)
    refused(t, "no privilege", nobody, "permission")
    os.chmod("/dev/stacktap", 0o666)
    nobody = t.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   "/opt/stacktap/bin/stacktap", "record", "-a", "--duration", "1", "-o", out,
                   check=False)
    refused(t, "no capability but the node is open", nobody, "CAP_PERFMON")
    first = t.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/opt/stacktap/bin/stacktap", check=False)
    lines = first.stderr.splitlines()
    t.ok(first.returncode == 1 and not first.stdout and len(lines) == 3 and "CAP_PERFMON" in lines[0] and
         "`stacktap doctor'" in lines[1] and "`sudo stacktap record" in lines[1],
         "who has no rights and asks for nothing is told what is next, in three lines", first.stdout + first.stderr)
    # the side band alone would refuse it as well
    nobody = t.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c",
                   "import os; os.open('/dev/stacktap', os.O_RDWR)", check=False)
    refused(t, "the node itself, opened without a capability", nobody, "PermissionError")
    paranoid(t)
    damaged_files(t)
    lying_files(t)
    t.rmmod()


def by_name(t):
    """Nobody has the module loaded by asking for its family; who may load it names the module."""
    release = os.uname().release
    # an emulated CPU takes a minute to go through all of Debian's
    t.run("mount", "-t", "tmpfs", "modules", f"/lib/modules/{release}")
    os.makedirs(f"/lib/modules/{release}/updates")
    t.run("cp", "/opt/stacktap/stacktap.ko", f"/lib/modules/{release}/updates/")
    t.run("depmod", "-a")
    nobody = t.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", ASK)
    t.ok(nobody.stdout == "-2\n" and not t.loaded(),
         "nobody asks for the family: it is not there, and the module is not loaded for it",
         nobody.stdout)
    if t.loaded():
        t.rmmod()
    t.run("modprobe", "stacktap")
    t.ok(t.loaded(), "modprobe loads it by its name")
    t.rmmod()
    t.run("umount", f"/lib/modules/{release}")


def paranoid(t):
    """perf_event_paranoid=3 (Debian's default) refuses CAP_PERFMON alone its side band."""
    with open("/proc/sys/kernel/perf_event_paranoid", "w", encoding="ascii") as f:
        f.write("3")
    result = t.run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   "--inh-caps=+perfmon", "--ambient-caps=+perfmon",
                   "/opt/stacktap/bin/stacktap", "record", "-a", "--duration", "1",
                   "-o", "/tmp/paranoid.otlp", check=False)
    t.ok("perf_event_paranoid" in result.stderr and "CAP_SYS_ADMIN" in result.stderr,
         f"paranoid=3 with CAP_PERFMON alone: the sysctl and the remedy are named "
         f"(exit {result.returncode})", result.stderr)


def damaged_files(t):
    t.stacktap("record", "-a", "-F", "199", "--duration", "2", "-o", "/tmp/good.otlp")
    with open("/tmp/good.otlp", "rb") as f:
        good = f.read()
    cuts = [size for size in range(1, 2 * len(good)) if size != len(good)]
    good += good
    generator = random.Random(1)
    cut = damaged = 0
    # fuzz_report and fuzz_cut try many more
    for number in range(0, 30, 5):
        with open("/tmp/bad.otlp", "wb") as f:
            f.write(good[:generator.choice(cuts)])
        result = t.stacktap("report", "/tmp/bad.otlp", check=False, timeout=60)
        cut += result.returncode in (0, 1) and "is cut off" in result.stderr
        scrambled = bytearray(good)
        for _ in range(1 + number):
            scrambled[generator.randrange(len(scrambled))] = generator.randrange(256)
        with open("/tmp/bad.otlp", "wb") as f:
            f.write(scrambled)
        result = t.stacktap("report", "/tmp/bad.otlp", check=False, timeout=60)
        damaged += result.returncode in (0, 1)
    t.equal(cut, 6, "6 files cut anywhere: report says so")
    t.equal(damaged, 6, "6 scrambled files: report ends with an answer, never a crash")
    for content in (b"", b"\0", b"hello, world", os.urandom(4096), b"\xff\xff\xff\xff" * 4):
        with open("/tmp/bad.otlp", "wb") as f:
            f.write(content)
        refused(t, f"{len(content)} bytes of something else",
                t.stacktap("report", "/tmp/bad.otlp", check=False), "bad.otlp")


def lying_files(t):
    """Sound but for references that lead out of their table."""
    import make_sample
    import wire
    with open("/tmp/good.otlp", "rb") as f:
        payload = wire.split(f.read())[0]

    def lie(what, choose, name, value):
        message = wire.decode(payload)[0]
        liars = choose(message)
        for liar in liars:
            liar.fields[name] = value
        with open("/tmp/bad.otlp", "wb") as f:
            f.write(make_sample.encode(message))
        result = t.stacktap("report", "/tmp/bad.otlp", check=False)
        t.ok(liars and result.returncode == 1 and "is damaged" in result.stderr,
             f"{what}: told from a sound file (exit {result.returncode})", result.stderr)

    for beyond in (2**31 - 1, -1):
        lie(f"{beyond} as Sample's stack", lambda m: [
            sample for resource in m.resource_profiles for scope in resource.scope_profiles
            for profile in scope.profiles for sample in profile.samples], "stack_index", beyond)
        lie(f"{beyond} as Stack's Location", lambda m: m.dictionary.stack_table,
            "location_indices", [beyond])
        lie(f"{beyond} as Location's Mapping", lambda m: m.dictionary.location_table,
            "mapping_index", beyond)
        lie(f"{beyond} as Line's Function", lambda m: [
            line for location in m.dictionary.location_table for line in location.lines],
            "function_index", beyond)
        lie(f"{beyond} as Function's name", lambda m: m.dictionary.function_table,
            "name_strindex", beyond)
        lie(f"{beyond} as Mapping's file", lambda m: m.dictionary.mapping_table,
            "filename_strindex", beyond)

# SPDX-License-Identifier: Apache-2.0
"""Wrong input and missing privilege: each has a clear sentence, an exit status, and does no harm."""

import os
import random

LOAD = False


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
    paranoid(t)
    damaged_files(t)
    t.rmmod()


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
    for number in range(30):
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
    t.equal(cut, 30, "30 files cut anywhere: report says so")
    t.equal(damaged, 30, "30 scrambled files: report ends with an answer, never a crash")
    for content in (b"", b"\0", b"hello, world", os.urandom(4096), b"\xff\xff\xff\xff" * 4):
        with open("/tmp/bad.otlp", "wb") as f:
            f.write(content)
        refused(t, f"{len(content)} bytes of something else",
                t.stacktap("report", "/tmp/bad.otlp", check=False), "bad.otlp")

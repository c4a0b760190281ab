# SPDX-License-Identifier: Apache-2.0
"""A module of another ABI is refused by every program, which names both versions and the fix; an older
minor serves."""

import os
import re

LOAD = False


def guest(t):
    t.run("insmod", "/opt/stacktap/stacktap-abi99.ko")
    for what, command in (("status", ("stacktap", "status")),
                          ("record", ("stacktap", "record", "-a", "--duration", "1",
                                      "-o", "/tmp/abi.otlp")),
                          ("stacktapd", ("stacktapd", "--config", os.devnull))):
        # one that takes the module after all would go on for ever
        result = t.run("timeout", 60, f"/opt/stacktap/bin/{command[0]}", *command[1:], check=False)
        said = result.stdout + result.stderr
        t.ok(result.returncode == 1 and re.search(r"\bABI 99\.\d", said) and
             re.search(r"\bprogram 1\.\d", said),
             f"{what} names both versions (exit {result.returncode})", said)
        t.ok("systemctl stop stacktapd; modprobe -r stacktap; modprobe stacktap" in said,
             f"{what} names the fix", said)
    t.ok(not os.path.exists("/tmp/abi.otlp"), "no file is left behind")
    t.run("rmmod", "stacktap")
    older(t)


def older(t):
    """A module from before something was added serves with the rest, and what it lacks is named."""
    t.load_module("/opt/stacktap/stacktap-abi1.3.ko")
    record = ("record", "-a", "--duration", "1", "-o", "/tmp/abi.otlp")
    refused = t.stacktap(*record, "--budget-ns", "5000", check=False)
    t.ok(refused.returncode == 1 and "ABI 1.3" in refused.stderr and "budget" in refused.stderr,
         "record --budget-ns names the older ABI and what it lacks", refused.stderr)
    told = t.stacktap(*record, "-v", "--slice-max-bytes", "32768", check=False)
    t.ok(not told.returncode and "ABI 1.3" in told.stderr and os.path.getsize("/tmp/abi.otlp"),
         "record goes on without larger slices, and says so", told.stderr)
    t.equal(t.json("status")["module"]["abi_minor"], 3, "status has the older number")
    t.run("rmmod", "stacktap")

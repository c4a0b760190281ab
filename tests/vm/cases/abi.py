# SPDX-License-Identifier: Apache-2.0
"""A module of another ABI is refused by every program, which names both versions and the fix."""

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
        t.ok("dkms" in said or "modprobe" in said or "rmmod" in said, f"{what} names the fix", said)
    t.ok(not os.path.exists("/tmp/abi.otlp"), "no file is left behind")
    t.run("rmmod", "stacktap")

# SPDX-License-Identifier: Apache-2.0
"""A kernel that is locked down while the module is loaded gives no stack slices and takes no
unwind tables: the module refuses them with a reason, `record -v` says so and goes on without, doctor tells of it beforehand."""

import json
import os
import re

import kmodtest

LOAD = False
ALONE = True     # there is no way back
LOCKDOWN = "/sys/kernel/security/lockdown"


def doctor(t):
    result = t.stacktap("doctor", "--json", check=False)
    return next(check for check in json.loads(result.stdout)["checks"] if check["name"] == "lockdown")


def guest(t):
    t.run("mount", "-t", "securityfs", "none", os.path.dirname(LOCKDOWN), check=False)
    if not os.path.exists(LOCKDOWN):
        t.ok(re.search("debug|nmi", os.uname().release), "only kernels of our own know no lockdown")
        return
    found = doctor(t)
    t.ok((found["state"], found["text"]) == ("ok", "none"), "doctor: none at first", found)
    t.insmod(f"ring_limit_mib={kmodtest.RING_LIMIT_MIB}")
    kmodtest.run_loaded(t, "slice-lockdown")
    found = doctor(t)
    t.ok(found["state"] == "warning" and "no unwind tables and no stack slices" in found["text"]
         and "lockdown=integrity" in found["remedy"], "doctor: confidentiality, and what it takes", found)
    result = t.stacktap("record", "-a", "-F", 199, "--duration", 2, "--slice-bytes", 4096, "-v",
                        "-o", t.path("lockdown.otlp"), check=False)
    t.ok(result.returncode == 0, "record goes on without slices", result.stderr)
    t.ok("walked by frame pointers: unwind tables need" in result.stderr and "confidentiality" in result.stderr,
         "record -v says so, with the reason", result.stderr)
    t.rmmod()


def host(t):
    if os.path.exists(os.path.join(t.dir, "lockdown.otlp")):
        t.ok(t.load("lockdown.otlp"), "there is a profile")

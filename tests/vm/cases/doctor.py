# SPDX-License-Identifier: Apache-2.0
"""doctor on a real host: with the module, without it, of another ABI, and seen by who may less."""

import json
import os

LOAD = False
DOCTOR = ("/opt/stacktap/bin/stacktap", "doctor", "--json")


def examine(t, *wrapper):
    """(exit status, findings by name)"""
    result = t.run(*wrapper, *DOCTOR, check=False)
    value = json.loads(result.stdout)
    t.equal(result.returncode, 1 if value["problems"] else 0, "the exit status is that of the report")
    return result.returncode, {check["name"]: check for check in value["checks"]}


def restrict_symbols(value, path="/proc/sys/kernel/kptr_restrict"):
    """Returns the value before."""
    with open(path, encoding="ascii") as f:
        before = f.read()
    with open(path, "w", encoding="ascii") as f:
        f.write(value)
    return before


def guest(t):
    def found(findings, name, state, words, what):
        check = findings[name]
        t.ok(check["state"] == state and words in check["text"], f"{what}: {name} is {state}", check)

    _, findings = examine(t)
    # the guest's modules come with its kernel, ours is loaded by hand
    found(findings, "module", "problem", "none for this kernel", "no module")
    found(findings, "kernel", "ok", os.uname().release, "no module")
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        found(findings, "privilege", "ok", f"perf_event_paranoid says ({f.read().strip()})", "no module")
    if t.arch == "arm64":
        found(findings, "pmu", "ok", "armv8_pmuv3", "no module")
    else:
        found(findings, "pmu", "warning", "cpu-clock", "no module")
    found(findings, "machine", "ok", "virtual", "no module")

    t.insmod("ring_limit_mib=8", "ceiling_permille=10")
    status, findings = examine(t)
    found(findings, "module", "ok", "loaded", "loaded")
    found(findings, "limits", "ok", "0 of 64 sessions, 0 %", "loaded")
    t.ok(status == 0, "loaded: nothing keeps stacktap from working", findings)
    found(findings, "fallback", "ok", "no session uses the fallback", "loaded")
    child, session = t.record("doctor.otlp", "-a", "-e", "cycles")
    _, findings = examine(t)
    found(findings, "limits", "ok", "1 of 64 sessions", "recording")
    t.ok(" 0 % of the memory for rings" not in findings["limits"]["text"],
         "recording: its rings count", findings["limits"])
    if t.arch == "arm64":
        found(findings, "fallback", "ok", "no session uses the fallback", "recording")
    else:
        found(findings, "fallback", "warning", f"session {session} (stacktap): using cpu-clock for "
              "cycles on 2 CPUs (fallback): ", "recording without a PMU")
        t.ok("pmu" in findings["fallback"]["remedy"], "recording without a PMU: the remedy is there",
             findings["fallback"])
    t.stacktap("stop", session)
    _, findings = examine(t)
    found(findings, "fallback", "ok", "no session uses the fallback", "stopped")
    t.stop(child)

    status, findings = examine(t, "unshare", "--net")
    found(findings, "module", "problem", "network namespace", "in another network namespace")
    status, findings = examine(t, "setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
    found(findings, "module", "unknown", "privileged callers", "without capabilities")
    found(findings, "privilege", "problem", "neither CAP_PERFMON nor CAP_SYS_ADMIN",
          "without capabilities")
    t.equal(status, 1, "without capabilities: exit status")
    before = restrict_symbols("2\n")
    _, findings = examine(t)
    restrict_symbols(before)
    found(findings, "kernel-symbols", "warning", "kptr_restrict is 2", "kernel.kptr_restrict=2")
    t.rmmod()

    t.run("insmod", "/opt/stacktap/stacktap-abi99.ko")
    status, findings = examine(t)
    found(findings, "module", "problem", "speaks ABI 99.", "another ABI")
    t.ok("this program speaks 1." in findings["module"]["text"] and findings["module"]["remedy"],
         "another ABI: both versions are named, and the fix", findings["module"])
    t.equal(status, 1, "another ABI: exit status")
    t.rmmod()

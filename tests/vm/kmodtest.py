# SPDX-License-Identifier: Apache-2.0
"""Cases of the smallest client, tests/vm/kmod, that share a guest and may be asked for more: FULL=1
in the host's environment, or one of their own settings."""

import os
import re

SETTINGS = ("FUZZ_SEED", "NETLINK_MESSAGES", "OWNERS_KILLED", "LOADS", "NMI_WANTED")
FULL = bool(os.environ.get("FULL")) or any(name in os.environ for name in SETTINGS[1:])
BOOT_TIMEOUT = 21600 if FULL else 2400
# so that rings of halves, quarters and so on fill it, and what was not given back shows
RING_LIMIT_MIB = 8


def before(t, **full):
    """What the host's environment says is for the guest; @full are settings of a FULL=1 run."""
    wanted = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    if os.environ.get("FULL"):
        wanted = {**{name: str(value) for name, value in full.items()}, **wanted}
    with open(os.path.join(t.dir, "settings"), "w", encoding="ascii") as f:
        f.writelines(f"{name}={int(value, 0)}\n" for name, value in wanted.items())


def settings(t):
    """In the guest, what before() left, as text."""
    try:
        with open(t.path("settings"), encoding="ascii") as f:
            return dict(line.strip().split("=", 1) for line in f)
    except FileNotFoundError:
        return {}


def run(t, *cases, seconds=120):
    """Load the module, run @cases of kmodtest, unload it."""
    t.insmod(f"ring_limit_mib={RING_LIMIT_MIB}")
    run_loaded(t, *cases, seconds=seconds)
    t.rmmod()


def run_loaded(t, *cases, seconds=120):
    """Run @cases of kmodtest; their TAP lines are assertions of the case. @seconds are for each, in a
    guest that has its CPUs for itself."""
    import kit
    import signal
    wanted = settings(t)
    if wanted:
        signal.alarm(0)
        seconds = 6000
    for case in cases:
        result = t.run("timeout", seconds * kit.PATIENCE, "/opt/stacktap/kmodtest", case,
                       timeout=seconds + 60, check=False, env={**os.environ, **wanted})
        print(result.stdout, flush=True)
        for line in result.stdout.splitlines():
            match = re.fullmatch(r"((?:not )?ok) \d+ - (.*)", line)
            if match:
                t.ok(match[1] == "ok", f"{case}: {match[2]}")
            elif line.startswith("# "):
                t.note(line)
        t.ok(result.returncode == 0, f"{case}: all of it", result.stdout[-2000:] + result.stderr)

# SPDX-License-Identifier: Apache-2.0
"""Random and malicious tables and mapping lists while everybody samples; FUZZ_ROUNDS=n for more of
them, FUZZ_SEED=n for others."""

import os
import re

LOAD = False
ALONE = True
SETTINGS = ("FUZZ_ROUNDS", "FUZZ_SEED")
# of a guest that has its CPUs for itself; rounds that were asked for take as long as they take
SECONDS = 300
TIMEOUT = 600
BOOT_TIMEOUT = 21600 if "FUZZ_ROUNDS" in os.environ else 2400


def before(t):
    """What the host's environment says is for the guest."""
    with open(os.path.join(t.dir, "settings"), "w", encoding="ascii") as f:
        f.writelines(f"{name}={int(os.environ[name])}\n" for name in SETTINGS if name in os.environ)


def guest(t):
    import kit
    import signal
    env = dict(os.environ, CASE_SECONDS=str(SECONDS * kit.PATIENCE))
    timeout = 2 * SECONDS
    with open(t.path("settings"), encoding="ascii") as f:
        env.update(line.strip().split("=", 1) for line in f)
    if "FUZZ_ROUNDS" in env:
        signal.alarm(0)
        timeout = 18000
        env["CASE_SECONDS"] = str(timeout)
    result = t.run("/tests/vm/kmod/run.sh", "/opt/stacktap", "fuzz", timeout=timeout, check=False,
                   env=env)
    print(result.stdout, flush=True)
    for line in result.stdout.splitlines():
        found = re.fullmatch(r" *((?:not )?ok) \d+ - (.*)", line)
        if found:
            t.ok(found[1] == "ok", found[2])
        elif line.startswith("    #"):
            t.note(line.strip())
    t.ok(result.returncode == 0, "all of it", result.stdout[-2000:] + result.stderr)

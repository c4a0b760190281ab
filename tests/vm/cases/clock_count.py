# SPDX-License-Identifier: Apache-2.0
"""cpu-clock overflows as often as running time over period says, and nothing is lost.

Under -icount virtual timers are never late, so that the count is exact; elsewhere an emulated CPU
skips ticks while this machine takes it away.
"""

ALONE = True
SMP = 1
BOOT_OPTIONS = ("--icount",)


def guest(t):
    program = t.start("/opt/stacktap/workload/deep", 5, 12)
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-e", "cpu-clock", "-F", 199,
                     "-o", t.path("clock.otlp"))
    session = t.until(lambda: [s for s in t.json("status")["sessions"] if s["state"] == "running"],
                      30, "sampling")[0]["id"]
    program.wait(60)
    t.stacktap("stop", session)
    status = t.json("status")["sessions"][0]
    for cpu in status["cpus"]:
        counts = cpu["counts"][0]
        expected = counts["running_ns"] / counts["period"]
        t.near(counts["calls"], expected, max(2, 0.01 * expected),
               "handler calls are running time over period")
        t.equal(counts["calls"], counts["recorded"] + counts["filtered"] +
                sum(counts["lost"].values()), "calls = recorded + filtered + lost")
        t.equal(sum(counts["lost"].values()), 0, "nothing is lost in a normal run")
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0 and " 0 lost" in err, "record says so too", out + err)

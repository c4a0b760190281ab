# SPDX-License-Identifier: Apache-2.0
"""Stacks of 200 frames are whole."""


def guest(t):
    program = t.start("/opt/stacktap/workload/deep", 200, 12)
    t.stacktap("record", "-p", program.pid, "-F", 999, "--duration", 8, "-o", t.path("deep.otlp"))
    t.stop(program)


def host(t):
    import model
    samples = model.of_process(t.load("deep.otlp"), "deep")
    user = [s for s in samples if s.stack[0].function == "bottom"]
    total = sum(s.count for s in user)
    t.ok(total >= 300, f"at least 300 samples at the bottom ({total})")
    exact = sum(s.count for s in user if s.names.count("descend") == 201 and "main" in s.names)
    t.ok(exact >= 0.99 * total, f"201 frames of descend() and main() in {exact} of {total}")

# SPDX-License-Identifier: Apache-2.0
"""Stacks of 200 frames are whole, by frame pointers and by unwind tables."""

WAYS = ("fp", "table")


def guest(t):
    for way in WAYS:
        program = t.start("/opt/stacktap/workload/deep", 200, 3600)
        t.stacktap("record", "-p", program.pid, "-F", 999, "--duration", 8, "--call-graph", way,
                   "-o", t.path(f"{way}.otlp"))
        t.stop(program)


def host(t):
    import model
    for way in WAYS:
        samples = model.of_process(t.load(f"{way}.otlp"), "deep")
        user = [s for s in samples if s.stack[0].function == "bottom"]
        total = sum(s.count for s in user)
        t.ok(total >= 300, f"{way}: at least 300 samples at the bottom ({total})")
        # an emulated CPU that its host takes away in the walk comes back behind the walk's time limit
        in_time = [s for s in user if s.attribute("stacktap.user_stack.end") != "time"]
        whole = sum(s.count for s in in_time)
        exact = sum(s.count for s in in_time if s.names.count("descend") == 201 and "main" in s.names)
        t.ok(whole >= 0.5 * total, f"{way}: {whole} of {total} walked within the time limit")
        t.ok(exact >= 0.99 * whole, f"{way}: 201 frames of descend() and main() in {exact} of {whole}")

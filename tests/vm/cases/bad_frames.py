# SPDX-License-Identifier: Apache-2.0
"""Frame pointers that lie end the walk with a reason and harm nobody."""

KINDS = {"kernel": "bad_frame", "loop": "bad_frame", "odd": "bad_frame", "high": ("bad_frame", "unreadable"),
         "null": ("bad_frame", "unreadable"), "hole": ("unreadable", "bad_frame", "complete"),
         "down": "bad_frame"}


def guest(t):
    for kind, wanted in KINDS.items():
        program = t.start("/opt/stacktap/workload/bad_frames", kind, 3600)
        result = t.stacktap("record", "-p", program.pid, "-F", 999, "--duration", 2,
                            "--call-graph", "fp", "-o", t.path(f"{kind}.otlp"), check=False)
        t.ok(result.returncode == 0, f"{kind}: recorded", result.stderr)
        t.ok(program.poll() is None, f"{kind}: the program lives on")
        t.stop(program)


def host(t):
    import model
    for kind, wanted in KINDS.items():
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        samples = [s for s in model.of_process(t.load(f"{kind}.otlp"), "bad_frames")
                   if s.stack and s.stack[0].function == "spin_with"]
        total = sum(s.count for s in samples)
        right = sum(s.count for s in samples
                    if s.attribute("stacktap.user_stack.end", "complete") in wanted)
        short = sum(s.count for s in samples if len(s.stack) <= 3)
        t.ok(total >= 30, f"{kind}: at least 30 samples in the spinning function ({total})")
        t.ok(right >= 0.99 * total, f"{kind}: the walk ended as {' or '.join(wanted)}: {right} of {total}")
        t.ok(short == total, f"{kind}: nothing was made up beyond the lie")

# SPDX-License-Identifier: Apache-2.0
"""Kernel frames stand above the user frames of the system call, in one stack."""

USER = ("enter_kernel", "read_zeros", "main")


def guest(t):
    program = t.start("/opt/stacktap/workload/zero_reader", 3600)
    record = t.stacktap("record", "-p", program.pid, "-F", 499, "--duration", 6,
                        "-o", t.path("zero.otlp"))
    t.ok("samples" in record.stderr, "record says what it captured", record.stderr)
    t.stop(program)


def host(t):
    import model
    samples = model.of_process(t.load("zero.otlp"), "zero_reader")
    total = sum(s.count for s in samples)
    kernel = [s for s in samples if s.stack and s.stack[0].frame_type == "kernel"]
    in_kernel = sum(s.count for s in kernel)
    t.ok(total >= 300, f"at least 300 samples ({total})")
    t.ok(in_kernel >= 0.7 * total, f"most of its time is the kernel's ({in_kernel} of {total})")
    whole = sum(s.count for s in kernel if is_whole(s))
    t.ok(whole and whole >= 0.97 * in_kernel,
         f"kernel frames, then {', '.join(USER)}: {whole} of {in_kernel} samples")
    t.ok(any("read_iter_zero" in name or "clear_user" in name for s in kernel for name in s.names),
         "reading /dev/zero is seen in it")


def is_whole(sample):
    """Kernel frames without a gap from the leaf on, then the user frames, root last."""
    kinds = [frame.frame_type for frame in sample.stack]
    first = kinds.index("native") if "native" in kinds else len(kinds)
    if any(kind != "native" for kind in kinds[first:]):
        return False
    names = [frame.function for frame in sample.stack[first:]]
    return tuple(names[:len(USER)]) == USER

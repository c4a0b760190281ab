# SPDX-License-Identifier: Apache-2.0
"""Run unwind_live over unwind_target, once whole and once for each variant of the C library's memory
functions that this processor can be talked into, and judge what it found. As a program: prints TAP.

usage: live.py DIRECTORY STEPS-BETWEEN-COMPARISONS
"""

import json
import os
import subprocess
import sys
import tempfile

# of each line one must have been stepped through: a stripped library has its exported names alone
REQUIRED = [("_start",), ("PLT",), ("main",), ("_ZL9recursionj",), ("_ZL8variablem",),
            ("_ZL9realignedmm",), ("_ZL11large_framem",), ("_ZL9last_callm",), ("memset",),
            ("qsort_r", "qsort"), ("_ZL11interruptedm",), ("_ZL7handleriP9siginfo_tPv",),
            ("_ZL6jumperj",), ("siglongjmp", "_longjmp", "longjmp", "__libc_siglongjmp"),
            ("makecontext",), ("swapcontext",), ("setcontext",), ("_ZL14on_other_stacki",),
            ("_ZL7throweri",), ("__cxa_throw",), ("_Unwind_RaiseException",), ("_Unwind_Resume",),
            ("__cxa_begin_catch",), ("__vfork", "vfork", "__libc_vfork"), ("__clone", "clone"),
            ("_ZL4taskPv",), ("_ZL6threadPv",), ("_ZL4leafm",), ("_ZL14many_registersmmm",)]
OFF = "glibc.cpu.hwcaps=-AVX512VL,-AVX512F"
TUNABLES = {
    "x86_64": ["", OFF, f"{OFF},-ERMS", f"{OFF},-AVX2,-AVX_Fast_Unaligned_Load",
               f"{OFF},-AVX2,-AVX_Fast_Unaligned_Load,-ERMS",
               f"{OFF},-AVX2,-AVX_Fast_Unaligned_Load,-ERMS,-Fast_Unaligned_Copy"],
    "aarch64": ["", "glibc.cpu.name=generic", "glibc.cpu.name=thunderxt88",
                "glibc.cpu.name=falkor", "glibc.cpu.name=thunderx2t99"],
}


# caml_c_call takes its return address off the stack for a moment
OCAML_REQUIRED = ("caml_c_call", "caml_start_program", "camlWork__descend", "work", "work_inside")
OCAML = """
external work : int -> int = "work"
let rec descend n = if n = 0 then work 3 else 1 + descend (n - 1)
let () = exit (descend 7 - descend 7)
"""
OCAML_STUB = """
#include <caml/mlvalues.h>
#include <caml/alloc.h>
static __attribute__((noinline)) long work_inside(long n)
{
	long sum = 0;
	for (long i = 0; i < n; i++)
		sum += i * n;
	__asm__ volatile("" : "+r"(sum));
	return sum + 1;
}
value work(value n)
{
	long sum = work_inside(Long_val(n));
	return Val_long(sum + caml_string_length(caml_copy_string("x")));
}
"""


def step_through(directory, every, arguments, tunables="", program="unwind_target"):
    """(what it found or None, its standard error)"""
    command = [f"{directory}/unwind_live", str(every), os.path.join(directory, program), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, check=False,
                             env=dict(os.environ, GLIBC_TUNABLES=tunables))
    try:
        found = json.loads(process.stdout)
    except ValueError:
        found = None
    return found, process.stderr


def describe(found):
    return (f"{found['steps']} instructions stepped through, {found['compared']} compared, "
            f"{found['frames']} frames: {found['equal']} stacks are equal, {found['we_ended']} end "
            f"sooner, {found['they_ended']} of libdwfl's do, {found['wrong']} wrong")


def judge(directory, every):
    """Yields (verdict, what was found, note)."""
    found, errors = step_through(directory, every, [])
    if not found:
        yield False, "a program is stepped through", errors
        return
    yield found["wrong"] == 0, describe(found), errors
    yield (found["compared"] > 5000 and found["complete"] > 0.9 * found["compared"] and
           found["by_fp"] > 0), (f"{found['complete']} stacks are complete, {found['by_fp']} frames "
                                 "went by the frame pointer"), found
    missing = [names for names in REQUIRED if not any(name in found["functions"] for name in names)]
    yield not missing, f"{len(REQUIRED)} functions that are hard to unwind were among them", missing
    variants, wrong, compared = set(), 0, 0
    for tunables in TUNABLES[os.uname().machine]:
        found, errors = step_through(directory, 5 * every, ["memory"], tunables)
        variants |= {line for line in errors.splitlines() if line.startswith("variant memcpy ")}
        wrong += found["wrong"] if found else 1
        compared += found["compared"] if found else 0
    yield (wrong == 0 and compared > 1000 and len(variants) > 1,
           f"{len(variants)} variants of memcpy() and others, {compared} instructions: "
           f"{wrong} stacks wrong", errors)


def judge_ocaml(directory, every):
    """The same of a program in OCaml, with its runtime and C below it: one verdict."""
    with tempfile.TemporaryDirectory() as work:
        for name, text in (("work.ml", OCAML), ("stub.c", OCAML_STUB)):
            with open(os.path.join(work, name), "w", encoding="ascii") as file:
                file.write(text)
        subprocess.run(["ocamlopt", "-o", "work", "stub.c", "work.ml"], cwd=work, check=True)
        found, errors = step_through(directory, 20 * every, [], program=os.path.join(work, "work"))
    if not found:
        return False, "a program in OCaml is stepped through", errors
    missing = [name for name in OCAML_REQUIRED if not any(one.startswith(name) for one in found["functions"])]
    return (found["wrong"] == 0 and found["we_ended"] == 0 and found["compared"] > 2000 and
            found["complete"] > 0.99 * found["compared"] and not missing,
            f"OCaml: {describe(found)}", missing or errors)


def main():
    directory, every = sys.argv[1], int(sys.argv[2])
    failed = number = 0
    for good, text, note in judge(directory, every):
        number += 1
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {os.uname().machine}: {text}", flush=True)
        if not good:
            print("\n".join(f"# {line}" for line in str(note).splitlines()[:40]), flush=True)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

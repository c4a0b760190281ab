# SPDX-License-Identifier: Apache-2.0
"""Hold rules of Go's code against its instructions, as objdump has them: what moves the stack pointer moves the caller's place by
as much, jumps inside of a function leave it, and where a function begins and returns it is right behind the return address.

Where either end of a step has no rule it tells nothing. Behind what takes the stack pointer from elsewhere there is none. On arm64 the
link register is stored before a rule says so.
"""
import bisect
import os
import re

import lines

LINE = re.compile(r" +([0-9a-f]+):\t(\S+)(?:\s+(.*))?$")
FUNCTION = re.compile(r"[0-9a-f]+ <(.*)>:$")
TARGET = re.compile(r"([0-9a-f]+) <")
RULE = re.compile(r"([0-9a-f]{16})  (.*)$")
CFA = re.compile(r"cfa=sp(?:\+(\d+))? ra=(\S+)")
X86_IMMEDIATE = re.compile(r"\$0x([0-9a-f]+),%rsp$")
X86_COMPARES = ("cmp", "test", "bt")
ELSEWHERE = "elsewhere"
STOPS = ("jmp", "ret", "retq", "ud2", "int3", "hlt", "b", "br", "udf", "(bad)", "brk", ".inst")
CONDITIONAL = ("cbz", "cbnz", "tbz", "tbnz")
# what never returns may be followed by anything
NEVER = re.compile(r"<((internal/)?runtime(/\w+)?\.(panic|gopanic|goPanic|throw|fatal|morestack|goexit|abort|badsignal|badmorestack|"
                   r"exit|dieFromSignal|badsystemstack|badmcall|badreflectcall|badcgocallback|badctxt|block|newstack|schedule|crash|mexit|gogo)|main\.)")
WORD = 8


def rules(stacktap, path):
    """[(start, bytes from the stack pointer to the caller's or None, where the return address is)]"""
    found = []
    for line in lines.run(stacktap, "unwind-info", path).splitlines():
        match = RULE.match(line)
        if match:
            cfa = CFA.match(match[2])
            found.append((int(match[1], 16), int(cfa[1] or 0) if cfa else None, cfa[2] if cfa else match[2]))
    return found


def signed(text):
    value = int(text, 16)
    return value - (1 << 64) if value >> 63 else value


def effect_x86(word, operands):
    if word in ("push", "pushq", "pushf", "pushfq"):
        return WORD
    if word in ("pop", "popq", "popf", "popfq") and operands != "%rsp":
        return -WORD
    if word in ("leave", "leaveq", "enter", "iretq"):
        return ELSEWHERE
    match = X86_IMMEDIATE.search(operands) if word.rstrip("q") in ("sub", "add") else None
    if match:
        return signed(match[1]) * (1 if word.startswith("sub") else -1)
    # where it is the operand that is written, which is the last one; both of an exchange are
    written = re.search(r"(?:^|,)%r?e?spl?$", operands) or word.startswith("xchg") and re.match(r"%rsp,", operands)
    return ELSEWHERE if written and not word.startswith(X86_COMPARES + ("push", "call", "jmp")) else 0


def effect_arm64(word, operands):
    match = re.match(r"sp, sp, #0x([0-9a-f]+)(, lsl #12)?$", operands) if word in ("sub", "add") else None
    if match:
        return (int(match[1], 16) << (12 if match[2] else 0)) * (1 if word == "sub" else -1)
    match = re.search(r"\[sp, #(-?\d+)\]!$|\[sp\], #(-?\d+)$", operands)
    if match:
        return -int(match[1] or match[2])
    # of a register: the assembler's own, as it is not let through otherwise
    return None if re.match(r"(w?sp), ", operands) and word in ("mov", "add", "sub", "and") else 0


def check(stacktap, path, stripped, is_arm64, first_code, end_code):
    """Of the code in [@first_code, @end_code): how many steps were held against rules, those that break them, and how many
    instructions take x86's stack pointer from elsewhere."""
    tool = "aarch64-linux-gnu-objdump" if is_arm64 and os.uname().machine != "aarch64" else "objdump"
    rows = rules(stacktap, stripped)
    starts = [row[0] for row in rows]

    def at(address):
        return rows[bisect.bisect_right(starts, address) - 1][1:] if address >= starts[0] else (None, "")

    wrong, steps, taken, name, code = [], 0, 0, "", []
    first = 0 if is_arm64 else WORD

    def finish():
        nonlocal steps, taken
        inside = {address for address, _, _ in code}
        stored = False
        for i, (address, word, operands) in enumerate(code):
            change = effect_arm64(word, operands) if is_arm64 else effect_x86(word, operands)
            taken += change == ELSEWHERE
            cfa, where = at(address)
            if cfa is None:
                continue
            # a call that does not come back may have a nop behind it
            call = code[i - 1] if i and word == "nop" else code[i]
            ways = [(code[i + 1][0], change)] if i + 1 < len(code) and word not in STOPS and not (
                call[1] in ("call", "bl") and NEVER.search(call[2])) else []
            is_jump = word in CONDITIONAL or word == "b" or word.startswith("b.") if is_arm64 else word.startswith("j")
            jump = TARGET.search(operands) if is_jump else None
            if jump:
                ways.append((int(jump[1], 16), 0))
            if i == 0 and cfa != first:
                wrong.append(f"{address:x} {name}: begins with {cfa}")
            if word in ("ret", "retq") and cfa != first:
                wrong.append(f"{address:x} {name}: returns with {cfa}")
            for to, moved in ways:
                after = at(to)[0]
                if moved == ELSEWHERE:
                    steps += 1
                    if after is not None:
                        wrong.append(f"{address:x} {name}: {word} {operands}: at {to:x} {after}")
                    continue
                if to not in inside:
                    moved, after = 0, first
                if after is None or moved is None:
                    continue
                steps += 1
                if after != cfa + moved:
                    wrong.append(f"{address:x} {name}: {word} {operands}: {cfa}, at {to:x} {after}")
            if is_arm64:
                if cfa and where != "lr" and not stored:
                    wrong.append(f"{address:x} {name}: {where} before the link register is stored")
                stored = stored or bool(re.match(r"x30, \[|\S+, x30, \[", operands)) and word in ("str", "stur", "stp")

    for line in lines.run(tool, "-d", "-w", "--no-show-raw-insn", f"--start-address={first_code:#x}",
                          f"--stop-address={end_code:#x}", path).splitlines() + [""]:
        match = LINE.match(line)
        if match:
            code.append((int(match[1], 16), match[2], (match[3] or "").split(" //")[0].strip()))
        elif not line or FUNCTION.match(line):
            if code:
                finish()
            named = FUNCTION.match(line)
            name, code = named[1] if named else name, []
    return steps, wrong, taken

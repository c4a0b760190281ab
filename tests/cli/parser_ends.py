#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command, and send its parser a signal while it reads a file. The command's output and exit status.

usage: parser_ends.py SIGNAL FILE COMMAND...

FILE is made: a program whose table takes the parser some tenths of a second of CPU time.
"""
import os
import signal
import struct
import subprocess
import sys
import time

ENTRIES = 400000
TRIES = 50
CODE, FRAMES = 0x1000000, 0x400000


def eh_frame():
    """Code of eight bytes each, whose frame grows by a word behind its first four."""
    cie = struct.pack("<IIB3sBBBB", 20, 0, 1, b"zR\0", 1, 0x78, 16, 1) + b"\x03\x0c\x07\x08\x90\x01" + bytes(2)
    frames = bytearray(cie)
    for i in range(ENTRIES):
        frames += struct.pack("<IIII4s", 16, len(frames) + 4, CODE + 8 * i, 8, b"\0\x44\x0e\x10")
    return bytes(frames) + bytes(4)


def make(path):
    frames = eh_frame()
    names = b"\0.eh_frame\0.shstrtab\0"
    names_at = 0x1000 + len(frames)
    headers_at = (names_at + len(names) + 7) & ~7
    code_at = (headers_at + 3 * 64 + 0xfff) & ~0xfff
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, CODE, 64, headers_at, 0, 64,
                                                                      56, 2, 64, 3, 2)
    header += struct.pack("<IIQQQQQQ", 1, 4, 0, FRAMES - 0x1000, 0, code_at, code_at, 4096)
    header += struct.pack("<IIQQQQQQ", 1, 5, code_at, CODE, 0, 8 * ENTRIES, 8 * ENTRIES, 4096)
    sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 2, FRAMES, 0x1000, len(frames), 0, 0, 8, 0)
    sections += struct.pack("<IIQQQQIIQQ", 11, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    with open(path, "wb") as file:
        file.write(header)
        file.seek(0x1000)
        file.write(frames + names)
        file.seek(headers_at)
        file.write(sections)
        file.truncate(code_at + 8 * ENTRIES)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def parser_at_work(pid):
    """The child that has said hello, its filter is its last step before that, and has computed since; or None."""
    for child in read(f"/proc/{pid}/task/{pid}/children").split():
        stat, status = read(f"/proc/{child}/stat"), read(f"/proc/{child}/status")
        if "(stacktap-parser)" in stat and ("Seccomp:\t2" in status) and int(stat.rsplit(")", 1)[1].split()[11]) >= 3:
            return int(child)
    return None


def run(number, command):
    """The result, or None: the parser was done before it was hit."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    hit = None
    while not hit and process.poll() is None:
        hit = parser_at_work(process.pid)
        if hit:
            os.kill(hit, number)
        else:
            time.sleep(0.002)
    out, err = process.communicate()
    return (process.returncode, out, err) if hit and process.returncode else None


def main():
    number, path, command = getattr(signal, sys.argv[1]), sys.argv[2], sys.argv[3:]
    make(path)
    for _ in range(TRIES):
        result = run(number, command)
        if result:
            sys.stdout.write(result[1])
            sys.stderr.write(result[2])
            return result[0]
    print("the parser was never hit", file=sys.stderr)
    return 125


sys.exit(main())

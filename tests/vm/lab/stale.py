# SPDX-License-Identifier: Apache-2.0
"""Free virtual CPUs that run code which the guest has since rewritten.

QEMU (7.2 here) reads guest code to translate it and only then begins to watch its page for writes. What
another virtual CPU writes in between goes unnoticed, and the old code runs until its bytes are
written again. Linux on x86_64 patches its text through breakpoints, so what is left behind can be a
breakpoint that memory no longer holds: the handler finds none, returns to the instruction, takes it
again, for ever, with interrupts off but at that instruction itself, where they may be on. A watchdog
reports that late, or never where every CPU gets there. A case that switches perf events and tracepoints
all the time has met it about once in 30 runs on a busy host.

Whether a virtual CPU is caught is seen from outside: at each of some looks in a row it is in the kernel
or has its interrupts off, at one of them they are off, its stack is at most as deep as a breakpoint's
handler makes it, and some looks are alike. Writing the bytes there once more, unchanged and through the
debugger's stub, makes QEMU drop the translation. A CPU that was only busy loses a moment.

Linux 7.2 does not return to the instruction but dies: before_death()."""

import collections
import json
import os
import re
import socket
import sys
import tempfile
import threading
import time

LOOKS = 6
ALIKE = 2  # looks that tell nothing new
SECONDS = 1.5
HANDLER_BYTES = 1024  # some 300 were seen
INTERRUPT_FLAG = 0x200
KERNEL = 1 << 63
# QEMU stops a virtual CPU between two blocks to answer; on a busy host that can take its time
ANSWER_SECONDS = 60
CPU = re.compile(r"^CPU#(\d+)$.*?\b[ER]SP=([0-9a-f]+).*?^[ER]IP=([0-9a-f]+) [ER]FL=([0-9a-f]+).*?HLT=(\d)",
                 re.MULTILINE | re.DOTALL)


# with the last byte before the instruction that was next
DIED = re.compile(r"^[^\n]*\bint3: \d{4} \[#1\](?:(?!\bCode:).)*\bCode:[^\n]* ([0-9a-f]{2}) <",
                  re.DOTALL | re.MULTILINE)


def before_death(log):
    """What a kernel said before it died of a breakpoint that its memory does not hold, which no CPU can
    meet; or None."""
    died = DIED.search(log)
    return log[:died.start()] if died and died[1] != "cc" else None


def dial(path):
    dialled = socket.socket(socket.AF_UNIX)
    dialled.settimeout(ANSWER_SECONDS)
    try:
        dialled.connect(path)
    except OSError:
        dialled.close()
        raise
    return dialled


class Monitor:
    """QEMU's QMP socket."""

    def __init__(self, path):
        self.socket = dial(path)
        self.file = self.socket.makefile("rw", encoding="utf-8")
        self.file.readline()
        self.call("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def call(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        for line in self.file:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                break
        raise ConnectionError(f"QMP {command}")

    def cpus(self):
        """{number: (instruction, stack, flags, halted)}"""
        text = self.call("human-monitor-command", **{"command-line": "info registers -a"})
        return {int(number): (int(rip, 16), int(rsp, 16), int(flags, 16), halted == "1")
                for number, rsp, rip, flags, halted in CPU.findall(text.replace("\r", ""))}


class Stub:
    """QEMU's debugger stub; the guest stands while it is connected."""

    def __init__(self, path):
        self.text = ""
        self.socket = dial(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask("D")
        self.socket.close()

    def ask(self, packet):
        self.socket.sendall(f"${packet}#{sum(packet.encode()) & 255:02x}".encode())
        while True:
            while not (found := re.search(r"\$([^#]*)#..", self.text)):
                data = self.socket.recv(4096)
                if not data:
                    raise ConnectionError(packet)
                self.text += data.decode()
            self.text = self.text[found.end():]
            self.socket.sendall(b"+")
            # that the guest stopped when we came is told unasked
            if not re.match("[ST][0-9a-f]{2}", found[1]):
                return found[1]

    def rewrite(self, address):
        """False if there is no such address."""
        held = self.ask(f"m{address:x},1")
        return bool(re.fullmatch("[0-9a-f]{2}", held)) and self.ask(f"M{address:x},1:{held}") == "OK"


class Looks:
    """The last looks at one virtual CPU."""

    def __init__(self):
        self.seen = collections.deque(maxlen=LOOKS)

    def add(self, instruction, stack, flags, is_halted):
        is_on = bool(flags & INTERRUPT_FLAG)
        if is_halted or is_on and instruction < KERNEL:
            self.seen.clear()
        else:
            self.seen.append((instruction, stack, is_on))

    def caught(self):
        """Where a CPU that does not get on was seen, or nothing."""
        stacks = [stack for _, stack, _ in self.seen]
        if (len(stacks) < LOOKS or len(set(self.seen)) > LOOKS - ALIKE
                or max(stacks) - min(stacks) > HANDLER_BYTES
                or all(is_on for *_, is_on in self.seen)):
            return []
        return sorted({instruction for instruction, *_ in self.seen})


class Watch(threading.Thread):
    """Looks at the virtual CPUs of a QEMU that was started with options(), until it ends."""

    def __init__(self):
        super().__init__(daemon=True)
        # not below the build directory: the path of a socket has 107 bytes at most
        self.directory = tempfile.TemporaryDirectory()
        self.qmp, self.gdb = (os.path.join(self.directory.name, name) for name in ("qmp", "gdb"))

    def options(self):
        return ["-qmp", f"unix:{self.qmp},server=on,wait=off",
                "-gdb", f"unix:{self.gdb},server=on,wait=off"]

    def run(self):
        try:
            with self.connect() as monitor:
                self.watch(monitor)
        except (OSError, ValueError):
            pass  # QEMU has ended

    def connect(self):
        for _ in range(100):
            try:
                return Monitor(self.qmp)
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.1)
        raise ConnectionError(self.qmp)

    def watch(self, monitor):
        looks = collections.defaultdict(Looks)
        while True:
            time.sleep(SECONDS)
            for number, look in monitor.cpus().items():
                looks[number].add(*look)
            places = sorted({place for cpu in looks.values() for place in cpu.caught()})
            if places:
                with Stub(self.gdb) as stub:
                    places = [place for place in places if stub.rewrite(place)]
                looks.clear()
                print("lab: QEMU may have run code that the guest had rewritten, and was made to read "
                      f"it anew: {' '.join(f'{place:x}' for place in places)}", file=sys.stderr,
                      flush=True)

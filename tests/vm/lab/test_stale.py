# SPDX-License-Identifier: Apache-2.0
"""stale.py on a machine whose whole program is a virtual CPU that stands with interrupts off."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import stale  # noqa: E402  pylint: disable=wrong-import-position

# where a boot sector is put and begun
PLACE = 0x7C00
CLI, STI, SELF = b"\xfa", b"\xfb", b"\xeb\xfe"
PATIENCE_SECONDS = 300


class Machine:
    def __init__(self, code):
        self.file = tempfile.NamedTemporaryFile()
        self.file.write(code.ljust(510, b"\0") + b"\x55\xaa")
        self.file.flush()
        self.watch = stale.Watch()
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", "tcg,thread=multi",
             "-smp", "2", "-m", "16", "-nodefaults", "-no-user-config", "-display", "none",
             "-monitor", "none", "-drive", f"if=floppy,format=raw,readonly=on,file={self.file.name}"]
            + self.watch.options(), stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.watch.directory.cleanup()
        self.file.close()

    def until(self, what):
        """Whether @what comes about."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if what():
                return True
            time.sleep(0.1)
        return False


class Stale(unittest.TestCase):
    def test_only_a_breakpoint_that_is_not_there_is_an_emulators(self):
        log = ("[    1.563] before\n[    1.564] Oops: int3: 0000 [#1] SMP NOPTI\n[    1.565] CPU: 1 UID: 0\n"
               "[    1.566] Code: {} <90> e8 a1\n[    1.567] Call Trace:\n[    1.568] Code: 00 {} <90>\n")
        self.assertEqual(stale.before_death(log.format("18 66", "cc")), "[    1.563] before\n")
        self.assertIsNone(stale.before_death(log.format("18 cc", "66")))
        self.assertIsNone(stale.before_death(log.format("18 66", "66").replace("int3", "invalid opcode")))
        self.assertIsNone(stale.before_death(log.format("Unable to access opcode bytes", "66")))

    def test_a_cpu_that_stands_is_noticed_and_goes_on(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, Machine(CLI + SELF) as machine:
            machine.watch.start()
            self.assertTrue(machine.until(lambda: f"anew: {PLACE + 1:x}\n" in said.getvalue()),
                            said.getvalue())
            times = said.getvalue().count("anew:")
            # the debugger has let go of it: it is seen to stand again
            self.assertTrue(machine.until(lambda: said.getvalue().count("anew:") > times))

    def test_a_cpu_that_is_busy_is_left_alone(self):
        with Machine(STI + SELF) as machine, machine.watch.connect() as monitor:
            at_work = machine.until(lambda: monitor.cpus()[0][0] == PLACE + 1)
            self.assertTrue(at_work, monitor.cpus())
            looks = stale.Looks()
            for _ in range(2 * stale.LOOKS):
                looks.add(*monitor.cpus()[0])
                self.assertEqual(looks.caught(), [])

    def test_what_is_written_there_stays(self):
        with Machine(CLI + SELF) as machine, machine.watch.connect() as monitor:
            self.assertTrue(machine.until(lambda: monitor.cpus()[0][0] == PLACE + 1))
            with stale.Stub(machine.watch.gdb) as stub:
                self.assertTrue(stub.rewrite(PLACE + 1))
                self.assertEqual(stub.ask(f"m{PLACE:x},3"), (CLI + SELF).hex())

    def test_a_cpu_that_gets_on_does_not_stand(self):
        for places in ([(PLACE, i) for i in range(stale.LOOKS)],
                       [(PLACE, 0), (PLACE, 2 * stale.HANDLER_BYTES)] * stale.LOOKS):
            looks = stale.Looks()
            for place, stack in places:
                looks.add(place, stack, 0, False)
            self.assertEqual(looks.caught(), [])

    def test_a_cpu_that_returns_to_where_interrupts_are_on_is_noticed(self):
        at, handler = 0xffffffffb0848d1c, 0xffffffffb0a00ba0
        for busy in (False, True):
            looks = stale.Looks()
            for i in range(stale.LOOKS):
                looks.add(*((handler, 0x2000 - 40, 0) if i % 3 == 0 and not busy else
                            (at, 0x2000, stale.INTERRUPT_FLAG)), False)
            self.assertEqual(looks.caught(), [] if busy else [at, handler])

    def test_a_halted_cpu_does_not_stand(self):
        looks = stale.Looks()
        for _ in range(2 * stale.LOOKS):
            looks.add(PLACE, 0, 0, True)
        self.assertEqual(looks.caught(), [])


if __name__ == "__main__":
    unittest.main()

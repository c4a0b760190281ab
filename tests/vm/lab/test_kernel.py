# SPDX-License-Identifier: Apache-2.0
"""Which guest kernel boot takes by what it is told."""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
LOADER = importlib.machinery.SourceFileLoader("boot", os.path.join(HERE, "boot"))
boot = importlib.util.module_from_spec(importlib.util.spec_from_loader("boot", LOADER))
LOADER.exec_module(boot)


class Kernel(unittest.TestCase):
    def setUp(self):
        lab = tempfile.TemporaryDirectory()
        self.addCleanup(lab.cleanup)
        self.lab = lab.name
        for name in ("latency-0a_6.1.1-1", "latency-rt-9b_6.12.1-1", "debug-1c_6.1.1-1"):
            os.makedirs(f"{self.lab}/x86_64/kernel-{name}")
            with open(f"{self.lab}/x86_64/kernel-{name}/release", "w", encoding="utf-8") as f:
                f.write(f"{name}\n")
        for link, name in (("kernel", "debug-1c_6.1.1-1"), ("kernel-latency", "latency-0a_6.1.1-1"),
                           ("kernel-latency-rt", "latency-rt-9b_6.12.1-1")):
            os.symlink(f"kernel-{name}", f"{self.lab}/x86_64/{link}")

    def found(self, which):
        return boot.find_kernel(self.lab, types.SimpleNamespace(arch="x86_64", kernel=which))[1]

    def test_whole_name_comes_first(self):
        self.assertEqual(self.found("latency"), "latency-0a_6.1.1-1")
        self.assertEqual(self.found("latency-rt"), "latency-rt-9b_6.12.1-1")

    def test_part_of_a_name(self):
        self.assertEqual(self.found("6.12"), "latency-rt-9b_6.12.1-1")
        self.assertEqual(self.found("debug"), "debug-1c_6.1.1-1")

    def test_directory_and_default(self):
        self.assertEqual(self.found(f"{self.lab}/x86_64/kernel-latency"), "latency-0a_6.1.1-1")
        self.assertEqual(self.found(None), "debug-1c_6.1.1-1")

    def test_none(self):
        with self.assertRaisesRegex(boot.LabError, "no guest kernel nothing"):
            self.found("nothing")


if __name__ == "__main__":
    unittest.main()

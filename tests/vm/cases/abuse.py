# SPDX-License-Identifier: Apache-2.0
"""Mappings and ioctls as nobody should use them: each refused with its error, or the caller's own
loss. tests/vm/kmod, TAP line by line."""

import kmodtest

LOAD = False
BOOT_TIMEOUT = kmodtest.BOOT_TIMEOUT


def guest(t):
    kmodtest.run(t, "abuse", "ioctls")

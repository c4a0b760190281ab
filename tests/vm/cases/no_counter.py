# SPDX-License-Identifier: Apache-2.0
"""A CPU that comes online and for which there is no memory left: that it has no counter is in the dump
with the reason, in the stream and announced, until it gets one."""

import kmodtest

LOAD = False
BOOT_TIMEOUT = kmodtest.BOOT_TIMEOUT


def guest(t):
    kmodtest.run(t, "no-counter")

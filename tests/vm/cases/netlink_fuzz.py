# SPDX-License-Identifier: Apache-2.0
"""Sound, spoiled and random messages for the family while sessions sample and die; FUZZ_SEED=n for
others, NETLINK_MESSAGES=n for more of them, FULL=1 for 120,000."""

import kmodtest

LOAD = False
BOOT_TIMEOUT = kmodtest.BOOT_TIMEOUT


def before(t):
    kmodtest.before(t, NETLINK_MESSAGES=120000)


def guest(t):
    kmodtest.run(t, "netlink")

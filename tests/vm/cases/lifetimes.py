# SPDX-License-Identifier: Apache-2.0
"""Who holds a session and for how long, calls that meet its end, owners killed wherever they are (40;
FULL=1: 500, or OWNERS_KILLED=n), storms of processes, and no memory."""

import kmodtest

LOAD = False
BOOT_TIMEOUT = kmodtest.BOOT_TIMEOUT
TIMEOUT = 600


def before(t):
    kmodtest.before(t, OWNERS_KILLED=500)


def guest(t):
    kmodtest.run(t, "lifetimes", "races", "owners", "storms", "pressure")

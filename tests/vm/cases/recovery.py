# SPDX-License-Identifier: Apache-2.0
"""A session that has degraded is stopped, started and closed, and CPUs go and come meanwhile: what is
told stays right, and nothing is left behind."""

import kmodtest

LOAD = False


def guest(t):
    kmodtest.run(t, "degrade")

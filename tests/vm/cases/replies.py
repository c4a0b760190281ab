# SPDX-License-Identifier: Apache-2.0
"""Answers take little memory in one piece and interrupt no CPU, and a change is whole or not at all."""

import kmodtest

LOAD = False


def guest(t):
    kmodtest.run(t, "replies")

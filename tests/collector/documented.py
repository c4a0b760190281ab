# SPDX-License-Identifier: Apache-2.0
"""Configurations as documents show them, with addresses of the test that runs them."""

import os
import re
import sys

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")


def blocks(page, section, count=1, kind="yaml"):
    """Those between a heading and the next one."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        rest = re.split(rf"^#+ {re.escape(section)}\n", file.read(), maxsplit=1, flags=re.MULTILINE)[-1]
    found = re.findall(rf"^```{kind}\n(.*?)^```", re.split(r"^#", rest, maxsplit=1, flags=re.MULTILINE)[0],
                       re.MULTILINE | re.DOTALL)
    if len(found) != count:
        sys.exit(f"docs/{page}: {len(found)} blocks of {kind} under {section}, not {count}")
    return found


def at(text, places):
    for old, new in places.items():
        if old not in text:
            sys.exit(f"a documented configuration does not say {old}")
        text = text.replace(old, new)
    return text

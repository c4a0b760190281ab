#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of what docs/views.md tells of, taken of the page that `stacktap flamegraph` makes of a recording, and an
index.html that shows them. TAP: each has what it is to show, and no two are alike.

usage: pictures.py STACKTAP RECORDING DIRECTORY
"""

import hashlib
import html
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import page as pages  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

ROOT = [Keys.ESCAPE, Keys.ESCAPE]


def focus(page, name):
    page.run("document.activeElement.blur()")
    return page.tab_to(name)


def graph(page):
    return focus(page, "graph-part")


def search(page):
    graph(page)
    page.keys(*ROOT, "/", *re.escape(page.hottest)[:40])
    return float(page.text("found").split()[0]) > 0


def callers(page):
    # ends the search, whose colours all others lack
    page.keys("/", Keys.ESCAPE)
    graph(page)
    page.keys(*ROOT, "r")
    return page.run("return document.getElementById('panel-functions').hidden")


def functions(page):
    page.keys("r", "3")
    return page.run("return !document.getElementById('panel-functions').hidden")


def sandwich(page):
    page.keys(Keys.ENTER)
    return page.run("return stacktap.inSandwich >= 0")


def call_tree(page):
    page.keys(Keys.ESCAPE, "2")
    return page.run("return stacktap.treeList.rows.length") > 1


def times(page):
    page.keys("1")
    found = focus(page, "heat")
    page.keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.shift(*[Keys.ARROW_RIGHT] * 4)
    return found and page.run("return stacktap.filter.to > stacktap.filter.from")


# (file, what it shows, how the page is brought there; True when it is)
PICTURES = [
    ("flame", "The page: the line of quality, the heat map of samples over time, and the graph. Width is weight.", graph),
    ("search", "Search: the share of all stacks that have a match, wherever it stands in them.", search),
    ("callers", "Callers: what ran stands at the root, what called it above.", callers),
    ("functions", "Functions: self and total of each, with their errors.", functions),
    ("sandwich", "The sandwich: all that calls one function, and all that it calls.", sandwich),
    ("tree", "The call tree.", call_tree),
    ("time", "A range of time: all of the page is of that range.", times),
]

INDEX = """<!doctype html><meta charset="utf-8"><title>stacktap: reading a profile</title>
<style>body {{ font: 16px sans-serif; max-width: 60em; margin: 2em auto }} img {{ width: 100%; border: 1px solid #888 }}</style>
<h1>Reading a profile</h1>
{}
"""


def take(tap, page, directory):
    seen, figures = set(), []
    # the list of functions is made when it is looked at
    page.keys("3")
    page.hottest = page.run("return stacktap.profile.names[stacktap.functionList.order[0]]")
    page.keys("1")
    for name, what, bring in PICTURES:
        path = os.path.join(directory, name + ".png")
        is_there = bring(page)
        page.shot(path)
        with open(path, "rb") as file:
            bytes_ = file.read()
        digest = hashlib.sha256(bytes_).digest()
        tap.check(f"{name}.png: {what}", is_there and digest not in seen and bytes_.startswith(b"\x89PNG"))
        seen.add(digest)
        figures.append(f'<p><img src="{name}.png" alt="{html.escape(what)}"><br>{html.escape(what)}</p>')
    with open(os.path.join(directory, "index.html"), "w", encoding="utf-8") as file:
        file.write(INDEX.format("\n".join(figures)))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip().splitlines()[-1])
    stacktap, recording, directory = sys.argv[1:]
    tap = pages.Tap()
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(os.path.abspath(directory), "flamegraph.html")
    subprocess.run([stacktap, "flamegraph", "-o", path, recording], check=True)
    with pages.Page(path) as page:
        take(tap, page, directory)
        tap.same("the page complains of nothing", page.complaints(), [])
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The headings of a command's --help are those of its page's options, in the same order, each with the same options below it;
and a command with more than 15 lines of options has some.

usage: headings.py HELP PAGE.scd
"""

import re
import sys

OPTION = re.compile(r"(?<![\w-])(-[a-zA-Z]|--[a-z][a-z-]*)(?![\w-])")
# whoever is asked for help has it
UNSAID = {"-h", "--help"}


def below_headings(lines, heading_of, options_of):
    found, heading = {}, ""
    for line in lines:
        heading = heading_of(line) or heading
        for option in options_of(line):
            if option not in UNSAID:
                found.setdefault(heading, set()).add(option)
    return list(found.items())


def of_help(text):
    # what an option means begins behind two blanks, or in a line of its own
    return below_headings(
        text.splitlines(),
        lambda line: (match := re.fullmatch(r"([A-Z][A-Za-z ]*)(?:, as for `[a-z]+')?:", line)) and match[1],
        lambda line: OPTION.findall(re.split(r"(?<=\S)  ", line)[0]) if re.match(r" {2,6}-", line) else ())


def of_page(text):
    section = re.search(r"^# OPTIONS\n(.*?)^# ", text, re.DOTALL | re.MULTILINE)
    return below_headings(section[1].splitlines() if section else (),
                          lambda line: line[3:] if line.startswith("## ") else None,
                          lambda line: OPTION.findall(line.replace("*", " ")) if line.startswith("*-") else ())


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    with open(sys.argv[2], encoding="utf-8") as file:
        page = of_page(file.read())
    told = of_help(text)
    assert told == page, f"--help has {told},\nthe page {page}"
    count = len(re.findall(r"^ {2,6}-", text, re.MULTILINE))
    assert count <= 15 or (len(told) >= 2 and "" not in dict(told)), f"{count} lines of options below {[heading for heading, _ in told]}"


if __name__ == "__main__":
    main()

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands that the documents show have a command and options that there are, also those of stacktapd and stacktap-soak.
# usage: documents.sh BUILD-DIRECTORY
set -u

output=$(realpath -m "${1:?usage: documents.sh BUILD-DIRECTORY}")
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=../install/tap.bash
. tests/install/tap.bash

arch=$(uname -m)
[ "$arch" = aarch64 ] && arch=arm64

# [file:line: ] what is wrong, and at the end how many commands were looked at
python3 -B - "$output/user-$arch" README.md docs/*.md >"$output/documents.log" 2>&1 <<'PYTHON'
import re
import subprocess
import sys

PROGRAMS = {"stacktap": f"{sys.argv[1]}/stacktap", "stacktapd": f"{sys.argv[1]}/stacktapd", "stacktap-soak": "packaging/soak"}
helps = {}


def help_of(program, *command):
    key = (program, *command)
    if key not in helps:
        helps[key] = subprocess.run([PROGRAMS[program], *command, "--help"], capture_output=True, text=True).stdout
    return helps[key]


def complaint(program, words):
    command = []
    if program == "stacktap" and words[:1] == ["help"]:
        words.pop(0)
    if program == "stacktap" and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        command = [words.pop(0)]
        if not re.search(rf"^  {re.escape(command[0])} ", help_of("stacktap"), re.MULTILINE):
            return f"there is no command {command[0]}"
    elif program == "stacktap":
        command = ["status"]
    known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", help_of(program, *command))) | {"--help", "--version"}
    for word in words:
        if word == "--":        # behind it is another program
            break
        option = re.match(r"(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])", word)
        if option and option.group(1) not in known:
            return f"{' '.join([program, *command])} has no {option.group(1)}"
    return None


count = 0
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            texts = re.findall(r"`([^`]+)`", line)
            if line.startswith("    ") and not line.lstrip().startswith(("*", "|")):
                texts = [line.split(" #")[0]]
            for text in texts:
                for part in re.split(r"[|;<>]|&&|\$\(", text):
                    words = re.sub(r"'[^']*'", "TEXT", part).split()
                    if words[:1] == ["sudo"]:
                        words.pop(0)
                    if words and words[0] in PROGRAMS and len(words) > 1:
                        count += 1
                        said = complaint(words[0], words[1:])
                        if said:
                            print(f"{path}:{number}: {said}")
print(count)
PYTHON
same "commands of the documents are there, with their options" "$(sed '$d' "$output/documents.log")" ""
check "they were found" test "$(tail -n 1 "$output/documents.log")" -gt 100
finish

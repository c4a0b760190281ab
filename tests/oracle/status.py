# SPDX-License-Identifier: Apache-2.0
"""What status_files wrote, against the manual page made from the table and against docs/otlp.md. Prints TAP.

usage: status.py WORK-DIRECTORY
"""
import collections
import json
import os
import re
import sys

RESULTS = []


def tell(good, what, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - status: {what}")
    if not good and detail:
        print("\n".join("# " + line for line in str(detail).splitlines()[:20]))


def equal(have, want, what):
    tell(have == want, what, f"only here: {sorted(have - want)}\nmissing: {sorted(want - have)}")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def page_entries(text):
    """{(object, member): its line of meaning} of the manual's source."""
    entries, group = {}, None
    for line in text.split("# COUNTERS", 1)[1].split("# SEE ALSO")[0].replace("\\", "").splitlines():
        if line.startswith("## "):
            group = line[3:].split(":")[0] if ":" in line else line[3:]
        elif line.startswith(("*", "_")):
            member = (group, re.match(r"[*_](\w+?)[*_] \(", line)[1])
        elif line.startswith("\t"):
            entries[member] = line.strip()
    return entries


def status_members(status):
    """The same pairs, {: value}, of the daemon's JSON. The helpers' common members are a section of their own."""
    members, entries = {}, [(key, value) for key, value in status.items()]
    while entries:
        key, value = entries.pop()
        if key in ("pools", "relabel"):
            members.update({(key, name): value[0][name] for name in value[0] if name not in ("name", "rule")})
        elif key == "user_end":
            members[key, "end"] = sum(value.values())
        elif isinstance(value, dict):
            for name, inner in value.items():
                if isinstance(inner, dict):
                    entries.append((name, inner))
                else:
                    members[key, name] = inner
        else:
            members["The daemon itself", key] = value
    return members


HELPERS = "The opener and the parser, each in its object"


def fold_helpers(members):
    common = {name for key, name in members if key == "opener"} & {name for key, name in members if key == "parser"}
    return {(HELPERS if key in ("opener", "parser") and name in common else key, name) for key, name in members}


def check_values(members):
    """Were two members made of one field, their numbers would be the same."""
    same = {("unwind", "guessed"), ("unwind", "no_mappings"), ("unwind", "unreadable")}
    numbers = collections.Counter(value for member, value in members.items()
                                  if isinstance(value, int) and not isinstance(value, bool) and
                                  member not in same and member[0] not in ("pools", "relabel"))
    tell(not [value for value, count in numbers.items() if count > 1], "no two counters are of one field",
         [member for member, value in members.items() if numbers.get(value, 0) > 1])
    tell(len(numbers) > 80, "there are many", len(numbers))


def check_text(text, members):
    tell("{" not in text, "every place in a line is filled in", text)
    for group, name in (("windows", "samples"), ("exporter", "payloads_sent"), ("unwind", "failed"),
                        ("spool", "damaged_bytes"), ("parser", "deferred"), ("unwind", "deferred_expired")):
        tell(re.search(rf"\b{members[group, name]}\b", text), f"the text has {group}.{name}", text)
    tell(re.search(r"quality: \d+\.\d % complete, \d+\.\d % named", text), "the text has shares", text)
    tell(f"compiled in {members['unwind', 'compile_nano'] // 10**6} ms" in text, "times are in ms", text)
    tell("  opener: started" in text and "  parser: started" in text, "each helper has its line", text)


def main():
    work = sys.argv[1]
    entries = page_entries(read(work, "page.scd"))
    members = status_members(json.loads(read(work, "status.json")))
    equal(fold_helpers(members), set(entries), "the manual has each member of the JSON, and no others")
    check_values(members)
    check_text(read(work, "status"), members)
    attributes = set(re.findall(r"Of a Profile: _(stacktap\.\w+)_", "\n".join(entries.values())))
    rows = [line.split("|")[1] for line in read("docs", "otlp.md").splitlines() if line.startswith("| `")]
    documented = set()
    for cell in rows:
        names = re.findall(r"`([a-z_.]+)`", cell)
        documented |= {name if not name.startswith(".") else "stacktap" + name for name in names}
    tell(len(attributes) > 15 and attributes <= documented, "docs/otlp.md has each attribute of a Profile",
         attributes - documented)
    meanings = [meaning.split("._")[0] for meaning in entries.values()]
    tell(all(len(meaning) > 5 for meaning in meanings), "each has a meaning", meanings)
    print(f"1..{len(RESULTS)}")
    return not all(RESULTS)


if __name__ == "__main__":
    sys.exit(main())

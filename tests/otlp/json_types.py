# SPDX-License-Identifier: Apache-2.0
"""The types of docs/json.md, and whether a value is of one: every member is listed there, and those that are not
optional are there.

usage: json_types.py TYPE FILE...        each a value, or one a line
"""
import json
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "docs", "json.md")
TOKEN = re.compile(r'\s+|//[^\n]*|("[^"]*"|\w+|[{}()\[\];:?|&=])')
PLAIN = {"string": lambda value: isinstance(value, str), "any": lambda value: True,
         "boolean": lambda value: isinstance(value, bool), "null": lambda value: value is None,
         "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)}


class Types:
    """Each type is a function of a value and its path that gives what is wrong, a list of texts."""

    def __init__(self, text):
        self.types, self.used = {}, set()
        self.tokens, at = [], 0
        text = "\n".join(re.findall(r"^```ts\n(.*?)^```$", text, re.M | re.S))
        while at < len(text):
            match = TOKEN.match(text, at)
            if not match:
                raise ValueError(f"not understood: {text[at:at + 40]!r}")
            if match[1]:
                self.tokens.append(match[1])
            at = match.end()
        while self.tokens:
            self.take("type")
            name = self.tokens.pop(0)
            if name in self.types:
                raise ValueError(f"{name} is there twice")
            self.take("=")
            self.types[name] = self.union()
            self.take(";")

    def take(self, token):
        if self.tokens[0] != token:
            raise ValueError(f"{token!r} is missing in front of {' '.join(self.tokens[:8])}")
        self.tokens.pop(0)

    def has(self, token):
        if self.tokens[0] != token:
            return False
        self.tokens.pop(0)
        return True

    def union(self):
        parts = [self.both()]
        while self.has("|"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else ("union", parts)

    def both(self):
        parts = [self.list()]
        while self.has("&"):
            parts.append(self.list())
        return parts[0] if len(parts) == 1 else ("both", parts)

    def list(self):
        kind = self.one()
        while self.has("["):
            self.take("]")
            kind = ("list", kind)
        return kind

    def one(self):
        if self.has("("):
            kind = self.union()
            self.take(")")
            return kind
        if self.has("{"):
            return self.object()
        return ("name", self.tokens.pop(0))

    def object(self):
        members, others = {}, None
        while not self.has("}"):
            if self.has("["):
                self.tokens.pop(0)
                for token in (":", "string", "]", ":"):
                    self.take(token)
                others = self.union()
            else:
                name = self.tokens.pop(0)
                is_optional = self.has("?")
                self.take(":")
                members[name] = (is_optional, self.union())
            if not self.has(";") and self.tokens[0] != "}":
                raise ValueError(f"`;' is missing in front of {' '.join(self.tokens[:8])}")
        return ("object", members, others)

    def members(self, kind):
        """Of an object, or of several that are one."""
        if kind[0] == "name":
            self.used.add(kind[1])
            return self.members(self.types[kind[1]])
        if kind[0] == "both":
            every = {}
            for part in kind[1]:
                every.update(self.members(part))
            return every
        return kind[1]

    def wrong(self, kind, value, path="."):
        """What is wrong about a value, at most a line for each of its members."""
        if kind[0] == "name" and kind[1] in PLAIN:
            return [] if PLAIN[kind[1]](value) else [f"{path} is no {kind[1]}: {value!r:.60}"]
        if kind[0] == "name" and kind[1].startswith('"'):
            return [] if value == kind[1].strip('"') else [f"{path} is not {kind[1]}: {value!r:.60}"]
        if kind[0] == "name":
            self.used.add(kind[1])
            return self.wrong(self.types[kind[1]], value, path)
        if kind[0] == "list":
            if not isinstance(value, list):
                return [f"{path} is no list: {value!r:.60}"]
            return [text for i, one in enumerate(value) for text in self.wrong(kind[1], one, f"{path}[{i}]")]
        if kind[0] == "union":
            each = [self.wrong(part, value, path) for part in kind[1]]
            return [] if [] in each else [f"{path} is none of those that it may be: {value!r:.60}"]
        if not isinstance(value, dict):
            return [f"{path} is no object: {value!r:.60}"]
        members, others = self.members(kind), kind[2] if kind[0] == "object" else None
        texts = [f"{path} lacks {name}" for name, (is_optional, _) in members.items()
                 if not is_optional and name not in value]
        for name, one in value.items():
            if name in members:
                texts += self.wrong(members[name][1], one, f"{path}{'' if path == '.' else '.'}{name}")
            elif others:
                texts += self.wrong(others, one, f"{path}{'' if path == '.' else '.'}{name}")
            else:
                texts.append(f"{path} has {name}, which is not documented")
        return texts

    def check(self, name, text):
        """What is wrong about the objects of a text: one, or one a line."""
        try:
            values = [json.loads(text)]
        except ValueError:
            try:
                values = [json.loads(line) for line in text.splitlines()]
            except ValueError as error:
                return [f"this is no JSON: {error}"]
        return ([text for value in values for text in self.wrong(("name", name), value)]
                if values else ["there is nothing"])


def load():
    with open(PAGE, encoding="utf-8") as file:
        return Types(file.read())


def main():
    types, bad = load(), 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for text in types.check(sys.argv[1], file.read()):
                print(f"{path}: {text}")
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())

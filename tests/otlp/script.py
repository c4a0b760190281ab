# SPDX-License-Identifier: Apache-2.0
"""What the receiver shall answer, request by request: steps like `503:retry-after=2`, `ok*5`.

A script is a list of steps separated by commas or line ends; `#` starts a comment. A step is
`name[:option[:option…]][*N]`; `*N` repeats it, `*` alone repeats it for ever. Behind the last
step everything is `ok`. Names:

  ok                        200, empty response
  partial:rejected=N        200, N profiles rejected
  partial-warning           200, none rejected but a message
  garbage                   200, a body that is no protobuf message
  page                      200, a web page
  plain:STATUS              an error of this status with its reason as text/plain
  close-before-response     connection closed after the request was read
  close-mid-response        connection closed inside the body of a 200
  hang:SECONDS              nothing is said for so long, then the connection is closed
  redirect                  307 to the same place
  400, 413, 503, …          an error; retry-after=SECONDS, retry-after-date[=SECONDS] (default 2)

Option `store=0|1` says whether the request counts as taken; by default where the answer is a
whole 200.
"""

import collections

TAKEN = frozenset(("ok", "partial", "partial-warning", "garbage"))
NAMES = TAKEN | {"close-before-response", "close-mid-response", "hang", "page", "plain", "redirect"}
OPTIONS = {"rejected": int, "retry-after": int, "retry-after-date": int, "store": int}
DATE_DELAY = 2

Step = collections.namedtuple("Step", "text name options store")


def parse_step(text):
    name, *parts = text.split(":")
    if not (name in NAMES or (name.isdigit() and 400 <= int(name) <= 599)):
        raise ValueError(f"{text!r}: {name!r} is not a step")
    options = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if name == "hang" and not equals:
            options["seconds"] = float(part)
        elif name == "plain" and part.isdigit() and 400 <= int(part) <= 599:
            options["status"] = int(part)
        elif key == "retry-after-date" and not equals:
            options[key] = DATE_DELAY
        elif key in OPTIONS and value.isdigit():
            options[key] = OPTIONS[key](value)
        else:
            raise ValueError(f"{text!r}: {part!r} is not an option")
    if name == "hang" and "seconds" not in options:
        raise ValueError(f"{text!r}: hang needs seconds")
    if name == "plain" and "status" not in options:
        raise ValueError(f"{text!r}: plain needs a status")
    return Step(text, name, options, bool(options.get("store", name in TAKEN)))


def parse(text):
    """The steps of a script as (Step, repetitions or None for ever)."""
    steps = []
    for line in text.splitlines():
        for word in line.partition("#")[0].split(","):
            word = word.strip()
            if not word:
                continue
            step, star, count = word.partition("*")
            if count and (not count.isdigit() or int(count) == 0):
                raise ValueError(f"{word!r}: {count!r} is not a number of times")
            steps.append((parse_step(step), int(count) if count else None if star else 1))
    return steps


class Script:
    """Hands out one step after the other."""

    def __init__(self, text=""):
        self.steps = collections.deque(parse(text))
        self.done = parse_step("ok")

    def next(self):
        if not self.steps:
            return self.done
        step, count = self.steps[0]
        if count == 1:
            self.steps.popleft()
        elif count is not None:
            self.steps[0] = (step, count - 1)
        return step

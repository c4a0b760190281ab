# SPDX-License-Identifier: Apache-2.0
"""stacktap top: a known load is first, by each group; the window forgets; the ways to end."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from kit import read

ARCHES = ("x86_64",)


def top(t, *options):
    result = t.stacktap("top", "-b", "--json", "-e", "cpu-clock", "-F", 199, *options)
    with open(t.path("Top.json"), "a", encoding="utf-8") as f:
        f.write(result.stdout)
    return [json.loads(line) for line in result.stdout.splitlines()]


def told(t, child):
    """The next print that has samples: on a loaded CPU some may have none."""
    return t.until(lambda: (lambda seen: seen if seen["samples"] else None)(json.loads(child.stdout.readline())), 60, "samples")


def started(t, *options):
    return t.start("/opt/stacktap/bin/stacktap", "top", "-b", "--json", "-e", "cpu-clock", "-F", 199, *options)


def rows_of(t, *options):
    child = started(t, "-d", 3, *options)
    rows = told(t, child)["rows"]
    t.stop(child)
    return rows


def forgets(t, busy):
    """Of a load that stands still a window of two seconds has nothing after a few prints, of which one of ten would have five."""
    child = started(t, "-p", busy.pid, "-d", 2, "--window", 2)
    told(t, child)
    busy.send_signal(signal.SIGSTOP)
    later = []
    while len(later) < 5 and (not later or later[-1]):
        later.append(json.loads(child.stdout.readline())["samples"])
    busy.send_signal(signal.SIGCONT)
    t.stop(child)
    t.ok(later[-1] == 0 and len(later) <= 4, "a shorter window forgets", later)


def guest(t):
    busy = t.start("/opt/stacktap/workload/deep", 5, 3600)
    seen = top(t, "-p", busy.pid, "-n", 3, "-d", 2)
    t.equal(len(seen), 3, "one object for each iteration")
    last = seen[-1]
    first = last["rows"][0]
    t.ok(first["id"] == busy.pid and first["owner"] == "deep" and first["name"] == "bottom",
         "the function that burns is first", first)
    t.ok(first["self"] > 0.8 * last["weight"], "nearly all is its own", last)
    cost = last["own_cost"]
    t.ok(0 < cost["module_ns"] < cost["ns"] and 0 < cost["programs_ns"] < cost["ns"] * cost["cpus"],
         "what it takes itself", cost)
    t.ok(last["user"] > 0.8 * last["weight"] and not last["idle"], "user mode", last)
    # 199 a second of at most one CPU, for the six seconds less the first windows; an emulated one may stand still meanwhile
    t.ok(20 < last["samples"] < 1400, "so many samples", last["samples"])
    t.ok(seen[0]["samples"] < last["samples"], "the window fills", [s["samples"] for s in seen])
    forgets(t, busy)
    for group, key in (("process", "owner"), ("thread", "owner"), ("object", "file")):
        row = rows_of(t, "-p", busy.pid, "--group", group)[0]
        t.equal(os.path.basename(row[key]), "deep", f"by {group}")
    rows = rows_of(t, "-p", busy.pid, "--filter", "^main$", "--limit", 0)
    t.ok(rows[0]["total"] and not rows[0]["self"], "main has it in total alone", rows)
    t.equal([row["name"] for row in rows], ["main"], "the filter leaves what matches")
    # the last of them has what all have
    text = t.stacktap("top", "-b", "-n", 3, "-d", 2, "-p", busy.pid, "-e", "cpu-clock").stdout
    t.ok("[u] bottom  /opt/stacktap/workload/deep" in text and "SELF" in text, "as text", text)
    t.ok("\x1b" not in text, "without a terminal it is text alone", text)
    screen(t, busy)
    keys(t, busy)
    colors(t, busy)
    selected(t, busy)
    ends(t, busy)
    documented(t)


RED, GREEN = 1, 2
PLAIN = (None, False, False)
SELECTED = (None, False, True)


class Terminal:
    """
    A pseudo-terminal and what it would show: the sequences that ncurses sends a vt100, or a Linux console; another one is
    an error. Each cell has a style: number of the colour or None, bold, reverse.
    """

    SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([@A-Za-z])|\x1b[()].|\x1b\]R|\x1b[=>78M]|[\x80-\xff]+|[\s\S]")
    BEGUN = re.compile(rb"(?:\x1b(?:\[[?0-9;]*|[()\]])?|[\xc0-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf7][\x80-\xbf]{0,2})?\Z")

    def __init__(self, lines, columns):
        self.master, self.slave = pty.openpty()
        self.settings = termios.tcgetattr(self.slave)
        self.rest = b""
        self.size(lines, columns)

    def size(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.styles = [[PLAIN] * columns for _ in range(lines)]
        self.style = PLAIN
        self.line = self.column = 0
        self.saved = 0, 0, PLAIN
        self.top, self.bottom = 0, lines  # of what scrolls
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def text(self, seconds=0.3):
        """What it shows once nothing more has come for so long."""
        data = self.rest
        while select.select([self.master], [], [], seconds)[0]:
            data += os.read(self.master, 65536)
        # on a loaded CPU what is drawn may pause within a sequence
        cut = self.BEGUN.search(data)
        self.rest, data = cut[0], data[:len(data) - len(cut[0])]
        for match in self.SEQUENCE.finditer(data):
            self.take(match)
        return "\n".join("".join(cells).rstrip() for cells in self.cells)

    def take(self, match):
        char = match[0]
        if match[2]:
            self.control(match[2].decode(), [int(n or 0) for n in match[1].lstrip(b"?").split(b";")])
        elif char == b"\r":
            self.column = 0
        elif char == b"\n":
            if self.line == self.bottom - 1:
                self.move_lines(self.top, -1)
            else:
                self.line = min(self.line + 1, self.lines - 1)
        elif char == b"\x1b7":
            self.saved = self.line, self.column, self.style
        elif char == b"\x1b8":
            self.line, self.column, self.style = self.saved
        elif char == b"\x1bM":
            if self.line == self.top:
                self.move_lines(self.top, 1)
            else:
                self.line = max(self.line - 1, 0)
        elif char == b"\b":
            self.column = max(self.column - 1, 0)
        elif char == b"\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif char >= b" ":
            for one in char.decode(errors="replace"):
                if self.column < self.columns and self.line < self.lines:
                    self.cells[self.line][self.column] = one
                    self.styles[self.line][self.column] = self.style
                self.column += 1

    def move_lines(self, first, count):
        """Those from @first to the end of what scrolls: so many down, or up where it is below 0."""
        for rows, blank in ((self.cells, " "), (self.styles, PLAIN)):
            blanks = [[blank] * self.columns for _ in range(min(abs(count), self.bottom - first))]
            kept = rows[first:self.bottom]
            kept = blanks + kept[:len(kept) - len(blanks)] if count > 0 else kept[len(blanks):] + blanks
            rows[first:self.bottom] = kept

    def control(self, what, numbers):
        first = numbers[0]
        if what == "m":
            for number in numbers:
                self.restyle(number)
        elif what == "G":
            self.column = min(max(first, 1), self.columns) - 1
        elif what == "d":
            self.line = min(max(first, 1), self.lines) - 1
        elif what == "X":
            self.erase(self.line, self.column, self.column + max(first, 1))
        elif what in "@P":
            for row, blank in ((self.cells[self.line], " "), (self.styles[self.line], PLAIN)):
                blanks = [blank] * max(first, 1)
                rest = row[self.column:]
                row[self.column:] = (blanks + rest if what == "@" else rest[len(blanks):] + blanks)[:len(rest)]
        elif what == "H":
            self.line = min(max(first, 1), self.lines) - 1
            self.column = min(max(numbers[-1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif what in "ABCD":
            step = max(first, 1)
            self.line += {"A": -step, "B": step}.get(what, 0)
            self.column += {"C": step, "D": -step}.get(what, 0)
        elif what == "r":
            self.top, self.bottom = max(first, 1) - 1, min(numbers[-1] if len(numbers) > 1 else self.lines, self.lines)
            self.line = self.column = 0
        elif what in "LM":
            if self.top <= self.line < self.bottom:
                self.move_lines(self.line, max(first, 1) * (1 if what == "L" else -1))
            self.column = 0
        elif what in "ST":
            self.move_lines(self.top, max(first, 1) * (1 if what == "T" else -1))
        elif what == "K":
            self.erase(self.line, *((0, self.column + 1) if first == 1 else (self.column, self.columns)))
        elif what == "J":
            self.erase(self.line, self.column, self.columns)
            for line in range(self.line + 1, self.lines):
                self.erase(line, 0, self.columns)
        elif what not in "hlc":
            raise ValueError(f"a sequence that ends with {what}, which this terminal does not know")

    def erase(self, line, begin, end):
        for column in range(begin, min(end, self.columns)):
            self.cells[line][column], self.styles[line][column] = " ", PLAIN

    def restyle(self, number):
        color, bold, reverse = self.style
        if number == 0:
            self.style = PLAIN
        elif number == 1:
            self.style = color, True, reverse
        elif number in (7, 27):
            self.style = color, bold, number == 7
        elif 30 <= number <= 39:
            self.style = None if number == 39 else number - 30, bold, reverse

    def styles_of(self, line, begin, end):
        """Those of a part of a line, each once."""
        return set(self.styles[line][begin:end])


def on_screen(t, terminal, *options, **environment):
    return t.start("/opt/stacktap/bin/stacktap", "top", "-e", "cpu-clock", "-d", 1, *options,
                   stdin=terminal.slave, stdout=terminal.slave,
                   env=dict(os.environ, TERM="vt100") | environment)


def shows(t, terminal, line, what, text):
    """A line of the screen has it, soon: a loaded CPU may draw a screen in parts. Line None: any of them."""
    def has():
        lines = terminal.text().split("\n")
        return any(what in each for each in (lines if line is None else lines[line:line + 1]))
    t.ok(t.comes_to(has, 20), text, terminal.text())


def calls(t, terminal):
    """The selected function's callers, a caller's callees, and its code, each entered and left by keys."""
    os.write(terminal.master, b"e")
    t.until(lambda: "callers and callees of bottom, deep" in terminal.text(), 20, "e shows callers and callees")
    shows(t, terminal, 5, "caller  [u] descend", "the caller is first")
    shows(t, terminal, 6, "itself  [u] bottom", "then the function itself")
    os.write(terminal.master, b"\r")
    t.until(lambda: "callers and callees of descend" in terminal.text(), 20, "Enter goes to the caller")
    shows(t, terminal, None, "callee  [u] bottom", "which calls bottom")
    os.write(terminal.master, b"q")
    t.until(lambda: "PID  FUNCTION" in terminal.text(), 20, "q goes back to the table")
    os.write(terminal.master, b"a")
    t.until(lambda: "annotate bottom, " in terminal.text(), 60, "a annotates")

    def hottest():
        """Is it selected?"""
        lines = terminal.text().split("\n")
        shares = {i: float(line[:7]) for i, line in enumerate(lines) if i >= 5 and re.match(r" +\d+\.\d\d %", line)}
        chosen = [i for i in shares if terminal.styles_of(i, 0, 80) == {SELECTED}]
        return len(chosen) == 1 and shares[chosen[0]] == max(shares.values())
    t.ok(t.comes_to(hottest, 20), "its hottest line is selected", terminal.text())
    os.write(terminal.master, b"\x1b")
    t.until(lambda: "PID  FUNCTION" in terminal.text(), 20, "Esc goes back to the table")
    os.write(terminal.master, b"h")
    t.until(lambda: "callers and callees of the selected function" in terminal.text(), 20, "h lists the keys")
    os.write(terminal.master, b"h")


def screen(t, busy):
    terminal = Terminal(24, 80)
    child = on_screen(t, terminal, "-p", busy.pid)
    t.until(lambda: "[u] bottom" in terminal.text(), 30, "the screen shows the load")
    lines = terminal.text().split("\n")
    t.ok(lines[4].split() == ["SELF", "TOTAL", "PROCESS", "PID", "FUNCTION"], "the heading", lines)
    # the first samples may be of what it did before it burned
    shows(t, terminal, 5, "[u] bottom", "the function that burns is on the first row")
    t.until(lambda: re.search(r"own cost \d+\.\d\d % of \d+ CPU", terminal.text()), 20, "its own cost")
    calls(t, terminal)
    t.ok(termios.tcgetattr(terminal.slave) != terminal.settings, "the terminal is taken")
    os.write(terminal.master, b"/^main$\r")
    t.until(lambda: "filtered" in terminal.text(), 20, "a filter")

    def left():
        return [line for line in terminal.text().split("\n")[5:] if line]
    t.ok(t.comes_to(lambda: (lambda lines: len(lines) == 1 and "[u] main" in lines[0])(left()), 20), "the filter leaves what matches", left())
    os.write(terminal.master, b"/\rg")
    t.until(lambda: re.search(r"PID *$", terminal.text(), re.MULTILINE), 20, "g is the next group")
    terminal.size(30, 100)
    os.kill(child.pid, signal.SIGWINCH)
    t.until(lambda: re.search(r"PID *$", terminal.text(), re.MULTILINE), 20, "another size is drawn anew")
    os.write(terminal.master, b"q")
    t.equal(t.wait(child, 30), 0, "q ends it with 0")
    t.equal(termios.tcgetattr(terminal.slave), terminal.settings, "q gives the terminal back")
    child = on_screen(t, terminal, "-p", busy.pid)
    t.until(lambda: termios.tcgetattr(terminal.slave) != terminal.settings, 30, "the screen")
    child.send_signal(signal.SIGTERM)
    terminal.text()
    t.equal(t.wait(child, 30), 0, "SIGTERM ends it with 0")
    t.equal(termios.tcgetattr(terminal.slave), terminal.settings, "SIGTERM gives the terminal back")


# as terminfo has them for a Linux console
UP, DOWN, RIGHT, LEFT = b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D"
HOME, END, PAGE_UP, PAGE_DOWN = b"\x1b[1~", b"\x1b[4~", b"\x1b[5~", b"\x1b[6~"
F1, F4, F6, F10 = b"\x1b[[A", b"\x1b[[D", b"\x1b[17~", b"\x1b[21~"
ESCAPE, REDRAW = b"\x1b", b"\x0c"
HEADINGS = (("PROCESS", "PID", "FUNCTION"), ("PROCESS", "PID"), ("THREAD", "TID"), ("OBJECT",), ("CONTAINER",), ("SERVICE",), ("CGROUP",))


class Keys:
    """What a screen shows after a key."""

    def __init__(self, t, terminal):
        self.t, self.terminal = t, terminal

    def lines(self):
        return self.terminal.text(0.05).split("\n")

    def names(self):
        """Of the functions on the screen."""
        return [line.split()[7] for line in self.lines()[5:] if "[u] " in line]

    def selected(self):
        """That of the row that is selected."""
        return [line.split()[7] for i, line in enumerate(self.lines()) if i >= 5 and "[u] " in line and
                self.terminal.styles_of(i, 0, len(line)) == {SELECTED}]

    def prompt(self):
        return self.lines()[3]

    def samples(self):
        told = re.search(r"samples (\d+)", self.lines()[1])
        return int(told[1]) if told else None

    def heading(self):
        return tuple(self.lines()[4].split()[2:])

    def press(self, key, have, want, text, before=""):
        """@have is @want, soon. A failure shows the screen that it is held against, too: @before."""
        os.write(self.terminal.master, key)
        seen = have()
        for _ in range(200):
            if seen == want:
                break
            time.sleep(0.05)
            seen = have()
        self.t.ok(seen == want, text if seen == want else f"{text}: {seen!r}, not {want!r}", before + "\n" + self.terminal.text())


def stands_still(t, look, text):
    """What it looks at is the same for some seconds: that a loaded CPU draws nothing for two is no sign that there is nothing."""
    def is_same():
        first = look()
        return all((time.sleep(2), look())[1] == first for _ in range(3)) and first is not None
    t.until(is_same, 60, text)


def keys(t, busy):
    """
    Each key that the manual has. The load stands still meanwhile, and what it has done is in the window, so that what
    changes is the key's doing.
    """
    terminal = Terminal(24, 80)
    child = on_screen(t, terminal, "-p", busy.pid, "--user-only", "--window", "1h", "-d", 0.5, TERM="linux", NO_COLOR="1")
    now = Keys(t, terminal)
    t.until(lambda: len(now.names()) >= 3, 60, "the functions of the load")
    busy.send_signal(signal.SIGSTOP)
    stands_still(t, now.samples, "nothing new")
    # a sample that comes late has a row of its own: what is frozen stays as it is
    now.press(b"p", lambda: ", frozen" in now.prompt(), True, "p freezes what is there")
    stands_still(t, now.names, "what is frozen stands still")
    rows, whole = now.names(), terminal.text()
    t.ok(", kernel 0.0 %" in now.lines()[0] and "[k] " not in terminal.text(), "--user-only takes no sample in the kernel", terminal.text())
    # as many rows as fit are a page
    now.press(b"", lambda: {line.split()[-1] for line in now.lines()[5:] if "[u] main" in line}, {"/opt/stacktap/workload/deep"},
              "a path that there is room for is whole")
    terminal.size(7, 64)
    child.send_signal(signal.SIGWINCH)
    now.press(b"", lambda: now.lines()[5].endswith("[u] bottom  deep"), True, "in a narrow window its file loses its directories")
    t.equal([i for i in range(5, 7) if terminal.styles_of(i, 0, 64) == {SELECTED}], [5], "the selected row is marked to its end")
    terminal.size(7, 80)
    child.send_signal(signal.SIGWINCH)
    now.press(b"", now.names, rows[:2], "two rows, as many as fit")
    # another size and back before it looked: ncurses sees no change, and the terminal may have kept nothing
    terminal.size(7, 80)
    child.send_signal(signal.SIGWINCH)
    now.press(b"", now.names, rows[:2], "a size that is the same again is drawn anew, too")
    # what it left out there is no other assertion's
    os.write(terminal.master, REDRAW)
    for key, row, text in ((DOWN, 1, "down"), (DOWN, 2, "down, again"), (UP, 1, "up"), (HOME, 0, "home"), (PAGE_DOWN, 2, "page down"),
                           (PAGE_UP, 0, "page up"), (END, -1, "end")):
        now.press(key, now.selected, rows[row:row + 1] or rows[row:], f"{text} selects that row", whole)
    t.ok(set(now.selected()) <= set(now.names()), "and it is on the screen", terminal.text())
    now.press(b"p", lambda: ", frozen" in now.prompt(), False, "p goes on")
    now.press(HOME, now.selected, rows[:1], "home, from there")
    for key, column in ((b"s", "total"), (F6, "self")):
        now.press(key, lambda: now.prompt().split()[:3], ["sorted", "by", column], f"{key} sorts by {column}")
    for heading in HEADINGS[1:] + HEADINGS[:1]:
        now.press(b"g", now.heading, heading, "g is the next group")
    for key in (b"/", b"f", F4):
        now.press(key, now.prompt, "filter: _", f"{key} asks for a filter")
        os.write(terminal.master, b"^mainx\x7f")
        now.press(b"", now.prompt, "filter: ^main_", "which can be typed")
        now.press(ESCAPE, lambda: "filtered" in now.prompt(), False, "Esc leaves it as it was")
    now.press(b"/^main$\r", now.names, ["main"], "Enter takes a filter")
    now.press(b"/\r", lambda: len(now.names()), 2, "an empty one is none")
    now.press(b"/(\r", now.prompt, "invalid regular expression", "one that is wrong is told")
    now.press(b"d", now.prompt, "delay: _", "d asks for the delay")
    now.press(b"x\r", now.prompt, "this is not a time of 0.1 s at least", "a wrong one is told")
    for key in (b"h", b"?", F1):
        now.press(key, lambda: now.lines()[4][:14], "q         quit", f"{key} shows the keys")
        now.press(b"x", now.heading, HEADINGS[0], "any key goes back")
    now.press(DOWN, now.selected, now.names()[1:], "the second row")
    for enter, back in ((b"e", b"q"), (b"+", ESCAPE), (b"\r", LEFT), (RIGHT, b"q")):
        now.press(enter, lambda: now.heading()[:3], ("callers", "and", "callees"), f"{enter} enters a function")
        now.press(back, now.heading, HEADINGS[0], f"{back} leaves it")
        now.press(b"", lambda: now.selected() == now.names()[1:], True, "and the row that was left is selected")
    now.press(b"p", lambda: ", frozen" in now.prompt(), True, "p freezes")
    before = now.samples()
    busy.send_signal(signal.SIGCONT)
    time.sleep(2.5)
    t.equal(now.samples(), before, "then what comes is not shown")
    now.press(b" ", lambda: ", frozen" in now.prompt(), False, "space goes on")
    t.until(lambda: (now.samples() or 0) > before, 30, "and it is shown")
    busy.send_signal(signal.SIGSTOP)
    stands_still(t, now.samples, "nothing new, again")
    now.press(b"z", lambda: (now.samples(), now.prompt()[:16]), (0, "no samples yet, "), "z begins anew")
    busy.send_signal(signal.SIGCONT)
    t.ok(t.comes_to(now.samples, 60), "what comes then is shown", terminal.text())
    # the delay is an hour from here on: nothing but keys draws
    os.write(terminal.master, b"d1h\r")
    stands_still(t, now.lines, "a delay of an hour is kept")
    wanted = now.lines()[4:]
    terminal.cells = [["#"] * terminal.columns for _ in range(terminal.lines)]
    now.press(REDRAW, lambda: now.lines()[4:], wanted, "Ctrl-L draws all of it anew")
    now.press(b"z", lambda: now.samples() == 0, True, "z, whatever the delay is")
    os.write(terminal.master, F1 + F10)
    t.equal(t.wait(child, 30), 0, "F10 ends it, also where the keys are shown")
    t.equal(termios.tcgetattr(terminal.slave), terminal.settings, "and gives the terminal back")


CONTAINER = "fedcba9876543210" * 4


def selected(t, busy):
    """Of all that is sampled what --process, --thread, --container and --service name is shown, and counted."""
    cgroup = f"/sys/fs/cgroup/docker-{CONTAINER}.scope"
    os.mkdir(cgroup)
    t.run("cp", "/opt/stacktap/workload/deep", "/tmp/inner")
    inner = t.start("sh", "-c", f"echo $$ >{cgroup}/cgroup.procs; exec /tmp/inner 3 600 thread",
                    env=dict(os.environ, OTEL_SERVICE_NAME="shop"))
    t.until(lambda: len(os.listdir(f"/proc/{inner.pid}/task")) == 2, 30, "its second thread")
    thread = next(int(tid) for tid in os.listdir(f"/proc/{inner.pid}/task") if int(tid) != inner.pid)
    for options, group, who in ((("--process", "inner"), "process", inner.pid), (("--thread", thread), "thread", thread),
                                (("--container", CONTAINER[:12]), "process", inner.pid), (("--service", "shop"), "process", inner.pid)):
        child = t.start("/opt/stacktap/bin/stacktap", "top", "-b", "--json", "-e", "cpu-clock", "-d", 1, "-p", f"{busy.pid},{inner.pid}",
                        "--call-graph", "fp", "--group", group, *options)
        seen = told(t, child)
        t.stop(child)
        t.ok(seen["samples"] and seen["user"] <= seen["weight"] and seen["weight"] == sum(row["self"] for row in seen["rows"]) and
             {row["id"] for row in seen["rows"]} == {who}, f"{' '.join(map(str, options))} selects", seen)
    t.stop(inner)
    t.until(lambda: not read(f"{cgroup}/cgroup.procs"), 30, "the cgroup to be empty")
    os.rmdir(cgroup)


def colors(t, busy):
    """Shares by perf's limits, the heading and the column that it is sorted by; with NO_COLOR all but the colours."""
    for environment in ({}, {"NO_COLOR": "1"}):
        terminal = Terminal(24, 80)
        child = on_screen(t, terminal, "-p", busy.pid, TERM="linux", **environment)
        t.until(lambda: terminal.text().count("[u] ") > 2, 30, f"a screen {environment}")
        lines = ["".join(cells) for cells in terminal.cells]
        red, green = (None, None) if environment else (RED, GREEN)
        t.equal(terminal.styles_of(4, 18, 40), {(green, True, False)}, f"the heading {environment}")
        t.equal(terminal.styles_of(4, 4, 8), {(green, True, True)}, f"the column that it is sorted by {environment}")
        t.equal(terminal.styles_of(5, 0, len(lines[5].rstrip())), {SELECTED}, f"the selected row {environment}")
        seen = set()
        for row in range(6, 24):
            if "[u] " not in lines[row]:
                continue
            t.equal(terminal.styles_of(row, 18, 80), {PLAIN}, f"names are plain {environment}")
            for column in (0, 9):
                percent = float(lines[row][column:column + 6])
                color = red if percent >= 5 else green if percent >= 0.5 else None
                seen.add(color)
                t.equal((percent, terminal.styles_of(row, column, column + 8)), (percent, {(color, False, False)}),
                        f"the colour of a share {environment}")
        if environment:
            t.equal({style[0] for line in terminal.styles for style in line}, {None}, "no colour at all")
        else:
            t.ok(RED in seen and None in seen, "a hot share and a cold one", lines)
        key = b"\x1b[21~" if environment else b"q"
        os.write(terminal.master, key)
        t.equal(t.wait(child, 30), 0, f"{'F10' if environment else 'q'} ends it")


def documented(t):
    """What other commands print while something samples; host() holds it against docs/json.md."""
    with open(t.path("Events.json"), "w", encoding="utf-8") as f:
        events = t.start("/opt/stacktap/bin/stacktap", "events", "--json", "--duration", 300, stdout=f)
        record = t.start("/opt/stacktap/bin/stacktap", "record", "-q", "-a", "-o", "/tmp/x.otlp")
        t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30, "sampling")
        for name, command in (("Status", "status"), ("Sessions", "stop record"), ("Sessions", "start stacktap"),
                              ("Sessions", "stop stacktap"), ("Sessions", "set stacktap --rate 49 --cpus 0 --exclude-idle"),
                              ("Sessions", "start all"), ("Status", "status")):
            result = t.stacktap(*command.split(), "--json", check=False)
            with open(t.path(f"{name if result.returncode == 0 else 'Failure'}.json"), "a", encoding="utf-8") as out:
                out.write(result.stdout)
        t.stop(record)
        t.stop(events)


def host(t):
    import json_types
    types = json_types.load()
    for name in ("Top", "Status", "Sessions", "Events", "Failure"):
        with open(os.path.join(t.dir, f"{name}.json"), encoding="utf-8") as f:
            t.equal(types.check(name, f.read())[:10], [], f"docs/json.md has what {name} is")


def ends(t, busy):
    for how in (signal.SIGINT, signal.SIGTERM):
        child = t.start("/opt/stacktap/bin/stacktap", "top", "-b")
        t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30,
                "sampling")
        time.sleep(1)
        out, err = t.stop(child, how)
        t.ok(child.returncode == 0 and not err, f"{how.name} ends it with 0", out + err)
    child = t.start("/opt/stacktap/bin/stacktap", "top", "-d", 1, "-p", busy.pid)
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30, "sampling")
    t.stop(busy)
    t.equal(t.wait(child, 30), 0, "it ends with its last target")
    t.equal(t.json("status")["sessions"], [], "no session is left")

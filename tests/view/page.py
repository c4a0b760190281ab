#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Open what `stacktap flamegraph` writes in a headless Chromium without a network, use it by keyboard, and hold its
numbers against those that another decoder finds in the same file. TAP.

usage: page.py STACKTAP DIRECTORY
"""

import base64
import collections
import json
import os
import random
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "otlp")]

import diff  # noqa: E402
import make_sample  # noqa: E402
import report  # noqa: E402
import wire  # noqa: E402

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, text, good, said=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}", flush=True)
        if not good:
            self.failed += 1
            for line in str(said).splitlines()[:20]:
                print(f"#   {line}")

    def same(self, text, have, want):
        self.check(text, have == want, f"{have!r}\nnot {want!r}")

    def near(self, text, have, want, by):
        self.check(text, abs(have - want) <= by, f"{have!r} is not {want!r} within {by}")

    def skip(self, text, why):
        self.count += 1
        print(f"ok {self.count} - {text} # SKIP {why}", flush=True)

    def finish(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


class Recording:
    """The samples of a file as another decoder reads them: time, thread, process, stack from the leaf on."""

    def __init__(self, path):
        self.samples = []
        for payload in wire.read(path):
            self.add(wire.decode(payload)[0])
        self.self_counts, self.total_counts = collections.Counter(), collections.Counter()
        for *_, stack in self.samples:
            self.self_counts[stack[0]] += 1
            self.total_counts.update(set(stack))

    def add(self, data):
        tables = data.dictionary
        names = []
        for location in tables.location_table:
            names.append([tables.string_table[tables.function_table[line.function_index].name_strindex]
                          for line in location.lines] or ["[no symbol]"])
        stacks = [tuple(name for index in stack.location_indices for name in names[index])
                  for stack in tables.stack_table]
        keys = [tables.string_table[each.key_strindex] for each in tables.attribute_table]
        for group in data.resource_profiles:
            process = {pair.key: pair.value for pair in group.resource.attributes}
            for profile in group.scope_profiles[0].profiles:
                for sample in profile.samples:
                    facts = {keys[i]: tables.attribute_table[i].value for i in sample.attribute_indices}
                    thread = f"{facts['thread.name'].string_value} ({facts['thread.id'].int_value})"
                    name = process["process.executable.name"].string_value
                    for moment in sample.timestamps_unix_nano:
                        self.samples.append((moment, thread, name, stacks[sample.stack_index]))

    def share(self, expression):
        pattern = re.compile(expression, re.IGNORECASE if expression == expression.lower() else 0)
        known = {}
        hit = 0
        for *_, stack in self.samples:
            if stack not in known:
                known[stack] = any(pattern.search(name) for name in stack)
            hit += known[stack]
        return 100 * hit / len(self.samples)

    def self_of(self, name):
        return self.self_counts[name]

    def total_of(self, name):
        return self.total_counts[name]

    def between(self, first, last):
        return sum(first <= moment < last for moment, *_ in self.samples)


def browser(theme, bypass="<-loopback>"):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1440,1000", "--force-device-scale-factor=1", "--lang=en",
                     "--proxy-server=127.0.0.1:9", f"--proxy-bypass-list={bypass}",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run"):
        options.add_argument(argument)
    if theme == "dark":
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


class Page:
    def __init__(self, path, theme="light"):
        self.driver = browser(theme)
        self.driver.set_script_timeout(60)
        self.driver.get("file://" + path)
        self.wait("return typeof stacktap === 'object' && stacktap.readyTime > 0")
        self.settle()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, script):
        end = time.monotonic() + 30
        while not self.run(script):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.05)

    def settle(self):
        """Until nothing moves and all is drawn."""
        self.driver.execute_async_script("""
            const done = arguments[0];
            const look = () => stacktap.graph.target ? requestAnimationFrame(look) :
                requestAnimationFrame(() => requestAnimationFrame(() => done()));
            setTimeout(look, 30);""")

    def keys(self, *keys):
        chain = ActionChains(self.driver)
        for key in keys:
            chain.send_keys(key)
        chain.perform()
        self.settle()

    def shift(self, *keys):
        chain = ActionChains(self.driver).key_down(Keys.SHIFT)
        for key in keys:
            chain.send_keys(key)
        chain.key_up(Keys.SHIFT).perform()
        self.settle()

    def text(self, name):
        return self.run("return document.getElementById(arguments[0]).textContent", name)

    def tab_to(self, name):
        """By the Tab key alone; False if it is not reached."""
        for _ in range(40):
            if self.run("return document.activeElement.id") == name:
                return True
            self.keys(Keys.TAB)
        return False

    def shot(self, path):
        self.settle()
        self.driver.save_screenshot(path)

    def requests(self):
        """What the page has asked for, but for itself."""
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                asked.append(message["params"].get("request", message["params"])["url"])
        return [url for url in asked if not url.startswith("file://")] + \
            [url for url in asked if url.startswith("file://")][1:]

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


CONTRAST = """
const channel = (value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const parts = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return paint.getImageData(0, 0, 1, 1).data;
};
const light = (colour) => {
    const [r, g, b] = Array.from(parts(colour)).map((value) => channel(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
};
const worst = [];
for (const [theme, palette] of Object.entries(PALETTES)) {
    for (const fill of [...palette.classes.flat(), ...Object.values(CHANGES[theme]).flat()])
        worst.push([contrast(palette.text, fill), `${theme}: frame ${fill}`]);
    worst.push([contrast(palette.text, palette.match), `${theme}: match`]);
    worst.push([contrast(palette.dimText, palette.dim), `${theme}: other than a match`]);
    stacktap.setTheme(theme);
    for (const element of document.querySelectorAll('body *')) {
        if (!element.offsetParent || !Array.from(element.childNodes).some((n) => n.nodeType === 3 && n.data.trim()))
            continue;
        let back = element;
        while (back && parts(getComputedStyle(back).backgroundColor)[3] === 0)
            back = back.parentElement;
        worst.push([contrast(getComputedStyle(element).color,
            back ? getComputedStyle(back).backgroundColor : 'white'),
            `${theme}: ${element.tagName} ${element.id} ${element.className}`]);
    }
}
return worst.sort((a, b) => a[0] - b[0]).slice(0, 3).concat([[worst.length, 'looked at']]);
"""

# What is drawn at most, whatever is zoomed to: rectangles and texts, and what there is room for in the rows that are seen,
# none narrower than what is drawn.
DRAWN = """
const graph = stacktap.graph;
const layout = graph.layout;
const most = [0, 0];
for (let i = 0; i < layout.count; i += Math.ceil(layout.count / 400)) {
    graph.zoom(i, true);
    graph.part.scrollTop = i % 3 / 2 * graph.part.scrollHeight;
    graph.paint();
    most[0] = Math.max(most[0], [...graph.colours.values()].reduce((sum, boxes) => sum + boxes.length / 3, 0));
    most[1] = Math.max(most[1], graph.texts.length);
}
graph.zoom(0, true);
const rows = Math.ceil(graph.shown / ROW) + 1;
return [...most, rows * (graph.width / NARROWEST + 1), rows * (graph.width / 26 + 1)];
"""


def drawn(tap, page, what):
    boxes, texts, boxes_most, texts_most = page.run(DRAWN)
    tap.check(f"{what}: no more is drawn than a window has room for ({boxes} rectangles, {texts} texts)",
              0 < boxes <= boxes_most and 0 < texts <= texts_most, (boxes, boxes_most, texts, texts_most))


def walk(tap, page, recording, shots):
    """Everything by keyboard."""
    run = page.run
    all_samples = len(recording.samples)
    tap.same("root has all samples", run("return stacktap.graph.layout.samples[0]"), all_samples)
    tap.check("the graph is reached by Tab", page.tab_to("graph-part"))
    tap.same("focus begins at the root", run("return stacktap.graph.focus"), 0)
    page.keys(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_RIGHT)
    tap.same("arrows move the focus: up to a callee, right to its neighbour",
             run("const g = stacktap.graph; return [g.layout.level(g.focus), g.focus - g.layout.levels[2]]"), [2, 1])
    described = run("""return document.getElementById(
        document.activeElement.getAttribute('aria-activedescendant')).textContent""")
    tap.check("a screen reader is told name, share, samples, class, level", re.fullmatch(
        r".+: \d+\.\d\d % ± \d+\.\d\d, [\d,]+ samples?, .+, level 3", described), described)
    tap.same("so is who looks at the status line", page.text("status"), described)
    page.keys(Keys.ENTER)
    tap.same("Enter zooms to it", run("""const g = stacktap.graph;
        return g.left === g.layout.x[g.focus] && Math.abs(g.right - g.left - g.layout.share(g.focus)) < 1e-9"""), True)
    page.keys(Keys.BACKSPACE)
    tap.same("Backspace zooms out by one", run("const g = stacktap.graph; return g.zoomed === g.layout.parent[g.focus]"),
             True)
    page.keys(Keys.ESCAPE)
    tap.same("Escape zooms out", run("return [stacktap.graph.left, stacktap.graph.right]"), [0, 1])

    for expression in ("tree", "^main$|vfs_read", "(?:cursor|page)_", "no such function"):
        page.keys("/")
        page.keys(*expression)
        found = page.text("found")
        tap.near(f"search {expression}: the share of stacks that have it", float(found.split()[0]),
                 recording.share(expression), 0.006)
        page.keys(Keys.ENTER)
        if expression == "tree":
            tap.same("Enter goes to a match", run("const g = stacktap.graph; return g.isFound(g.focus)"), True)
            page.shot(os.path.join(shots, "search.png"))
    page.keys("/")
    page.keys(*"a(")
    tap.check("what is no regular expression is plain text", "plain text" in page.text("found"), page.text("found"))
    page.keys(Keys.ESCAPE)
    tap.same("Escape ends the search", page.text("found"), "")

    page.keys("?")
    tap.same("? opens the help", run("return document.getElementById('keys').open"), True)
    page.shot(os.path.join(shots, "help.png"))
    page.keys(Keys.ESCAPE)
    tap.same("Escape closes it", run("return document.getElementById('keys').open"), False)

    page.keys("i")
    tap.same("i: icicle", run("return stacktap.graph.isFlame"), False)
    page.shot(os.path.join(shots, "icicle.png"))
    page.keys("i", "r")
    tops = run("""const l = stacktap.graph.layout; const tops = [];
        for (let i = l.firstChild[0]; i < Math.min(l.childEnd[0], l.firstChild[0] + 25); i++)
            tops.push([l.name(i, stacktap.profile), stacktap.profile.files[l.func[i]], l.samples[i]]);
        return tops""")
    sums = {}
    for name, _, samples in run("""const l = stacktap.graph.layout; const all = [];
            for (let i = l.firstChild[0]; i < l.childEnd[0]; i++)
                all.push([l.name(i, stacktap.profile), '', l.samples[i]]);
            return all"""):
        sums[name] = sums.get(name, 0) + samples
    tap.same("r: callers begin with what ran, and as much of it",
             {name: sums[name] for name, *_ in tops}, {name: recording.self_of(name) for name, *_ in tops})
    tap.same("all of it", sum(sums.values()), all_samples)
    page.shot(os.path.join(shots, "callers.png"))
    page.keys("r")

    page.keys("3")
    tap.same("3: functions", run("return document.getElementById('panel-functions').hidden"), False)
    row = run("""return Array.from(document.querySelector('#panel-functions .body [aria-selected=true]').children)
        .map((cell) => cell.textContent)""")
    tap.same("the first of them has the most of its own", run("""const l = stacktap.functionList;
        return l.order.every((f) => l.table.selfSamples[f] <= l.table.selfSamples[l.order[0]])"""), True)
    by_name = {}
    for name, self_samples, samples in run("""const l = stacktap.functionList;
            return l.order.map((f) => [stacktap.profile.names[f], l.table.selfSamples[f], l.table.samples[f]])"""):
        by_name.setdefault(name, []).append((self_samples, samples))
    alone = [name for name, rows in by_name.items() if len(rows) == 1][:40]
    tap.same("self and total of 40 functions, recursion counted once", {name: by_name[name][0] for name in alone},
             {name: (recording.self_of(name), recording.total_of(name)) for name in alone})
    page.shot(os.path.join(shots, "functions.png"))
    page.keys(Keys.ENTER)
    head = page.text("sandwich-text")
    tap.check("Enter: a sandwich of it, with its own share", head.startswith(row[4]) and
              f" {row[0]} self;" in head, (head, row))
    tap.same("its callers and callees have the same root",
             run("return [stacktap.callers.layout.samples[0], stacktap.graph.layout.samples[0]]"),
             [by_name[row[4]][0][1]] * 2 if len(by_name[row[4]]) == 1 else
             run("return Array(2).fill(stacktap.graph.layout.samples[0])"))
    page.shot(os.path.join(shots, "sandwich.png"))
    page.keys(Keys.ESCAPE)
    tap.same("Escape closes the sandwich", run("return stacktap.inSandwich"), -1)
    page.keys("2", Keys.ARROW_DOWN)
    rows = run("return stacktap.treeList.rows.length")
    page.keys(Keys.ARROW_LEFT)
    tap.check("2: the call tree; left closes a row", run("return stacktap.treeList.rows.length") < rows)
    page.keys(Keys.ARROW_RIGHT)
    tap.same("right opens it", run("return stacktap.treeList.rows.length"), rows)
    page.shot(os.path.join(shots, "tree.png"))
    page.keys("1")


def narrow(tap, page, shots):
    """A window as wide as a telephone: names are seen without scrolling."""
    size = page.driver.get_window_size()
    page.driver.set_window_size(420, 900)
    page.settle()
    page.shot(os.path.join(shots, "narrow.png"))
    page.keys("3")
    page.settle()
    page.shot(os.path.join(shots, "narrow-functions.png"))
    inside = page.run("""const name = document.querySelector('#panel-functions .body .name').getBoundingClientRect();
        return [name.left, name.right, innerWidth, document.documentElement.scrollWidth]""")
    tap.check("a narrow window has names beside shares", inside[1] - inside[0] >= 120 and inside[1] <= inside[2] and
              inside[3] <= inside[2], inside)
    page.keys("1")
    page.driver.set_window_size(size["width"], size["height"])
    page.settle()


def times(tap, page, recording, shots):
    run = page.run
    page.run("document.activeElement.blur()")
    tap.check("the time axis is reached by Tab", page.tab_to("heat"))
    page.keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    page.shift(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    first, last, origin, width = run("""const s = stacktap;
        return [s.filter.from, s.filter.to, s.profile.origin, s.profile.width]""")
    tap.check("a range is selected by Shift and arrows", 0 < first < last, (first, last))
    start = round(origin * 1e6)
    # a double has microseconds of a date
    start = round(start / 1e6) * 10 ** 6
    tap.same("the graph has the samples of that time", run("return stacktap.graph.layout.samples[0]"),
             recording.between(start + round(first * width * 1e6), start + round(last * width * 1e6)))
    page.shot(os.path.join(shots, "time.png"))
    page.keys(Keys.ESCAPE)
    tap.same("Escape takes all times", run("return stacktap.graph.layout.samples[0]"), len(recording.samples))
    heat = page.driver.find_element("id", "heat")
    ActionChains(page.driver).move_to_element_with_offset(heat, -300, 0).click_and_hold() \
        .move_by_offset(150, 10).release().perform()
    page.settle()
    first, last = run("return [stacktap.filter.from, stacktap.filter.to]")
    tap.same("dragged over it: the same", run("return stacktap.graph.layout.samples[0]"),
             recording.between(start + round(first * width * 1e6), start + round(last * width * 1e6)))
    tap.check("the range is told", page.text("heat-text").startswith("Time: "), page.text("heat-text"))
    ActionChains(page.driver).move_to_element_with_offset(heat, 100, 0).perform()
    cell = run("return [document.getElementById('tooltip').hidden, document.getElementById('tooltip').textContent, stacktap.heat.most]")
    told = re.fullmatch(r"([\d.]+) s(\d+) samples?", cell[1])
    tap.check("a cell tells its time and samples", not cell[0] and told and int(told[2]) <= cell[2] and int(told[2]) == run(
        "const h = stacktap.heat; return h.counts[(arguments[0] * 1000 / h.profile.width - h.first) / h.step]", float(told[1])), cell)
    ActionChains(page.driver).move_to_element(page.driver.find_element("id", "title")).perform()
    tap.same("while it is pointed to", run("return document.getElementById('tooltip').hidden"), True)
    run("document.getElementById('heat-clear').click()")
    page.settle()
    tap.same("and can be taken back", run("return stacktap.graph.layout.samples[0]"), len(recording.samples))


def write_hour(path):
    """A sample a second for an hour; half an hour in, one function for 4 ms and another one for the next 4, a sample each 0.1 ms."""
    builder, start = make_sample.Builder(), 1_790_000_000_000_000_000
    frames = [builder.location(name, 0x1000 + 16 * i) for i, name in enumerate(("steady", "first", "second"))]
    burst = start + 1_800_500_000_000
    times = [range(start, start + 3_600_000_000_000, 10**9), range(burst, burst + 4_000_000, 100_000),
             range(burst + 4_000_000, burst + 8_000_000, 100_000)]
    thread = builder.attributes(thread__id=7, thread__name="x")
    builder.resource([wire.Message("Profile", sample_type=builder.value_type("samples", "count"), time_unix_nano=start,
                                   samples=[make_sample.sample(builder.stack(frame), thread, at) for frame, at in zip(frames, times)],
                                   duration_nano=3_600_000_000_000, period=10**7, profile_id=bytes([1]) * 16,
                                   period_type=builder.value_type("cpu", "nanoseconds"))], process__pid=7, process__executable__name="x")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def hour(tap, stacktap, work, shots):
    """A cell of an hour is a second, and finer where it is zoomed in to."""
    path, page_path = os.path.join(work, "hour.otlp"), os.path.join(work, "hour.html")
    write_hour(path)
    subprocess.run([stacktap, "flamegraph", "-o", page_path, path], check=True)
    with Page(page_path) as page:
        zoom(tap, page, shots)


def bursts(tap, stacktap, work, shots):
    """In fewer than 8 of 40 slices of the time no error is known, as in report."""
    path, page_path = os.path.join(work, "page_bursts.otlp"), os.path.join(work, "bursts.html")
    for count in (7, 8):
        report.write_bursts(path, count, 0)
        subprocess.run([stacktap, "flamegraph", "-o", page_path, path], check=True)
        with Page(page_path) as page:
            root, half = page.run("return [0, 1].map((i) => stacktap.describe(stacktap.graph, i))")
            tap.check(f"{count} bursts: a share has {'an' if count == 8 else 'no'} error", ("50.00 % ± " in half) == (count == 8) and
                      "50.00 %" in half, half)
            tap.check("all of it has none", "100.00 %" in root and "±" not in root, root)


# {function and those below it in the layout, the outermost first: [share, error or -1]}
FRAMES = """
const layout = stacktap.graph.layout, found = {};
for (let i = 1; i < layout.count; i++) {
    const path = [];
    for (let n = i; n > 0; n = layout.parent[n])
        path.unshift(layout.name(n, stacktap.profile));
    const parts = /^([0-9.]+) %(?: ± ([0-9.]+))?/.exec(stacktap.frameText(layout, i, arguments[0]));
    found[path.join(' ')] = [+parts[1], parts[2] === undefined ? -1 : +parts[2]];
}
return found;
"""


def write_unequal(path):
    """A minute of waits of 1 and of 100, ten of a stack at a time, so that those of one cell differ."""
    builder, start, pick = make_sample.Builder(), 1_790_000_000_000_000_000, random.Random(5)
    thread = builder.attributes(thread__id=7, thread__name="x")
    leafs = {"often": [], **{f"rarely_{i}": [] for i in range(8)}}
    for burst in range(1000):
        name = "often" if pick.random() < 0.98 else f"rarely_{pick.randrange(8)}"
        leafs[name] += [(start + burst * 60_000_000 + i * 1000, 100 if pick.random() < 0.1 else 1) for i in range(10)]
    main = builder.location("main", 0x1000)
    samples = [make_sample.sample(builder.stack(builder.location(name, 0x2000 + 16 * i), main), thread, *zip(*seen))
               for i, (name, seen) in enumerate(leafs.items()) if seen]
    builder.resource([wire.Message("Profile", sample_type=builder.value_type("wait", "nanoseconds"), samples=samples,
                                   time_unix_nano=start, duration_nano=60_000_000_000, profile_id=bytes([1]) * 16)],
                     process__pid=7, process__executable__name="x")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def write_windows(path, count):
    """So many windows, of each of which only the sums are known; some functions run in every fourth."""
    builder, start = make_sample.Builder(), 1_790_000_000_000_000_000
    thread = builder.attributes(thread__id=7, thread__name="x")
    stacks = [builder.stack(builder.location(f"step_{i}", 0x1000 + 16 * i)) for i in range(8)]
    builder.resource([wire.Message("Profile", sample_type=builder.value_type("samples", "count"), period=10**7,
                                   period_type=builder.value_type("cpu", "nanoseconds"), duration_nano=10**10,
                                   time_unix_nano=start + window * 10**10, profile_id=bytes([window + 1]) * 16,
                                   samples=[make_sample.sample(stack, thread, (), (100 if i % 4 == window % 4 else 10 + i,))
                                            for i, stack in enumerate(stacks)]) for window in range(count)],
                     process__pid=7, process__executable__name="x")
    with open(path, "wb") as file:
        file.write(wire.frame(make_sample.encode(builder.data)))


def errors(tap, stacktap, work, shots):
    """± of the page is that of `report` of the same samples, whatever of them is shown."""
    path, page_path = os.path.join(work, "page_errors.otlp"), os.path.join(work, "errors.html")

    def ask(*options):
        return json.loads(subprocess.run([stacktap, "report", "--json", *options, path], check=True, capture_output=True, text=True).stdout)

    def nodes(key, *options):
        found, names = {}, {}
        for node in ask("--percent-limit", "0", *options)["nodes"]:
            names[node["node"]] = names.get(node["parent"], ()) + (node["name"],)
            found[" ".join(names[node["node"]])] = [node[f"{key}_percent"], node.get("error95" if key == "total" else "self_error95", -1)]
        return found

    def alike(text, have, want, least=0.05):
        """Times of the page are rounded, to the millisecond here."""
        wrong = [(name, have[name], want[name]) for name in set(have) & set(want) if abs(have[name][0] - want[name][0]) > 0.006 or
                 abs(have[name][1] - want[name][1]) > max(least * want[name][1], 0.011)]
        known = sum(error > 0 for _, error in have.values())
        tap.check(f"{text}: the error is that of report ({known} are known)", set(have) == set(want) and known > 3 and not wrong,
                  (sorted(set(have) ^ set(want))[:4], wrong[:8]))
    with open(path, "wb") as file:
        file.write(diff.recording(7, samples=20000))
    subprocess.run([stacktap, "flamegraph", "-o", page_path, path], check=True)
    with Page(page_path) as page:
        alike("call paths", page.run(FRAMES, False), nodes("total", "--tree"))
        alike("of their own", page.run(FRAMES, True), nodes("self", "--tree"))
        page.keys("3")
        rows = page.run("""const l = stacktap.functionList; return l.order.map((f) =>
            [stacktap.profile.names[f], ...[true, false].map((isSelf) => stacktap.functionText(l.table, f, isSelf))])""")
        want = {row["name"]: row for row in ask("--by", "function")["rows"]}
        for column, key in ((1, "self"), (2, "total")):
            have = {row[0]: [*map(float, row[column].replace(" %", "").split(" ± ")), -1][:2] for row in rows}
            alike(f"functions, {key}", have, {name: [row[key]["percent"], row[key].get("error95", -1)] for name, row in want.items()})
        tap.check("it is shown", " ± " in page.run("return document.querySelector('#panel-functions .body .number').textContent"))
        page.keys("2")
        shown = page.run("return document.querySelector('#panel-tree .body [aria-level=\"3\"] .number').textContent")
        tap.check("in the call tree, too", re.fullmatch(r"\d+\.\d\d % ± \d+\.\d\d", shown), shown)
        page.keys("1", "r")
        alike("callers", page.run(FRAMES, False), nodes("total", "--callers"))
        page.keys("r", "/", *diff.PLANTED)
        found = page.text("found")
        row = want[diff.PLANTED]["total"]
        tap.check("what a search found", found.startswith(f"{row['percent']:.2f} % ± ") and
                  abs(float(found.split()[3]) / row["error95"] - 1) < 0.05, (found, row))
        for is_final in (False, True):
            page.run("stacktap.heat.take(100, 2000, arguments[0])", is_final)
            page.settle()
            tap.same(f"{'when it is chosen' if is_final else 'while time is dragged'}: slices and an error",
                     [page.run("return stacktap.sums.slices !== undefined"), " ± " in page.text("found")], [is_final] * 2)
        page.run("stacktap.heat.clear()")
        page.keys(Keys.ESCAPE)
        # from 10 s on for 20 s, of a minute
        page.run("""const heat = stacktap.heat, second = 1000 / stacktap.profile.width / heat.step;
            heat.take(Math.round(10 * second), Math.round(30 * second), true)""")
        page.settle()
        begin, end = page.run("""const s = stacktap; return [s.filter.from, s.filter.to].map((at) =>
            s.profile.origin + at * s.profile.width - s.profile.start)""")
        part = nodes("total", "--tree", "--from", f"{begin / 1000:.6f}", "--to", f"{end / 1000:.6f}")
        alike("a selected time", page.run(FRAMES, False), part, 0.08)
        page.run("stacktap.sandwich(stacktap.profile.names.indexOf(arguments[0]))", "loop_1")
        said = page.run("return [stacktap.callers, stacktap.graph].map((graph) => stacktap.frameText(graph.layout, 0, false))")
        by = {row["name"]: row["total"] for row in ask("--by", "function", "--from", f"{begin / 1000:.6f}", "--to", f"{end / 1000:.6f}")["rows"]}
        tap.check("a sandwich in it", all(abs(float(text.split()[3]) / by["loop_1"]["error95"] - 1) < 0.08 for text in said), (said, by["loop_1"]))
        tap.check("it is larger than that of all of the time", sum(part[name][1] > error for name, (_, error) in
                                                                    nodes("total", "--tree").items() if name in part and error > 0) > 3, part)
        tap.same("errors: nothing on the console", page.complaints(), [])
    report.write_bursts(path, 3, 6000)
    subprocess.run([stacktap, "flamegraph", "-o", page_path, path], check=True)
    with Page(page_path) as page:
        page.run("""const split = document.getElementById('split'); split.value = 'process'; split.dispatchEvent(new Event('change'))""")
        have = {name.split()[0]: shares for name, shares in page.run(FRAMES, False).items() if name.endswith(")")}
        want = {row["process"]: row["total"] for row in ask("--by", "process")["rows"]}
        tap.check("a process that comes in bursts", all(abs(have[name][0] - row["percent"]) < 0.006 and
                  abs(have[name][1] / row["error95"] - 1) < 0.05 and row["phi"] > 20 for name, row in want.items()) and len(have) == 2, (have, want))
    for text, write in (("weights of 1 and 100", write_unequal), ("4 windows without times", lambda path: write_windows(path, 4)),
                        ("20 of them", lambda path: write_windows(path, 20))):
        write(path)
        subprocess.run([stacktap, "flamegraph", "-o", page_path, path], check=True)
        with Page(page_path) as page:
            alike(text, page.run(FRAMES, False), nodes("total", "--tree"))


def zoom(tap, page, shots):
    run = page.run

    def cell():
        return run("return stacktap.heat.step * stacktap.profile.width")

    def shown():
        return run("return [stacktap.heat.first, stacktap.heat.last]")

    def around(seconds):
        """Select this long around the burst, in cells as they are."""
        run(f"""const heat = stacktap.heat, at = (1800.504 - {seconds} / 2) * 1000 / stacktap.profile.width;
            heat.take(Math.floor((at - heat.first) / heat.step),
                Math.ceil((at + {seconds} * 1000 / stacktap.profile.width - heat.first) / heat.step), true)""")
        page.settle()
    tap.same("a cell of an hour is a second", cell(), 1000)
    tap.check("which says so", "a cell 1 s" in page.text("heat-text"), page.text("heat-text"))
    tap.check("there is nothing to zoom in to", page.run("return document.getElementById('heat-in').hidden"))
    around(60)
    samples = run("return stacktap.graph.layout.samples[0]")
    tap.check("a minute is selected", 138 <= samples <= 144, samples)
    run("document.getElementById('heat-in').click()")
    page.settle()
    tap.check("zoomed in to, its cells are finer", cell() <= 20, cell())
    tap.same("it is all that is shown, and still selected", shown(), run("return [stacktap.filter.from, stacktap.filter.to]"))
    tap.same("the graph has the same samples", run("return stacktap.graph.layout.samples[0]"), samples)
    tap.check("the head is of its time", ":30 min to 30:3" in page.text("heat-text"), page.text("heat-text"))
    around(0.2)
    page.run("document.activeElement.blur()")
    page.tab_to("heat")
    page.keys("+")
    tap.same("+ zooms in to a fifth of a second: cells of 2 ms", cell(), 2)
    counts = run("return Array.from(stacktap.heat.counts)")
    tap.same("which tell two functions of 4 ms apart", [count for count in counts if count], [20] * 4)
    page.shot(os.path.join(shots, "hour.png"))
    first = next(i for i, count in enumerate(counts) if count)
    run(f"stacktap.heat.take({first}, {first + 1}, true)")
    page.settle()
    names = run("return stacktap.profile.names.filter((_, f) => stacktap.sums.samples.some((n, i) => n && stacktap.profile.func[i] === f))")
    tap.same("a range of 4 ms has the first one alone", [names, run("return stacktap.graph.layout.samples[0]")], [["first"], 40])
    tap.check("it is told to the millisecond", page.text("heat-text").startswith("Time: 30:00.5 min to 30:00.504 min; "), page.text("heat-text"))
    page.keys("-", "-")
    tap.same("- zooms out again", [cell(), shown()], [1000, [0, run("return stacktap.profile.buckets")]])
    tap.same("and the range stays", run("return stacktap.graph.layout.samples[0]"), 40)
    page.keys(Keys.ESCAPE)
    tap.same("Escape takes all times", run("return [stacktap.graph.layout.samples[0], stacktap.heat.isZoomed]"), [3680, False])
    around(60)
    run("document.getElementById('heat-in').click()")
    run("document.getElementById('heat-clear').click()")
    page.settle()
    tap.same("as does its button, when zoomed in", [cell(), *run("return [stacktap.graph.layout.samples[0], stacktap.heat.isZoomed]")], [1000, 3680, False])


def parts(tap, page, recording):
    counts = {}
    for _, thread, *_ in recording.samples:
        counts[thread] = counts.get(thread, 0) + 1
    page.run("""const split = document.getElementById('split'); split.value = 'thread';
        split.dispatchEvent(new Event('change'))""")
    page.settle()
    have = page.run("""const l = stacktap.graph.layout; const parts = {};
        for (let i = l.firstChild[0]; i < l.childEnd[0]; i++)
            parts[l.name(i, stacktap.profile)] = l.samples[i];
        return parts""")
    tap.same("split by thread: names and samples", have, counts)
    name = max(counts, key=counts.get)
    page.run("""const only = document.getElementById('only'); only.selectedIndex = 1;
        only.dispatchEvent(new Event('change'))""")
    tap.same("one of them alone", page.run("""const l = stacktap.graph.layout;
        return [l.samples[0], l.name(1, stacktap.profile)]"""), [counts[name], name])
    page.run("""const split = document.getElementById('split'); split.value = 'none';
        split.dispatchEvent(new Event('change'))""")
    tap.same("back to all", page.run("return stacktap.graph.layout.samples[0]"), len(recording.samples))
    folded = page.run("return stacktap.folded()")
    tap.same("as text: all samples", sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()),
             len(recording.samples))


def split_by_cgroup(tap, page):
    shown = page.run("""const split = document.getElementById('split'); split.value = 'cgroup';
        split.dispatchEvent(new Event('change'));
        const l = stacktap.graph.layout; const parts = {};
        for (let i = l.firstChild[0]; i < l.childEnd[0]; i++)
            parts[l.name(i, stacktap.profile)] = l.samples[i];
        split.value = 'none'; split.dispatchEvent(new Event('change'));
        return [parts, l.samples[0]]""")
    tap.same("split by cgroup: its paths, and one part without", set(shown[0]),
             {f"/system.slice/{name}.service" for name in ("frontend", "orders", "database")} | {"[no cgroup]"})
    tap.same("of all samples", sum(shown[0].values()), shown[1])


def copied(tap, page, recording):
    """The c key, and what is on the clipboard then; where a page may not, by hand."""
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.keys(Keys.ESCAPE, "c")
    page.wait("return document.getElementById('text').open || /Copied/.test(document.getElementById('status').textContent)")
    text = page.driver.execute_async_script("""const done = arguments[0], dialog = document.getElementById('text');
        if (dialog.open)
            done(dialog.querySelector('textarea').value);
        else
            navigator.clipboard.readText().then(done, (error) => done(String(error)));""")
    tap.same("c copies folded stacks, all samples of them",
             sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line[-1:].isdigit()), len(recording.samples))
    page.keys(Keys.ESCAPE)


def printed(tap, page):
    """What the browser prints: light, whatever the screen is, and paper of it."""
    page.run("""stacktap.setTheme('dark'); window.seen = [];
        for (const name of ['beforeprint', 'afterprint'])
            window.addEventListener(name, () => window.seen.push(name, document.documentElement.dataset.theme));""")
    pdf = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    page.settle()
    tap.same("printed: light on paper, dark again behind it", page.run("return window.seen"),
             ["beforeprint", "light", "afterprint", "dark"])
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    tap.check(f"a PDF with something on it ({sheets} pages, {len(pdf)} bytes)",
              pdf.startswith(b"%PDF") and sheets >= 1 and len(pdf) > 20000, pdf[:20])
    page.run("stacktap.setTheme('light')")


def busy(tap, stacktap, work, shots):
    page_path = os.path.join(work, "busy.html")
    recording = Recording(os.path.join(work, "busy.otlp"))
    subprocess.run([stacktap, "flamegraph", "-o", page_path, os.path.join(work, "busy.otlp")], check=True)
    with Page(page_path) as page:
        print(f"# 50,000 nodes: loaded in {page.run('return stacktap.readyTime'):.0f} ms, "
              f"{page.run('return stacktap.loadTime'):.0f} ms of them to prepare and draw")
        page.shot(os.path.join(shots, "light.png"))
        drawn(tap, page, "50,000 nodes")
        walk(tap, page, recording, shots)
        times(tap, page, recording, shots)
        parts(tap, page, recording)
        split_by_cgroup(tap, page)
        copied(tap, page, recording)
        printed(tap, page)
        narrow(tap, page, shots)
        *worst, looked_at = page.run(CONTRAST)
        tap.check(f"contrast of text is 4.5 at least, in both themes ({looked_at[0]} looked at)", worst[0][0] >= 4.5,
                  worst)
        page.run("stacktap.beforePrint()")
        tap.same("print: light", page.run("return document.documentElement.dataset.theme"), "light")
        page.run("stacktap.afterPrint()")
        tap.same("no request was made", page.requests(), [])
        tap.same("nothing on the console", page.complaints(), [])
    with Page(page_path, "dark") as page:
        tap.same("dark where the system is", page.run("return document.documentElement.dataset.theme"), "dark")
        page.shot(os.path.join(shots, "dark.png"))
        page.keys("d")
        tap.same("d: light", page.run("return document.documentElement.dataset.theme"), "light")


def hostile(tap, stacktap, work, shots):
    page_path = os.path.join(work, "hostile.html")
    title = "</title><script>window.pwned = 1</script>\u2028"
    subprocess.run([stacktap, "flamegraph", "--title", title, "-o", page_path, os.path.join(work, "hostile.otlp")],
                   check=True)
    with Page(page_path) as page:
        names = page.run("return stacktap.profile.names")
        for part in ("</script><script>window.pwned = 1</script>", "__proto__", "line\u2028window.pwned = 1\u2029"):
            tap.check(f"hostile name is there: {part[:12]!r}", part in names)
        page.keys("3")
        page.run("stacktap.functionGrid.source.sort('name', true); stacktap.functionGrid.fill()")
        page.run("""for (const graph of [stacktap.graph])
            for (let i = 0; i < graph.layout.count; i += 7)
                stacktap.fillTooltip(graph, i)""")
        page.keys("/")
        page.keys(*"script|img|proto", Keys.ENTER, "1")
        page.shot(os.path.join(shots, "hostile.png"))
        tap.same("title is text", page.driver.title, title)
        tap.same("no name was run", page.run("return typeof window.pwned"), "undefined")
        tap.same("no name became an element",
                 page.run("return document.querySelectorAll('img, svg, iframe, body script').length"), 1)
        tap.same("hostile names: no request", page.requests(), [])
        tap.same("hostile names: nothing on the console", page.complaints(), [])
        page.run("""const script = document.createElement('script'); script.textContent = 'window.pwned = 2';
            document.body.append(script); const image = new Image(); image.src = 'http://127.0.0.1:9/x.png';
            document.body.append(image);""")
        time.sleep(0.3)
        tap.same("the policy runs no other script", page.run("return typeof window.pwned"), "undefined")
        tap.check("and says so of script and image", len(page.complaints()) >= 2)


def deep(tap, stacktap, work, shots):
    """One stack of 100,000 frames, half of them the same function; and values that are no counts of samples."""
    builder = make_sample.Builder()
    names = [builder.location(f"f{number}", 0x1000 + number) for number in range(50)]
    stack = builder.stack(*(names[number % 50 if number % 2 else 7] for number in range(100000)))
    builder.resource([wire.Message(
        "Profile", sample_type=builder.value_type("off_cpu", "nanoseconds"), time_unix_nano=1, duration_nano=2,
        samples=[make_sample.sample(stack, (), (1, 2), (1500, 2500)), make_sample.sample(builder.stack(names[3]), (), (1,), (12000,))])],
        process__pid=1, process__executable__name="deep")
    source, page_path = os.path.join(work, "deep.otlp"), os.path.join(work, "deep.html")
    with open(source, "wb") as file:
        file.write(make_sample.encode(builder.data))
    subprocess.run([stacktap, "flamegraph", "-o", page_path, source], check=True)
    with Page(page_path) as page:
        tap.same("a stack of 100,000 frames: all levels, weights", page.run("""const l = stacktap.graph.layout;
            return [l.depth, l.weight[0], l.weight[1], l.samples[1]]"""), [100001, 16000, 12000, 1])
        page.keys("/")
        page.keys(*"^f7$", Keys.ENTER)
        tap.check("its share is by weight, and once", page.text("found").startswith("25.00 %"), page.text("found"))
        page.keys("r")
        tap.same("callers of it", page.run("const l = stacktap.graph.layout; return [l.depth, l.weight[0]]"),
                 [100001, 16000])
        page.keys("r", "2", Keys.ARROW_DOWN, Keys.ARROW_DOWN, "3", Keys.ENTER)
        tap.same("the sandwich of the function with most of its own",
                 page.run("return [stacktap.profile.names[stacktap.inSandwich], stacktap.graph.layout.weight[0]]"),
                 ["f3", 16000])
        page.shot(os.path.join(shots, "deep.png"))
        tap.same("a deep stack: nothing on the console", page.complaints(), [])


# Of each row of a table of changes: name, is it coloured as one, is it grey, the texts of its changes.
CHANGED_ROWS = """
const list = stacktap[arguments[0]], grid = arguments[0] === 'treeList' ? stacktap.treeGrid : stacktap.functionGrid, found = [];
for (let i = 0; i < list.count(); i++) {
    const row = grid.row(i), cells = Array.from(row.children).map((cell) => cell.lastChild.textContent);
    const colour = list.colour(i, 'light');
    found.push([cells[cells.length - 2], CHANGES.light.grew.includes(colour) ? 'grew' : CHANGES.light.shrank.includes(colour) ?
        'shrank' : 'same', row.classList.contains('same'), ...cells.slice(2, -2)]);
}
return found;
"""


def changed_row(total, alone=None):
    """The same of diff's."""
    def text(change):
        points = re.sub(r"^[+-]0\.00$", "0.00", f"{change['change']:+.2f}")
        return points + (f" ± {change['error95']:.2f}" if change["verdict"] != "few" and change["error95"] > 0 else "")
    verdicts = {change["verdict"] for change in (total, alone) if change}
    return [total["verdict"].replace("few", "same"), not verdicts & {"grew", "shrank"}, text(total)] + ([text(alone)] if alone else [])


def shape(tap, page):
    """What a graph of few levels and a small window leave room for."""
    top = page.run("const g = stacktap.graph; return [g.y(g.layout.depth - 1), g.y(0), g.shown]")
    tap.check("a graph of few levels begins at the top", 0 < top[0] < 60 and top[1] < top[2] / 2, top)
    page.run("""document.getElementById('split').value = 'process'; document.getElementById('split').dispatchEvent(new Event('change'))""")
    tap.same("its root stays where it is when it is split", page.run("return stacktap.graph.y(0)"), top[1])
    page.run("""document.getElementById('split').value = 'none'; document.getElementById('split').dispatchEvent(new Event('change'))""")
    places = "return Array.from(document.querySelectorAll('#tools > button, #tools select')).map((e) => e.getBoundingClientRect().x)"
    before = page.run(places)
    page.keys("3")
    tap.same("what is chosen moves nothing", page.run(places), before)
    page.keys("1")


def changes(tap, stacktap, work, shots):
    """Two recordings: a function that the second one has no more is still there, what is not significant is grey."""
    before, after, page_path = (os.path.join(work, name) for name in ("before.otlp", "after.otlp", "changes.html"))
    for path, seed, planted in ((before, 1, 0.12), (after, 2, 0)):
        with open(path, "wb") as file:
            file.write(diff.recording(seed, planted, samples=30000, stays=0.5))
    subprocess.run([stacktap, "flamegraph", "--diff", before, "-o", page_path, after], check=True)
    said = json.loads(subprocess.run([stacktap, "diff", "--json", "--all", before, after], check=True, capture_output=True,
                                     text=True).stdout)
    want = {tuple(path["stack"]): path["total"] for path in said["paths"]}
    find = """const l = stacktap.graph.layout, g = stacktap.graph, found = [];
        for (let i = 1; i < l.count; i++) {
            const stack = [];
            for (let n = i; n > 0; n = l.parent[n])
                stack.unshift(l.name(n, stacktap.profile));
            found.push([stack, l.weight[i], l.change[i], l.verdict[i], g.shade(i), stacktap.describe(g, i)]);
        }
        return found;"""
    with Page(page_path) as page:
        frames = {tuple(stack): rest for stack, *rest in page.run(find)}
        tap.same("all paths are drawn", set(frames) >= set(want), True)
        wrong = [path for path, total in want.items()
                 if abs(100 * frames[path][1] - total["change"]) > 0.01 or
                 abs(200 * frames[path][0] - total["before_percent"] - total["after_percent"]) > 0.01 or
                 ["few", "same", "grew", "shrank"][frames[path][2]] != total["verdict"]]
        tap.same("widths, changes and verdicts are diff's", wrong, [])
        gone = frames["main", "loop_0", diff.PLANTED]
        tap.check("what vanished is drawn, and told", "vanished" in gone[4] and abs(gone[0] - 0.06) < 0.01, gone)
        tap.same("it is blue", gone[3], page.run("return CHANGES.light.shrank[3]"))
        same = [rest for path, rest in frames.items() if rest[2] == 1]
        tap.check("what is not significant is grey", same and all(rest[3] == "#ececf0" for rest in same), same)
        tap.check("the line below the title", "30,000 samples before, 30,000 samples after" in page.text("facts"), page.text("facts"))
        shape(tap, page)
        page.shot(os.path.join(shots, "changes.png"))
        page.keys("3")
        tap.same("the function with the largest change is the first or the last", page.run(
            "const l = stacktap.functionList; return stacktap.profile.names[l.order[l.order.length - 1]]"), diff.PLANTED)
        page.shot(os.path.join(shots, "changes-functions.png"))
        rows = page.run(CHANGED_ROWS, "functionList")
        tap.same("rows of functions have the changes, the errors and the verdicts of diff", [
            name for name, *have in rows if name in (one := {row["name"]: row for row in said["rows"]}) and
            have != changed_row(one[name]["total"], one[name]["self"])], [])
        tap.check("rows of either verdict, and of neither", len({row[1] for row in rows}) == 3 and len(rows) > 30, rows[:3])
        page.keys("2")
        width = page.run("""const name = document.querySelector('#panel-tree .body .name');
            return [name.clientWidth, document.getElementById('panel-tree').clientWidth]""")
        tap.check("names have the widest column of the call tree", 3 * width[0] > width[1], width)
        want_rows = {path["stack"][-1]: path["total"] for path in said["paths"] if len(path["stack"]) == 2}
        tap.same("so have those of the call tree", [
            row for row in page.run(CHANGED_ROWS, "treeList")
            if row[0] in want_rows and row[1:4:2] != changed_row(want_rows[row[0]])[:3:2]], [])
        page.keys("3")
        page.keys("1", "r")
        callers = page.run(find)
        tap.same("callers have changes, too", [round(rest[1], 9) for stack, *rest in callers if stack == [diff.PLANTED]],
                 [round(gone[1], 9)])
        page.run("document.getElementById('split').value = 'process'; "
                 "document.getElementById('split').dispatchEvent(new Event('change'))")
        page.keys("r")
        split = {tuple(stack): rest for stack, *rest in page.run(find)}
        tap.check("a process of both is one part", abs(split["program", "main", "loop_0", diff.PLANTED][1] - gone[1]) < 1e-9,
                  list(split)[:3])
        page.keys("d")
        page.shot(os.path.join(shots, "changes-dark.png"))
        tap.same("changes: nothing on the console", page.complaints(), [])
        tap.same("changes: no requests", page.requests(), [])
    picture = subprocess.run([stacktap, "flamegraph", "--svg", "--diff", before, "-o", "-", after], check=True,
                             capture_output=True, text=True).stdout
    titles = re.findall(r"<title>([^<]*)</title><rect[^>]*fill=\"(#[0-9a-f]+)\"([^>]*)>", picture)
    gone = [each for each in titles if each[0].startswith(diff.PLANTED)]
    tap.check("the picture has what vanished, blue and dashed", len(gone) == 1 and gone[0][1] == "#6a96e6" and
              "stroke-dasharray" in gone[0][2] and ", vanished" in gone[0][0], gone)


def large(tap, stacktap, work, shots):
    page_path = os.path.join(work, "large.html")
    source = os.path.join(work, "large.otlp")
    end = time.monotonic() + 120
    while not os.path.exists(source) and time.monotonic() < end:
        time.sleep(0.2)
    said = subprocess.run([stacktap, "flamegraph", "-o", page_path, source], check=True, capture_output=True,
                          text=True).stderr
    with Page(page_path) as page:
        count = page.run("return stacktap.graph.layout.count")
        tap.check("a million nodes open", count > 900000 and f"{count} nodes" in said, (count, said))
        print(f"# {count} nodes: loaded in {page.run('return stacktap.readyTime'):.0f} ms, painted in "
              f"{page.run('return stacktap.graph.paintTime'):.1f} ms")
        page.shot(os.path.join(shots, "large.png"))
        drawn(tap, page, "a million nodes")
        tap.same("a million nodes: nothing on the console", page.complaints(), [])


def main():
    stacktap, work = sys.argv[1:3]
    shots = os.path.join(work, "shots")
    os.makedirs(shots, exist_ok=True)
    tap = Tap()
    if not webdriver:
        tap.skip("the page in a browser", "there is no selenium (tests/setup view)")
        return tap.finish()
    for part in (busy, hour, bursts, errors, hostile, deep, changes, large):
        try:
            part(tap, stacktap, work, shots)
        except Exception as error:  # a browser that ends is a failure, not the end of the test
            tap.check(f"{part.__name__} ends", False, f"{type(error).__name__}: {error}")
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

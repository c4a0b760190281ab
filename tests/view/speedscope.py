#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `stacktap convert' writes, opened by speedscope in a headless Chromium without a network, as its own command
opens a file: its threads, and its table of functions with their samples, have to be what another decoder finds in the
recording. TAP. Not in CI: it needs npm.

usage: speedscope.py STACKTAP DIRECTORY
"""

import base64
import collections
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from convert import busy_recording, convert  # noqa: E402
from page import Recording, Tap, browser  # noqa: E402

VERSION = "1.25.0"
FILES = ("busy.speedscope.json", "busy.folded", "busy.perf", "busy.pb.gz")
ROWS = """return [...document.querySelectorAll('tr')].map(
    row => [...row.querySelectorAll('td')].map(cell => cell.innerText.trim())).filter(row => row.length == 3)"""


def package(work):
    """Its page, from npm."""
    place = os.path.join(work, "speedscope")
    page = os.path.join(place, "package", "dist", "release", "index.html")
    if not os.path.exists(page):
        os.makedirs(place, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", f"speedscope@{VERSION}"], cwd=place, check=True, stdout=sys.stderr)
        subprocess.run(["tar", "-xzf", f"speedscope-{VERSION}.tgz"], cwd=place, check=True)
    return page


def number(text):
    return int(re.match(r"[\d,]+", text).group().replace(",", ""))


def tables(driver, page, path):
    """Of each function that is shown of the first profile {name: (total, self)}, and {profile: samples} if there are
    several, the first one first."""
    name = os.path.basename(path)
    with open(path, "rb") as file:
        text = base64.b64encode(file.read()).decode()
    with open(path + ".js", "w", encoding="ascii") as file:
        file.write(f"speedscope.loadFileFromBase64({json.dumps(name)}, {json.dumps(text)})")
    driver.get("about:blank")
    driver.get(f"file://{page}#localProfilePath={path}.js")
    wait = WebDriverWait(driver, 300)
    wait.until(lambda _: driver.title != "speedscope")

    def rows(*_):
        """Of functions, whose first cell is a total with a percentage, once the key for that view has been taken."""
        driver.find_element("tag name", "body").send_keys("3")
        every = driver.execute_script(ROWS)
        return any("%" in row[0] for row in every) and every

    every = wait.until(rows)
    return {name: (number(total), number(own)) for total, own, name in every if "%" in total}, \
        {name: number(samples) for first, name, samples in every if "%" not in first}


def counts(samples):
    totals, selves = collections.Counter(), collections.Counter()
    for *_, stack in samples:
        totals.update(set(stack))
        selves[stack[0]] += 1
    return totals, selves


def judge(tap, recording, name, functions, profiles):
    samples = recording.samples
    # of perf's text and of pprof it shows CPU time
    has_counts = name.endswith((".speedscope.json", ".folded"))
    if profiles:
        # "PROCESS (PID), NAME (TID)"; of perf's text "NAME pid: PID tid: TID", less for the kernel's own
        have = {re.search(r"(\d+)\)?$", profile).group(1): weight for profile, weight in profiles.items()}
        want = collections.Counter(re.search(r"(\d+)\)$", thread).group(1) for _, thread, *_ in samples)
        tap.same(f"{name}: threads{' and their samples' if has_counts else ''}", have if has_counts else sorted(have),
                 dict(want) if has_counts else sorted(want))
        samples = [sample for sample in samples if sample[1].endswith(f"({next(iter(have))})")]
    totals, selves = counts(samples)
    plain = {re.sub(r"_\[[kij]\]$", "", row): value for row, value in functions.items()}
    known = [row for row in plain if re.fullmatch(r"\w+", row) and row in totals]
    strange = [row for row in plain if re.fullmatch(r"\w+", row) and row not in totals]
    tap.check(f"{name}: functions", len(known) >= 20 and not strange, (len(known), strange[:5]))
    if has_counts:
        tap.same(f"{name}: total and self of {len(known)} functions", {row: plain[row] for row in known},
                 {row: (totals[row], selves[row]) for row in known})


def main():
    stacktap, work = sys.argv[1:]
    tap = Tap()
    source = busy_recording(work)
    page = package(work)
    recording = Recording(source)
    driver = browser("light")
    try:
        driver.set_page_load_timeout(300)
        for name in FILES:
            path = convert(stacktap, source, os.path.join(work, name))
            judge(tap, recording, name, *tables(driver, page, path))
    finally:
        driver.quit()
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `stacktap serve` answers: curl and go tool pprof ask it, a headless Chromium opens its page and drags over the
timeline. Numbers are those that another decoder finds in the recording. TAP.

usage: serve.py STACKTAP DIRECTORY
"""

import collections
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

import page  # noqa: E402

START = 1_790_000_000


class Server:
    def __init__(self, stacktap, path, *options):
        self.child = subprocess.Popen([stacktap, "serve", *options, path], stdout=subprocess.PIPE, text=True)
        self.address = self.child.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.status = self.child.wait(10)


def curl(url, *options):
    """Status and body."""
    done = subprocess.run(["curl", "-s", "--max-time", "20", "--globoff", "-w", "%{stderr}%{http_code}", *options, url],
                          capture_output=True)
    return int(done.stderr), done.stdout


def refusals(tap, server):
    address = server.address
    bare = re.sub(r"/[0-9a-f]{32}/$", "/", address)
    token = address.rstrip("/").rpartition("/")[2]
    tap.check("the address has a token", len(token) == 32 and bare != address, address)
    for text, status, url, *options in (
            ("no token", 403, bare + "timeline.json"),
            ("a wrong token", 403, bare + "0" * 32 + "/timeline.json"),
            ("the token in the query", 200, bare + "timeline.json?token=" + token),
            ("the token in a header", 200, bare + "timeline.json", "-H", "Authorization: Bearer " + token),
            ("another host's name", 403, address, "-H", "Host: rebound.example"),
            ("the other loopback name", 200, address, "-H", "Host: localhost:1"),
            ("another site's page", 403, address, "-H", "Origin: http://page.example"),
            ("a page of another port", 403, address, "-H", "Origin: http://127.0.0.1:1"),
            ("an image in another site's page", 403, address, "-H", "Sec-Fetch-Site: cross-site"),
            ("POST", 405, address, "-d", "x=1"),
            ("DELETE", 405, address, "-X", "DELETE"),
            ("a long request", 414, address + "a" * 20000),
            ("no such path", 404, address + "../../etc/passwd", "--path-as-is"),
            ("an unknown word", 400, address + "report.json?tid=1"),
            ("a pid that is a name", 400, address + "report.json?pid=java"),
            ("a pid and a process", 400, address + "report.json?pid=1&process=java"),
            ("no such pid", 404, address + "report.json?pid=1"),
            ("no time", 400, address + "report.json?from=soon"),
            ("a comparison that report does not make", 400, address + "report.json?before_from=1"),
            ("no such process", 404, address + "flamegraph?process=nobody"),
            ("no such time", 404, address + "debug/pprof/profile?from=1h")):
        have, said = curl(url, *options)
        tap.check(f"{text}: {status}", have == status and (status == 200 or said and said.count(b"\n") < 8), (have, said[:300]))
    tap.check("what is refused says why", curl(address, "-H", "Host: rebound.example")[1] ==
              b"The request's Host is not a loopback name. Use localhost or 127.0.0.1.\n")


def answers(tap, stacktap, server, recording, source, work):
    address = server.address
    timeline = json.loads(curl(address + "timeline.json")[1])
    want = collections.Counter((moment * 1000 - timeline["origin_unix_nano"]) // timeline["bucket_nano"]
                               for moment in (moment // 1000 for moment, *_ in recording.samples))
    tap.same("timeline: samples of each bucket", timeline["events"][0]["counts"],
             [want[i] for i in range(max(want) + 1)])
    processes = collections.Counter(process for _, _, process, _ in recording.samples)
    tap.same("timeline: processes", {part["name"]: part["samples"] for part in timeline["processes"]}, processes)
    cgroups = {f"/system.slice/{service}.service": processes[name]
               for service, name in (("frontend", "nginx"), ("orders", "java"), ("database", "postgres"))}
    tap.same("timeline: cgroups", {part["name"]: part["samples"] for part in timeline["cgroups"] if part["name"]}, cgroups)
    inside = recording.between((START + 10) * 10 ** 9, (START + 12) * 10 ** 9)
    report = json.loads(curl(address + f"report.json?from=10&to=@{START + 12}")[1])
    tap.same("report: a part", report["events"][0]["samples"], inside)
    last = recording.between((START + 50) * 10 ** 9, (START + 61) * 10 ** 9)
    report = json.loads(curl(address + "report.json?since=10")[1])
    tap.same("report: the last ten seconds", report["events"][0]["samples"], last)
    pid = next(part["pid"] for part in report["events"][0]["processes"] if part["name"] == "java")
    for name in ("pid", "process"):
        report = json.loads(curl(address + f"report.json?{name}={pid}")[1])["events"][0]
        tap.same(f"report: a process by {name}", [(part["pid"], part["samples"]) for part in report["processes"]],
                 [(pid, processes["java"])])
    own = os.path.join(work, "own.html")
    subprocess.run([stacktap, "flamegraph", "--from", "10", "--to", "12", "-o", own, source], check=True,
                   stderr=subprocess.DEVNULL)
    with open(own, "rb") as file:
        tap.check("flamegraph: the bytes of `stacktap flamegraph'",
                  curl(address + "flamegraph?from=10&to=12")[1] == file.read())
    changes = curl(address + "flamegraph?from=30&before_to=30")[1]
    tap.check("flamegraph: what changed between two times", b'"diff":' in changes and
              b"what changed between two times" in changes, changes[:300])
    subprocess.run([stacktap, "flamegraph", "--from", "30", "--before-to", "30", "-o", own, source], check=True,
                   stderr=subprocess.DEVNULL)
    with open(own, "rb") as file:
        tap.check("and the bytes of `stacktap flamegraph'", changes == file.read())
    own = os.path.join(work, "own.pb.gz")
    subprocess.run([stacktap, "convert", "--since", "10", "-o", own, source], check=True, stderr=subprocess.DEVNULL)
    with open(own, "rb") as file:
        tap.check("pprof: the bytes of `stacktap convert'",
                  curl(address + "debug/pprof/profile?seconds=10")[1] == file.read())
    if shutil.which("go"):
        text = subprocess.run(["go", "tool", "pprof", "-top", "-sample_index=samples", "-symbolize=none",
                               address + "debug/pprof/profile?since=10"], capture_output=True, text=True,
                              env={**os.environ, "HOME": work}).stdout
        tap.check("go tool pprof takes its profile from there", f"of {last} total" in text, text[:400])
    else:
        tap.skip("go tool pprof takes its profile from there", "there is no go (tests/setup view)")


def look(tap, server, recording, shots):
    if not page.webdriver:
        tap.skip("the page", "there is no selenium (tests/setup view)")
        return
    driver = page.browser("light", bypass="127.0.0.1")
    try:
        driver.set_script_timeout(30)
        driver.get(server.address)
        wait(driver, "return typeof site === 'object' && site.readyTime > 0")
        wait_graph(driver, "")
        facts = driver.execute_script("return document.getElementById('facts').textContent")
        tap.check("the page says what there is", f"{len(recording.samples):,} samples of cycles" in facts, facts)
        tap.same("where there is nothing to choose there is no choice", driver.execute_script("""
            const select = byId('container'), kept = [...select.options], seen = [select.parentElement.hidden];
            select.replaceChildren();
            site.fill('container', []);
            seen.push(select.parentElement.hidden);
            select.replaceChildren(...kept);
            site.fill('container', []);
            return seen.concat(select.parentElement.hidden);"""), [False, True, False])
        tap.same("its graph has all samples", samples(driver), len(recording.samples))
        driver.save_screenshot(os.path.join(shots, "serve.png"))
        orders = sum(name == "java" for _, _, name, _ in recording.samples)
        choose(driver, "/system.slice/orders.service")
        tap.same("a cgroup is chosen: its samples", settled(driver, orders), orders)
        choose(driver, "")
        tap.same("and all again", settled(driver, len(recording.samples)), len(recording.samples))

        line = driver.find_element("id", "line")
        drag(driver, line, 0.25, 0.5)
        fields = [driver.execute_script("return document.getElementById(arguments[0]).value", name) for name in ("from", "to")]
        # to the millisecond, as a bucket's edges are
        first, last = (round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp(), 3) for text in fields)
        tap.check("dragging selects that time", abs(first - START - 15) < 1 and abs(last - START - 30) < 1, (first, last))
        inside = recording.between(round(first * 1e6) * 1000, round(last * 1e6) * 1000)
        tap.same("and the graph is of it", settled(driver, inside), inside)
        tap.check("as is the link to pprof", f"from={urllib.parse.quote(fields[0], safe='')}" in driver.find_element("id", "pprof").get_attribute("href"))
        driver.find_element("id", "drag-before").click()
        drag(driver, line, 0.0, 0.25)
        wait_graph(driver, "what changed between two times")
        tap.check("a second range is compared with", "before_to" in driver.find_element("id", "open").get_attribute("href"))
        tap.same("the root of its graph is seen at once", in_graph(driver, """const part = stacktap.graph.part;
            return Math.round(part.scrollHeight - part.clientHeight - part.scrollTop)"""), 0)
        driver.save_screenshot(os.path.join(shots, "serve-compare.png"))
        # 1,440 pixels are where both have room
        tap.same("both ranges are on one line, each field shows all of its time", driver.execute_script("""
            const tops = [...document.querySelectorAll('fieldset')].map(part => part.getBoundingClientRect().top);
            const fields = [...document.querySelectorAll('#ranges input:not([type=radio])')];
            return [new Set(tops).size, fields.filter(field => !field.value || field.scrollWidth > field.clientWidth).length];"""), [1, 0])
        asked = [url for url in requests(driver) if not url.startswith((server.address, "about:", "data:"))]
        tap.same("nothing else is asked for", asked, [])
        tap.same("no complaint of the browser", [entry["message"] for entry in driver.get_log("browser")
                                                 if "favicon" not in entry["message"]], [])
    finally:
        driver.quit()


def choose(driver, cgroup):
    driver.execute_script("""const select = document.getElementById('cgroup'); select.value = arguments[0];
        select.dispatchEvent(new Event('change'));""", cgroup)


def wait(driver, script, *arguments):
    end = time.monotonic() + 20
    while not driver.execute_script(script, *arguments):
        if time.monotonic() > end:
            raise TimeoutError(script)
        time.sleep(0.05)


def wait_graph(driver, title):
    """Until the flame graph in the page has drawn itself."""
    driver.switch_to.frame("graph")
    try:
        wait(driver, """return typeof stacktap === 'object' && stacktap.readyTime > 0 &&
            document.title.includes(arguments[0])""", title)
    finally:
        driver.switch_to.default_content()


def in_graph(driver, script):
    driver.switch_to.frame("graph")
    try:
        return driver.execute_script(script)
    finally:
        driver.switch_to.default_content()


def samples(driver):
    return in_graph(driver, """return typeof stacktap === 'object' && stacktap.readyTime > 0 ?
        stacktap.graph.layout.samples[0] : -1""")


def settled(driver, want):
    """The graph's samples once they are @want, or what they are after a while."""
    end = time.monotonic() + 10
    while samples(driver) != want and time.monotonic() < end:
        time.sleep(0.05)
    return samples(driver)


def drag(driver, element, first, last):
    width = element.size["width"]
    chain = page.ActionChains(driver)
    chain.move_to_element_with_offset(element, round((first - 0.5) * width) + (1 if not first else 0), 0).click_and_hold()
    chain.move_to_element_with_offset(element, round((last - 0.5) * width), 0).release().perform()


def requests(driver):
    asked = []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            asked.append(message["params"].get("request", message["params"])["url"])
    return asked


def main():
    stacktap, work = sys.argv[1:]
    tap = page.Tap()
    source = os.path.join(work, "busy.otlp")
    shots = os.path.join(work, "shots")
    os.makedirs(shots, exist_ok=True)
    recording = page.Recording(source)
    with Server(stacktap, source) as server:
        refusals(tap, server)
        answers(tap, stacktap, server, recording, source, work)
        look(tap, server, recording, shots)
    tap.same("SIGTERM ends it", server.status, 0)

    local = os.path.join(work, "serve.socket")
    with Server(stacktap, source, "-l", local) as server:
        tap.same("a unix socket is told", server.address, local)
        tap.same("and needs no token", curl("http://anything/timeline.json", "--unix-socket", local)[0], 200)
        server.child.send_signal(signal.SIGINT)
        server.child.wait(10)
    tap.check("and is gone afterwards", not os.path.exists(local))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What the page of a profile costs in a headless Chromium of this machine: to open, and for each frame while it is used;
beside the flame graph of `go tool pprof -http` of the same profile."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from row import row

VIEW = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "view")
SIZES = ((50000, 25000), (1000000, 150000))
PEER = "go tool pprof -http"
IS_OPEN = "return typeof stacktap === 'object' && stacktap.readyTime > 0"
PEER_IS_OPEN = "return document.readyState === 'complete' && document.querySelectorAll('#stack-chart .boxtext').length > 1"

# Each does something in every frame, or as soon as what it did is done, and says in how many frames.
USES = (
    ("zooming", "step = (i) => graph.target || graph.zoom(boxes[i % boxes.length])"),
    ("hovering", """step = (i) => graph.part.dispatchEvent(new MouseEvent('mousemove', { bubbles: true,
        clientX: box.left + i * 37 % box.width, clientY: box.bottom - 20 - i * 17 % (box.height - 40) }))"""),
    ("scrolling", "step = (i) => { graph.part.scrollTop = graph.part.scrollHeight / 2 + 40 * (i % 20) }"),
    ("searching", """step = (i) => { input.value = 'compare_list'.slice(0, 1 + i % 12);
        input.dispatchEvent(new Event('input')); }"""),
)
USE = """
const done = arguments[0];
const graph = stacktap.graph;
const layout = graph.layout;
const box = graph.part.getBoundingClientRect();
const input = document.getElementById('search');
const boxes = [];
for (let i = 0; i < layout.count && boxes.length < 200; i++)
    if (layout.share(i) > 0.002)
        boxes.push(i);
let step;
%s;
let frames = 0;
const tick = () => {
    if (frames === 120)
        return done(frames);
    step(frames++);
    requestAnimationFrame(tick);
};
requestAnimationFrame(tick);
"""

# A zoom until all of it is drawn, ZOOMS times: pprof takes seconds for one of a large profile.
ZOOMS = 10
ZOOM = """
const done = arguments[1];
const graph = stacktap.graph;
const tick = (left) => {
    if (graph.target)
        return requestAnimationFrame(() => tick(left));
    if (!left)
        return done();
    graph.zoom(left % 2 ? graph.layout.firstChild[graph.layout.firstChild[0]] : 0);
    requestAnimationFrame(() => tick(left - 1));
};
tick(arguments[0]);
"""
PEER_ZOOM = """
const done = arguments[1];
const tick = (left) => {
    if (!left)
        return done();
    const boxes = Array.from(document.querySelectorAll('#stack-chart .boxbg'));
    boxes[left % 2 ? Math.min(2, boxes.length - 1) : 0].click();
    requestAnimationFrame(() => requestAnimationFrame(() => tick(left - 1)));
};
tick(arguments[0]);
"""


class Browser:
    """Its page's thread, and the CPU time of that in ms: style, layout and paint as well as script."""

    def __init__(self, page, url, is_open, bypass="<-loopback>"):
        self.driver = page.browser("light", bypass)
        try:
            self.driver.set_script_timeout(120)
            self.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            self.driver.get(url)
            end = time.monotonic() + 120
            while not self.driver.execute_script(is_open):
                if time.monotonic() > end:
                    raise TimeoutError(url)
                time.sleep(0.05)
            self.driver.execute_async_script(
                "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")
        except Exception:
            self.driver.quit()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def spent(self):
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return 1000 * {metric["name"]: metric["value"] for metric in metrics}["TaskDuration"]

    def during(self, script, *arguments):
        """CPU time, and what the script says."""
        before = self.spent()
        said = self.driver.execute_async_script(script, *arguments)
        return self.spent() - before, said


@contextlib.contextmanager
def peer(path):
    """The address of pprof's flame graph of a file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(["go", "tool", "pprof", "-no_browser", f"-http=127.0.0.1:{port}", path],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    url = f"http://127.0.0.1:{port}/ui/flamegraph"
    try:
        # go may have to build it first
        end = time.monotonic() + 180
        while True:
            try:
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=180).close()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def measure_peer(page, path):
    with peer(path) as url, Browser(page, url, PEER_IS_OPEN, "127.0.0.1") as shown:
        opened = shown.spent()
        return opened, shown.during(PEER_ZOOM, ZOOMS)[0] / ZOOMS


def open_page(page, stacktap, work, nodes, samples):
    """Rows of one size, and what failed."""
    source, path, pprof = (os.path.join(work, f"bench-{nodes}.{end}") for end in ("otlp", "html", "pb.gz"))
    if not os.path.exists(source):
        subprocess.run([sys.executable, "-B", os.path.join(VIEW, "make_profile.py"), "--nodes", str(nodes), "--samples",
                        str(samples), source], check=True)
    subprocess.run([stacktap, "flamegraph", "-o", path, source], check=True, capture_output=True)
    subprocess.run([stacktap, "convert", "-o", pprof, source], check=True, capture_output=True)
    failed = []
    try:
        peers = measure_peer(page, pprof)
    except Exception as error:  # without the peer there is still the page
        peers = (None, None)
        failed.append(f"{PEER} of {nodes:,} nodes: {type(error).__name__}: {error}")
    what = f"page of {nodes:,} nodes"
    with Browser(page, "file://" + path, IS_OPEN) as shown:
        opened = shown.spent()
        count, ready, load = shown.driver.execute_script(
            "return [stacktap.graph.layout.count, stacktap.readyTime, stacktap.loadTime]")
        zoom = shown.during(ZOOM, ZOOMS)[0] / ZOOMS
        rows = [
            row(f"{what}: open", ready, "ms", note=f"until drawn; {count:,} nodes, {os.path.getsize(path):,} bytes; "
                f"{load:.0f} ms of it to prepare and draw"),
            row(f"{what}: CPU time to open", opened, "ms", PEER, peers[0], "of the page's thread"),
            row(f"{what}: CPU time of a zoom", zoom, "ms", PEER, peers[1], "of the page's thread; the page's moves"),
        ]
        for name, step in USES:
            spent, frames = shown.during(USE % step)
            rows.append(row(f"{what}: CPU time of a frame while {name}", spent / frames, "ms",
                            note="mean of 120, of the page's thread; 16.7 ms are 60 frames/s"))
    return rows, failed


def measure(output):
    """Returns (rows, what failed)."""
    sys.path.insert(0, VIEW)
    import page  # Selenium's, where it is
    if not page.webdriver:
        return [], ["there is no selenium (tests/setup view)"]
    work = os.path.join(output, "view")
    os.makedirs(work, exist_ok=True)
    machine = os.uname().machine.replace("aarch64", "arm64")
    rows, failed = [], []
    for nodes, samples in SIZES:
        try:
            found, missing = open_page(page, os.path.join(output, f"user-{machine}", "stacktap"), work, nodes, samples)
            rows += found
            failed += missing
        except Exception as error:  # a browser that ends is a failure, not the end of the benchmarks
            failed.append(f"page of {nodes:,} nodes: {type(error).__name__}: {error}")
    return rows, failed

# SPDX-License-Identifier: Apache-2.0
"""How long the page of a profile takes to open in a headless Chromium of this machine, and a frame while it zooms."""

import os
import subprocess
import sys
import time

from row import row

VIEW = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "view")
SIZES = ((50000, 25000), (1000000, 150000))


def cpu_of(page, path):
    """CPU time of the page's thread until all is drawn, ms: what a host that has no more to do takes at most."""
    driver = page.browser("light")
    try:
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        driver.get("file://" + path)
        end = time.monotonic() + 60
        while not driver.execute_script("return typeof stacktap === 'object' && stacktap.readyTime > 0"):
            if time.monotonic() > end:
                raise TimeoutError(path)
            time.sleep(0.05)
        metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    finally:
        driver.quit()
    return 1000 * {metric["name"]: metric["value"] for metric in metrics}["TaskDuration"]


def open_page(page, stacktap, work, nodes, samples):
    """Rows of one size."""
    source, path = (os.path.join(work, f"bench-{nodes}.{end}") for end in ("otlp", "html"))
    if not os.path.exists(source):
        subprocess.run([sys.executable, "-B", os.path.join(VIEW, "make_profile.py"), "--nodes", str(nodes), "--samples",
                        str(samples), source], check=True)
    subprocess.run([stacktap, "flamegraph", "-o", path, source], check=True, capture_output=True)
    with page.Page(path) as shown:
        count = shown.run("return stacktap.graph.layout.count")
        ready, load = shown.run("return [stacktap.readyTime, stacktap.loadTime]")
        interval, paint = shown.driver.execute_async_script(page.FRAMES)
    note = f"{count:,} nodes; {load:.0f} ms of it to prepare and draw, {os.path.getsize(path):,} bytes"
    return [row(f"page of {nodes:,} nodes: open", ready, "ms", note=note),
            row(f"page of {nodes:,} nodes: CPU time to open", cpu_of(page, path), "ms", note="of the page's thread"),
            row(f"page of {nodes:,} nodes: a frame while zooming", interval, "ms", note=f"median; painted in {paint:.1f} ms")]


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
            rows += open_page(page, os.path.join(output, f"user-{machine}", "stacktap"), work, nodes, samples)
        except Exception as error:  # a browser that ends is a failure, not the end of the benchmarks
            failed.append(f"page of {nodes:,} nodes: {type(error).__name__}: {error}")
    return rows, failed

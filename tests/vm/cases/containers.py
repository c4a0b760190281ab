# SPDX-License-Identifier: Apache-2.0
"""A program in a container's cgroup and mount namespace is named after it has gone, a stripped one by what its debug link names
there; a process context is read."""

import os
import subprocess

CONTAINER = "0123456789abcdef" * 4
CGROUP = f"/sys/fs/cgroup/docker-{CONTAINER}.scope"
# The program lies on a tmpfs that only its own mount namespace has.
SCRIPT = f"""
echo $$ >{CGROUP}/cgroup.procs
mount -t tmpfs none /mnt
cp /opt/stacktap/workload/deep /mnt/inner
OTEL_SERVICE_NAME=shop exec /mnt/inner 5 3
"""

# One whose root has a stripped program, and beside it the file that its debug link names: no file of the host is that.
LINKED = """
mount -t tmpfs none /mnt
cp /opt/stacktap/workload/deep_linked /opt/stacktap/workload/deep_linked.debug /mnt/
exec chroot /mnt /deep_linked 5 3
"""


def guest(t):
    os.mkdir(CGROUP)
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 499, "-o",
                     t.path("containers.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30,
            "sampling")
    publisher = t.start("/opt/stacktap/workload/context", "600", env=dict(
        os.environ, OTEL_SERVICE_NAME="old", OTEL_RESOURCE_ATTRIBUTES="service.namespace=lab"))
    subprocess.run(["unshare", "--mount", "sh", "-c", SCRIPT], check=True)
    t.ok(not os.path.exists("/mnt/inner"), "nobody else sees the program's file")
    subprocess.run(["unshare", "--mount", "sh", "-c", LINKED], check=True)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)
    publisher.kill()
    os.rmdir(CGROUP)
    for path, wanted in ((CGROUP, True), (os.path.dirname(CGROUP), True), (CGROUP[:-1], False)):
        result = t.stacktap("report", "--json", "--cgroup", path, t.path("containers.otlp"), check=False)
        t.equal("bottom" in result.stdout, wanted, f"selected by {path}")


def host(t):
    import model
    samples = [s for s in model.of_process(t.load("containers.otlp"), "inner")
               if s.stack[0].frame_type == "native"]
    # a slow host spends as much as it likes in the dynamic linker before
    own = [(s, {f.function for f in s.stack if f.mapping == "/mnt/inner"}) for s in samples]
    total = sum(s.count for s, names in own if names)
    t.ok(total >= 100, f"at least 100 samples of the program ({total})")
    named = sum(s.count for s, names in own if names and "" not in names)
    t.ok(named >= 0.95 * total and any({"bottom", "main"} <= names for _, names in own), f"its functions have names in {named} of {total}")
    t.equal({s.process.container_id for s in samples}, {CONTAINER}, "its container is known")
    t.equal({s.process.service_name for s in samples}, {"shop"}, "and so is its service")
    publisher = model.of_process(t.load("containers.otlp"), "context")
    t.ok(publisher, "samples of a program that publishes a process context")
    t.equal({s.process.service_name for s in publisher}, {"cart"}, "which comes before its environment")
    said = [dict(s.process.attributes) for s in publisher]
    t.equal({(a.get("service.version"), a.get("service.namespace"), a.get("host.name") == "a lie")
             for a in said}, {("1.2, beta", "lab", False)}, "with what both may say, and nothing else")
    linked = [s for s in model.of_process(t.load("containers.otlp"), "deep_linked") if s.stack[0].frame_type == "native"]
    # static, so what comes before main() has its names there as well, however long it takes
    own = [(s.count, {f.function for f in s.stack if f.mapping == "/deep_linked"}) for s in linked]
    total = sum(count for count, names in own if names)
    named = sum(count for count, names in own if names and "" not in names)
    t.ok(total >= 100 and named >= 0.95 * total and any({"bottom", "main"} <= names for _, names in own),
         f"names of a stripped program by its debug link, in its container: {named} of {total}")

# SPDX-License-Identifier: Apache-2.0
"""The spool on a disk that loses power, three times, and on one that is full: nothing that waits is lost."""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import time

ARCHES = ("x86_64",)     # a file system's and a block device's doing, the same on both
ROUNDS = 3
IMAGE = "disk.ext4"
BYTES = 8 << 20
PLACE = "/mnt/disk"
CONFIG = f"""[profile]
rate = 199
window_seconds = 1
window_max_seconds = 1
[spool]
directory = {PLACE}/spool
[daemon]
load_module = no
status_seconds = 1
"""


def before(t):
    path = os.path.join(t.dir, IMAGE)
    with open(path, "wb") as file:
        file.truncate(BYTES)
    # an admin's program, which is in no user's path
    search = os.environ["PATH"] + ":/usr/sbin:/sbin"
    subprocess.run([shutil.which("mkfs.ext4", path=search), "-q", "-F", path], check=True)


class Mapped:
    """A device-mapper device over a disk: the kernel's ioctls, as dmsetup uses them."""

    CREATE, SUSPEND, LOAD, REMOVE = 3, 6, 9, 4
    SUSPENDED, WITHOUT_LOCK, WITHOUT_FLUSH = 1 << 1, 1 << 10, 1 << 11
    HEAD = struct.Struct("=3I5iIIQ128s129s7x")
    TARGET = struct.Struct("=QQiI16s")

    def __init__(self, disk):
        self.disk = disk
        self.sectors = BYTES // 512
        self.call(self.CREATE)
        self.table("linear")

    def call(self, command, flags=0, target=b""):
        size = self.HEAD.size + len(target)
        data = bytearray(self.HEAD.pack(4, 0, 0, size, self.HEAD.size, bool(target), 0, flags, 0, 0, 0,
                                        b"power", b"") + target)
        number = 3 << 30 | self.HEAD.size << 16 | 0xfd << 8 | command
        with open("/dev/mapper/control", "rb") as control:
            fcntl.ioctl(control, number, data)

    def table(self, kind, options=""):
        """What the device does from now on; what is under way is neither waited for nor written."""
        parameters = f"{self.disk} 0 {options}".encode() + b"\0"
        parameters += bytes(-len(parameters) % 8)
        target = self.TARGET.pack(0, self.sectors, 0, 0, kind.encode()) + parameters
        self.call(self.SUSPEND, self.SUSPENDED | self.WITHOUT_LOCK | self.WITHOUT_FLUSH)
        self.call(self.LOAD, 0, target)
        self.call(self.SUSPEND)


def mount(t, device):
    t.run("mount", "-t", "ext4", "-o", "errors=continue", device, PLACE)


def start(t, number):
    # the discard port, at which nobody listens
    environment = dict(os.environ, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    with open(t.path(f"power{number}.log"), "w", encoding="utf-8") as log:
        return t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/power.conf", env=environment,
                       stdout=log, stderr=log)


def exporter_of(daemon):
    """What the running daemon says; not what a killed one left."""
    try:
        with open("/run/stacktap/status.json", encoding="utf-8") as file:
            status = json.load(file)
    except FileNotFoundError:
        return None
    return status["exporter"] if status["pid"] == daemon.pid else None


def guest(t):
    for module in ("loop", "ext4", "dm_mod", "dm_flakey"):
        t.run("modprobe", module)
    os.makedirs(PLACE)
    shutil.copy(t.path(IMAGE), "/tmp/disk")
    disk = t.run("losetup", "--find", "--show", "/tmp/disk").stdout.strip()
    with open("/tmp/power.conf", "w", encoding="ascii") as file:
        file.write(CONFIG)
    mapped = Mapped(disk)
    device = t.until(lambda: os.path.exists("/dev/dm-0") and "/dev/dm-0", 10, "the mapped device")
    burner = t.start("/opt/stacktap/workload/deep", 5, 3600)
    kept = 0
    for number in range(ROUNDS):
        mount(t, device)
        daemon = start(t, number)
        first = t.until(lambda: exporter_of(daemon), 60, "a status")
        found = first["spool"]["payloads_waiting"]
        t.ok(found >= kept, f"{found} payloads are there, of {kept} that were known to wait")
        told = t.until(lambda: (lambda now: now and now["spool"]["payloads_waiting"] >= found + 3 and now)(
            exporter_of(daemon)), 60, "three more")
        kept = told["spool"]["payloads_waiting"]
        mapped.table("flakey", "0 86400 1 drop_writes")
        time.sleep(1)
        daemon.kill()
        t.wait(daemon, 30)
        t.run("umount", PLACE)
        mapped.table("linear")
    full(t, device, kept)
    t.stop(burner)
    t.run("umount", PLACE)
    mapped.call(Mapped.REMOVE)
    t.run("losetup", "--detach", disk)


def full(t, device, kept):
    """A disk that is full: payloads wait in memory; with room again they go on waiting in the spool."""
    mount(t, device)
    with open(f"{PLACE}/filler", "wb") as file:
        try:
            while True:
                os.write(file.fileno(), bytes(4096))
        except OSError:
            pass
    daemon = start(t, ROUNDS)
    told = t.until(lambda: (lambda now: now and now["spool"]["error"] and
                            now["payloads_waiting"] > now["spool"]["payloads_waiting"] and now)(
        exporter_of(daemon)), 60, "payloads in memory")
    t.ok(told["spool"]["payloads_waiting"] >= kept, "what waits stays where it is on a full disk", told)
    t.equal(told["spool"]["error"], "No space left on device", "the status says what is wrong")
    os.remove(f"{PLACE}/filler")
    again = t.until(lambda: (lambda now: now["spool"]["payloads_waiting"] > told["spool"]["payloads_waiting"]
                             and now)(exporter_of(daemon)), 60, "the spool to take payloads again")
    t.equal((again["spool"]["error"], again["payloads_dropped"]), (None, 0),
            "with room again the spool goes on and nothing was dropped")
    t.stop(daemon)

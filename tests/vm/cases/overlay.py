# SPDX-License-Identifier: Apache-2.0
"""Programs in a container's overlay keep their names and stacks when copied up; others get none."""

import os
import signal

WORKLOAD = "/opt/stacktap/workload"
DEPTH = 12
# all of them share the CPUs
ENOUGH = 20
# As docker and podman mount it, and what else says which inode number stat() shows.
MOUNTS = {
    "docker": "index=off",
    "podman": "metacopy=on",
    "index": "index=on,redirect_dir=on,xino=on",
    "xino": "index=off,xino=off",
}
COPY_UPS = {
    "chmod": "chmod 700 merged/$1",
    "chown": "chown 1:1 merged/$1",
    "touch": "touch merged/$1",
    "ln": "ln merged/$1 merged/link",
}
# $1: the program's name, $2: the file, $3: options, $4: seconds; in a mount namespace of its own
LAYERS = f"""set -e
mount -t tmpfs none /mnt
cd /mnt
mkdir lower up merged
"""
ONE_DISK = "mkdir up/upper up/work\n"
TWO_DISKS = "mount -t tmpfs none up; mkdir up/upper up/work\n"
TOGETHER = """cp "$2" lower/$1
mount -t overlay none -o "lowerdir=lower,upperdir=up/upper,workdir=up/work,$3" merged
"""
RUN = f"exec chroot merged /$1 {DEPTH} $4\n"
# Its path leads to another program before anybody looks.
REPLACE = f"""chroot merged /$1 {DEPTH} $4 &
until [ "$(cat /proc/$!/comm)" = $1 ]; do :; done
cp {WORKLOAD}/deep_other merged/new
mv merged/new merged/$1
echo $!
wait
"""
LATER = f"""chroot merged /$1 {DEPTH} $4 &
until [ "$(cat /proc/$!/comm)" = $1 ]; do :; done
chmod 700 merged/$1
echo $!
wait
"""


def shapes():
    """(name, file, options, script, unshare's options)"""
    for mount, options in MOUNTS.items():
        for how, copy_up in COPY_UPS.items():
            if mount == "docker" or how == "chmod":
                yield f"{mount}-{how}", "deep_static", options, ONE_DISK + TOGETHER + copy_up, ()
    yield ("disks-chmod", "deep_static", "index=off", TWO_DISKS + TOGETHER + COPY_UPS["chmod"], ())
    yield ("plain-chmod", "deep_plain", "index=off", ONE_DISK + TOGETHER + COPY_UPS["chmod"], ())
    yield ("user-chmod", "deep_static", "userxattr", ONE_DISK + TOGETHER + COPY_UPS["chmod"],
           ("--map-root-user",))
    yield "as-it-was", "deep_static", "index=off", ONE_DISK + TOGETHER, ()


def begin(t, shape, end, seconds):
    """They give way to who opens their files: this is about which file that is, not about how soon."""
    name, file, options, script, unshare = shape
    return t.start("nice", "-n", 19, "unshare", *unshare, "--mount", "sh", "-c", LAYERS + script + "\n" + end, "sh", name,
                   f"{WORKLOAD}/{file}", options, seconds)


def guest(t):
    bare = ONE_DISK + TOGETHER
    early = [begin(t, (name, file, "index=off", bare, ()), end, 300) for name, file, end in (
        ("replaced", "deep_static", REPLACE), ("replaced-plain", "deep_plain", REPLACE),
        ("later", "deep_static", LATER))]
    pids = [int(process.stdout.readline()) for process in early]
    pids.append(begin(t, ("early", "deep_static", "index=off", bare + COPY_UPS["chmod"], ()), RUN, 300).pid)
    record = t.start("/opt/stacktap/bin/stacktap", "record", "-a", "-F", 499, "-o",
                     t.path("overlay.otlp"))
    t.until(lambda: any(s["state"] == "running" for s in t.json("status")["sessions"]), 30,
            "sampling")
    for process in [begin(t, shape, RUN, 5) for shape in shapes()]:
        out, err = t.end_of(process)
        t.ok(process.returncode == 0, f"{process.args[-4]} ran", out + err)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    out, err = t.stop(record, 2)
    t.ok(record.returncode == 0, "record ends well", out + err)


def host(t):
    import model
    profile = t.load("overlay.otlp")
    early = ["early", "later", "replaced", "replaced-plain"]
    for name in [shape[0] for shape in shapes()] + early:
        samples = [s for s in model.of_process(profile, name) if s.stack[0].frame_type == "native"]
        total = sum(s.count for s in samples)
        wrong = sum(s.count for s in samples if {"wrong", "wrong_too"} & set(s.names))
        named = sum(s.count for s in samples if s.names[0] == "bottom")
        whole = sum(s.count for s in samples if "bottom" in s.names and "main" in s.names
                    and list(s.names).count("descend") >= DEPTH)
        t.equal(wrong, 0, f"{name}: none has another program's names")
        t.ok(total >= ENOUGH and named >= 0.75 * total,
             f"{name}: the leaf has its name in {named} of {total}, at least {ENOUGH}")
        # the others are over before their tables are made on a slow host
        if name in early:
            t.ok(whole >= 0.75 * total, f"{name}: whole stacks with names in {whole} of {total}")

# SPDX-License-Identifier: Apache-2.0
"""The guest's initramfs: a static busybox, the modules on the way to the root file system."""

import lzma
import os
import stat

# What these need comes along by modules.dep; what is built in is skipped.
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "virtio_net")


def module_order(tree, wanted):
    """Paths below tree of the wanted modules and what they need, in load order."""
    depends, builtin = {}, set()
    with open(os.path.join(tree, "modules.dep"), encoding="utf-8") as f:
        for line in f:
            path, _, needs = line.partition(":")
            depends[path] = needs.split()
    with open(os.path.join(tree, "modules.builtin"), encoding="utf-8") as f:
        builtin = {module_name(line.strip()) for line in f}
    by_name = {module_name(path): path for path in depends}
    order = []
    for name in wanted:
        if name in by_name:
            # modules.dep lists what is needed first, last.
            for path in list(reversed(depends[by_name[name]])) + [by_name[name]]:
                if path not in order:
                    order.append(path)
        elif name not in builtin:
            raise FileNotFoundError(f"kernel has no {name}")
    return order


def module_name(path):
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


class Cpio:
    def __init__(self, out):
        self.out, self.ino = out, 0

    def add(self, name, mode, data=b"", rdev=(0, 0)):
        self.ino += 1
        raw = name.encode() + b"\0"
        fields = (self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev, len(raw), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
        self.out.write(header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4))

    def end(self):
        self.add("TRAILER!!!", 0)


def write(path, modules, busybox, init):
    """Uncompressed: inflating it would cost the guest seconds."""
    order = module_order(modules, MODULES)
    with open(path, "wb") as out:
        cpio = Cpio(out)
        for name in ("bin", "dev", "proc", "sys", "root", "kernel", "top", "new", "modules"):
            cpio.add(name, stat.S_IFDIR | 0o755)
        # The kernel opens it for init before anything is mounted.
        cpio.add("dev/console", stat.S_IFCHR | 0o600, rdev=(5, 1))
        with open(busybox, "rb") as f:
            cpio.add("bin/busybox", stat.S_IFREG | 0o755, f.read())
        with open(init, "rb") as f:
            cpio.add("init", stat.S_IFREG | 0o755, f.read())
        for module in order:
            name = module_name(module) + ".ko"
            with open(os.path.join(modules, module), "rb") as f:
                data = f.read()
            if module.endswith(".xz"):
                data = lzma.decompress(data)
            cpio.add(f"modules/{name}", stat.S_IFREG | 0o644, data)
        names = "".join(module_name(module) + ".ko\n" for module in order)
        cpio.add("modules/order", stat.S_IFREG | 0o644, names.encode())
        cpio.end()

# SPDX-License-Identifier: Apache-2.0
"""The guest's initramfs: either a static busybox and the modules on the way to the root file
system, or, where nothing may come from outside while the guest runs, the whole root."""

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


    def add_file(self, name, path):
        with open(path, "rb") as f:
            self.add(name, stat.S_IFREG | (os.stat(path).st_mode & 0o7777), f.read())

    def add_parents(self, name):
        parts = name.strip("/").split("/")
        for i in range(1, len(parts) + 1):
            self.add("/".join(parts[:i]), stat.S_IFDIR | 0o755)

    def add_tree(self, prefix, top, skip=()):
        """Everything below top, in an order that is the same every time, owned by root."""
        for folder, dirs, files in os.walk(top):
            dirs.sort()
            inside = os.path.relpath(folder, top)
            if inside in skip:
                dirs.clear()
                continue
            for name in sorted(dirs + files):
                path = os.path.join(folder, name)
                place = os.path.normpath(os.path.join(prefix, inside, name))
                mode = os.lstat(path).st_mode
                if stat.S_ISLNK(mode):
                    self.add(place, stat.S_IFLNK | 0o777, os.readlink(path).encode())
                elif stat.S_ISDIR(mode):
                    self.add(place, stat.S_IFDIR | (mode & 0o7777))
                elif stat.S_ISREG(mode):
                    self.add_file(place, path)

    def add_modules(self, place, tree):
        order = module_order(tree, MODULES)
        for module in order:
            with open(os.path.join(tree, module), "rb") as f:
                data = f.read()
            if module.endswith(".xz"):
                data = lzma.decompress(data)
            self.add(f"{place}/{module_name(module)}.ko", stat.S_IFREG | 0o644, data)
        names = "".join(module_name(module) + ".ko\n" for module in order)
        self.add(f"{place}/order", stat.S_IFREG | 0o644, names.encode())

    def add_console(self):
        """The kernel opens it for init before anything is mounted."""
        self.add("dev/console", stat.S_IFCHR | 0o600, rdev=(5, 1))


def write(path, modules, busybox, init):
    """Uncompressed: inflating it would cost the guest seconds."""
    with open(path, "wb") as out:
        cpio = Cpio(out)
        for name in ("bin", "dev", "proc", "sys", "root", "kernel", "top", "new", "modules"):
            cpio.add(name, stat.S_IFDIR | 0o755)
        cpio.add_console()
        cpio.add_file("bin/busybox", busybox)
        cpio.add_file("init", init)
        cpio.add_modules("modules", modules)
        cpio.end()


def write_root(path, root, modules, skip):
    with open(path, "wb") as out:
        cpio = Cpio(out)
        cpio.add_tree(".", root, skip)
        cpio.add_console()
        cpio.add("modules", stat.S_IFDIR | 0o755)
        cpio.add_modules("modules", modules)
        cpio.end()


def append(path, trees):
    """Lay (place, directory) pairs over what the archive holds."""
    with open(path, "ab") as out:
        cpio = Cpio(out)
        for place, top in trees:
            cpio.add_parents(place)
            cpio.add_tree(place.strip("/"), top)
        cpio.end()

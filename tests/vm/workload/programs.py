# SPDX-License-Identifier: Apache-2.0
"""Debian's own programs at work, each until it and its children have had so much CPU time.

usage: programs.py CPU-SECONDS [NAME...]
"""

import os
import subprocess
import sys
import tempfile
import threading
import time

PYTHON = """
import json, random, re
random.seed(3)
def tree(depth):
    return [tree(depth - 1) for _ in range(3)] if depth else random.random()
def total(node):
    return sum(map(total, node)) if isinstance(node, list) else node
for _ in range(3):
    text = json.dumps(tree(7))
    assert total(json.loads(text)) > 0
    sorted(re.findall(r"0\\.\\d+", text), key=lambda word: word[::-1])
"""
PERL = r"""
my (%seen, $text);
$text .= sprintf("%d word%d ", $_ * 7919 % 1000, $_ % 331) for 1 .. 40000;
$seen{$1}{$2}++ while $text =~ /(\d+) (word\d+)/g;
sub weight { my $hash = shift; my $sum = 0; $sum += $_ for values %$hash; $sum }
my @order = sort { weight($seen{$a}) <=> weight($seen{$b}) || $a cmp $b } keys %seen;
"""
SQL = """
CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO t SELECT i, hex(randomblob(20)) FROM n;
CREATE INDEX tv ON t (v);
SELECT count(*), max(length(a.v || b.v)) FROM t a JOIN t b ON a.k = b.k + 1 WHERE a.v > b.v;
SELECT v FROM t WHERE v LIKE '%ABC%' ORDER BY substr(v, 3) LIMIT 3;
"""
FUNCTION = """
static int table_{0}[64];
int work_{0}(int a, int b)
{{
	int sum = {0};
	for (int i = 0; i < a; i++) {{
		table_{0}[i & 63] += (i * b) ^ (sum >> 3);
		if (table_{0}[(i + 7) & 63] > b)
			sum += table_{0}[i & 31] * {0};
		else
			sum -= i;
		switch (sum & 7) {{
		case 0: sum ^= a; break;
		case 3: sum += b * i; break;
		case 5: sum = sum * 3 + 1; break;
		}}
	}}
	return sum;
}}
"""


def run(*command, **options):
    options.setdefault("stdout", subprocess.DEVNULL)
    subprocess.run(command, check=True, **options)


def openssl(_directory):
    for kind in (["-bytes", "16384", "sha256"], ["rsa2048"]):
        run("openssl", "speed", "-seconds", "1", *kind, stderr=subprocess.DEVNULL)


def python3(_directory):
    run("python3", "-c", PYTHON)


def perl(_directory):
    run("perl", "-e", PERL)


def sqlite3(_directory):
    run("sqlite3", ":memory:", SQL)


def text(directory):
    path = os.path.join(directory, "text")
    if not os.path.exists(path):
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"line {i} {i * i * 7919 % 1000003}\n" for i in range(40000))
    return path


def xz(directory):
    run("xz", "-6", "-k", "-f", "-T1", text(directory))


def git(directory):
    def call(*arguments):
        run("git", "-C", directory, "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments)
    path = text(directory)
    if not os.path.exists(os.path.join(directory, ".git")):
        call("init", "-q")
    with open(path, encoding="ascii") as f:
        lines = f.readlines()
    for turn in range(3):
        lines[turn * 1000:turn * 1000 + 50] = [f"{time.monotonic_ns()} {turn}\n"]
        with open(path, "w", encoding="ascii") as f:
            f.writelines(lines)
        call("add", "text")
        call("commit", "-q", "-m", "turn")
    call("log", "-p", "--stat")
    call("blame", "text")
    call("repack", "-q", "-a", "-d", "-f", "--threads=1")


def cc1(directory):
    """What gcc -O2 -c runs: the compiler proper, then the assembler."""
    source, target = (os.path.join(directory, "file" + end) for end in (".c", ".s"))
    with open(source, "w", encoding="ascii") as f:
        f.writelines(FUNCTION.format(i) for i in range(8))
    compiler = next(os.path.join(place, "cc1") for place, _, files in os.walk("/usr/lib/gcc")
                    if "cc1" in files)
    run(compiler, "-quiet", "-O2", source, "-o", target)
    run("as", target, "-o", os.path.join(directory, "file.o"))


def redis(directory):
    socket = os.path.join(directory, "socket")
    with subprocess.Popen(["redis-server", "--save", "", "--port", "0", "--unixsocket", socket,
                           "--dir", directory], stdout=subprocess.DEVNULL) as server:
        while not os.path.exists(socket):
            time.sleep(0.05)
        try:
            run("redis-benchmark", "-s", socket, "-n", "3000", "-c", "4", "-q",
                "-t", "set,lpush,zadd,lrange_100,mset")
        finally:
            server.terminate()


PROGRAMS = {f.__name__: f for f in (openssl, python3, sqlite3, git, xz, perl, redis, cc1)}


def work(program, seconds):
    """In a process of its own, so that its children's CPU time is known."""
    with tempfile.TemporaryDirectory() as directory:
        while sum(os.times()[2:4]) < seconds:
            program(directory)


def main(argv):
    names = argv[2:] or list(PROGRAMS)
    lock, failed = threading.Lock(), []

    def some():
        while True:
            with lock:
                if not names:
                    return
                name = names.pop(0)
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    work(PROGRAMS[name], float(argv[1]))
                    status = 0
                finally:
                    os._exit(status)
            if os.waitpid(pid, 0)[1]:
                failed.append(name)

    threads = [threading.Thread(target=some) for _ in range(os.cpu_count())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv)

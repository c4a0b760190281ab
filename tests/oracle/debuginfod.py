# SPDX-License-Identifier: Apache-2.0
"""Name recordings by a debuginfod server: elfutils' own, one that is not there, and some that misbehave. Prints TAP.

usage: debuginfod.py STACKTAP WORK-DIRECTORY
"""
import contextlib
import filecmp
import http.server
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import lines  # noqa: E402

RESULTS = []
PATIENCE = 120      # for a server to start on a host that does something else


def tell(good, what, detail=""):
    RESULTS.append(bool(good))
    print(f"{'ok' if good else 'not ok'} {len(RESULTS)} - debuginfod: {what}", flush=True)
    if not good and detail:
        print("\n".join("# " + line for line in str(detail).splitlines()[:20]))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def elfutils_server(work, directory, wanted):
    """elfutils' debuginfod over the files of a directory, once it has the build-id that is wanted."""
    port = free_port()
    with open(os.path.join(work, "debuginfod.log"), "wb") as log:
        server = subprocess.Popen(["debuginfod", "-F", "-p", str(port), "-d", os.path.join(work, "index.sqlite"), "-t", "0",
                                   directory], stdout=log, stderr=log, cwd=work)
    url = f"http://localhost:{port}"
    try:
        for _ in range(PATIENCE * 10):
            try:
                urllib.request.urlopen(f"{url}/buildid/{wanted}/debuginfo").close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


class Handler(http.server.BaseHTTPRequestHandler):
    """A server that does what its path says: /lie/buildid/…"""

    def do_GET(self):  # pylint: disable=invalid-name
        self.server.asked.append(self.path)
        getattr(self, self.path.split("/")[1])()

    def send(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def lie(self):
        self.send(200, self.server.lie)

    def noise(self):
        self.send(200, bytes(range(256)) * 64)

    def nothing(self):
        self.send(200)

    def busy(self):
        self.send(503, b"later")

    def elsewhere(self):
        self.send(302, Location="file:///etc/passwd")

    def round(self):
        self.send(302, Location=self.path)

    def endless(self):
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(bytes(1 << 16))

    def cut(self):
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"\x7fELF")

    def hang(self):
        self.server.hangs.set()
        self.server.go_on.wait(PATIENCE)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


@contextlib.contextmanager
def bad_server(lie, context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.lie, server.asked, server.hangs, server.go_on = lie, [], threading.Event(), threading.Event()
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.go_on.set()
        server.shutdown()
        server.server_close()


def fetcher_of(pid):
    """What /proc says of the fetcher of this process."""
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, StopIteration):
            with open(f"/proc/{int(entry)}/status", encoding="utf-8") as file:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            if status["Name"] == "stacktap-fetche" and int(status["PPid"]) == pid:
                return status
    return {}


def as_service():
    """What gives root no more capabilities than the unit does."""
    if os.geteuid():
        return ()
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "../../packaging/stacktapd.service.in"), encoding="utf-8") as file:
        bounds = [line.strip().split("=", 1)[1] for line in file if line.startswith("CapabilityBoundingSet=")]
    names = " ".join(bounds).lower().replace("cap_", "+").split()
    return "setpriv", "--bounding-set=" + ",".join(["-all", *names]), "--"


class Bench:
    """A recording of a stripped program, and a cache of our own."""

    def __init__(self, stacktap, work):
        self.stacktap, self.work = stacktap, work
        self.empty, self.served, self.cache = (os.path.join(work, name) for name in ("empty", "served", "cache"))
        os.makedirs(self.empty)
        os.makedirs(self.served)
        self.recorded, self.named = os.path.join(work, "recorded.otlp"), os.path.join(work, "named.otlp")
        for name, text in (("shop.cc", lines.CXX), ("tree.c", lines.C)):
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.program, self.other = os.path.join(work, "shop"), os.path.join(work, "tree")
        for compiler, source, output in (("g++", "shop.cc", self.program), ("gcc", "tree.c", self.other)):
            subprocess.run([compiler, "-O2", "-g", "-Wl,--build-id", "-o", output, source], cwd=work, check=True)
        lines.split_debug(self.program)
        self.ident = lines.build_id(self.program)
        first, size = lines.text_range(self.program)
        self.addresses = sorted(a for a in lines.functions(self.program) if first <= a < first + size)
        lines.write(self.recorded, lines.Recording(self.program + ".stripped", self.addresses, ident=self.ident))
        self.debug = shutil.copy(self.program + ".debug", self.served)

    def environment(self):
        return {**os.environ, "XDG_CACHE_HOME": self.cache, "no_proxy": "*"}

    def kept(self):
        """What is in the cache."""
        directory = os.path.join(self.cache, "stacktap", "debuginfod")
        return sorted(os.listdir(directory)) if os.path.isdir(directory) else []

    def start(self, *arguments, recorded=None, prefix=(), **more):
        return subprocess.Popen([*prefix, self.stacktap, "symbolize", "--json", "--debug-dir", self.empty, "--sysroot", self.empty,
                                 *arguments, "-o", self.named, recorded or self.recorded], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, encoding="utf-8", env={**self.environment(), **more})

    def finish(self, process):
        """The exit code, the first object, and the server's counts."""
        output, error = process.communicate()
        try:
            said = json.loads(output)
            return process.returncode, said["objects"][0], said.get("debuginfod", {})
        except (ValueError, KeyError, IndexError):
            return process.returncode, {"error": output + error}, {}

    def symbolize(self, *arguments, **more):
        return self.finish(self.start(*arguments, **more))

    def is_untouched(self):
        return filecmp.cmp(self.recorded, self.named, shallow=False)


def counts(told, **wanted):
    """Is it this, and nothing else?"""
    return told and all(told[name] == wanted.get(name, 0) for name in told if name != "bytes")


def check_readers(bench, url, local):
    """What reads a recording looks lines up at the same server, and says what that does not have."""
    down = f"http://127.0.0.1:{free_port()}"

    def ask(*arguments, server=url, recorded=bench.recorded):
        shutil.rmtree(bench.cache, ignore_errors=True)
        done = subprocess.run([bench.stacktap, *arguments, *(("--debuginfod", server) if server else ()), recorded],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=bench.environment(), check=False)
        return done.returncode, done.stdout, done.stderr
    with open(bench.recorded, "rb") as file:
        before = file.read()
    rows = subprocess.run([bench.stacktap, "report", "--lines", "--limit", "0", local], stdout=subprocess.PIPE,
                          encoding="utf-8", check=True).stdout.splitlines()[1:]
    status, said, error = ask("report", "--lines", "--limit", "0")
    tell(status == 0 and said.splitlines()[1:] == rows and "shop.cc:" in said and not error,
         "report --lines has the lines of a recording that was named by the same file", (status, said, error))
    by_line = subprocess.run([bench.stacktap, "report", "--by", "line", local], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    tell(ask("report", "--by", "line") == (0, by_line, "") and "shop.cc:" in by_line, "so has report --by line", by_line)
    status, said, error = ask("report", "--by", "line", recorded=bench.recorded, server=down)
    tell(status == 0 and "has no source lines" in error, "and without the server it says that there are none", (status, said, error))
    status, said, error = ask("report", "--lines", server=None)
    tell(status == 0 and "shop.cc:" not in said and not bench.kept(), "and without --debuginfod those of the recording", (said, error))
    status, said, error = ask("report", "--lines", server=down)
    tell(status == 0 and "cannot be reached" in error and "shop.cc:" not in said, "a server that is down is said", (said, error))
    cut = os.path.join(bench.work, "cut.otlp")
    with open(cut, "wb") as file:
        file.write(before + before[:-1])
    status, said, error = ask("report", "--lines", recorded=cut)
    tell(status == 0 and "shop.cc:" in said and "cut.otlp is cut off" in error, "a recording that is cut off is said to be",
         (status, said, error))
    status, said, error = ask("report")
    tell(status == 2 and "--lines" in error, "report asks no server for what it does not show", (status, said, error))
    # its names are known, but no lines
    main = next(address for address, names in lines.functions(bench.program).items() if "main" in names)
    known = os.path.join(bench.work, "known.otlp")
    lines.write(known, lines.Recording(bench.program + ".stripped", range(main, main + 64),
                                       named={address: "main" for address in range(main, main + 64)}, ident=bench.ident))
    where = ("--debug-dir", bench.empty, "--sysroot", bench.empty)
    status, said, error = ask("annotate", "main", *where, recorded=known)
    tell(status == 0 and "shop.cc" in said and bench.kept() == [bench.ident + ".debug"],
         "annotate has source lines by the server's file", (status, said, error))
    status, said, error = ask("annotate", "main", *where, recorded=known, server=down)
    tell("cannot be reached" in said + error, "and says when it cannot be reached", (status, said, error))
    with open(bench.recorded, "rb") as file:
        tell(file.read() == before, "the recording stays as it is")


def check_real(bench):
    unknown = os.path.join(bench.work, "unknown.otlp")
    lines.write(unknown, lines.Recording(bench.other, [lines.segment(bench.other)[0] + 64], ident=lines.build_id(bench.other)))
    local = os.path.join(bench.work, "local.otlp")
    subprocess.run([bench.stacktap, "symbolize", "--debug-dir", bench.served, "--sysroot", bench.empty, "-o", local,
                    bench.recorded], stdout=subprocess.DEVNULL, check=True)
    with elfutils_server(bench.work, bench.served, bench.ident) as url:
        status, said, fetched = bench.symbolize("--debuginfod", url + "/")
        tell(status == 0 and said.get("with_lines", 0) > 20 and counts(fetched, fetched=1) and
             fetched["bytes"] == os.path.getsize(bench.debug) and filecmp.cmp(local, bench.named, shallow=False),
             f"elfutils' server names {said.get('with_lines')} of {len(bench.addresses)} functions, with lines, as the file "
             "itself does", (status, said, fetched))
        tell(bench.kept() == [bench.ident + ".debug"], "the file is kept under its build-id", bench.kept())
        status, said, fetched = bench.symbolize("--debuginfod", url, recorded=unknown)
        tell(status == 0 and counts(fetched, absent=1) and "does not have its debug file" in said["note"],
             "what it does not have is said", (status, said, fetched))
        check_readers(bench, url, local)
        shutil.rmtree(bench.cache)
        status, said, fetched = bench.symbolize("--debuginfod", url, "--debuginfod-max", "4K")
        tell(status == 0 and counts(fetched, too_large=1) and "larger than" in said["note"] and bench.is_untouched() and
             not bench.kept(), "a file that is too large is not kept, which is said", (status, said, fetched, bench.kept()))
        bench.symbolize("--debuginfod", url)
        bench.symbolize("--debuginfod", url, recorded=unknown)
    status, said, fetched = bench.symbolize("--debuginfod", url)
    tell(status == 0 and counts(fetched, from_cache=1) and filecmp.cmp(local, bench.named, shallow=False),
         "what was fetched needs no server any more", (status, said, fetched))
    status, said, fetched = bench.symbolize("--debuginfod", url, recorded=unknown)
    tell(status == 0 and counts(fetched, absent=1), "nor does what it did not have", (status, said, fetched))
    marks = [os.path.join(bench.cache, "stacktap", "debuginfod", name) for name in bench.kept() if name.endswith(".absent")]
    for path in marks:
        os.utime(path, (time.time() - 4000,) * 2)
    status, said, fetched = bench.symbolize("--debuginfod", url, recorded=unknown)
    tell(marks and status == 0 and counts(fetched, unreachable=1), "that is believed for an hour", (marks, said, fetched))
    shutil.rmtree(bench.cache)
    status, said, fetched = bench.symbolize("--debuginfod", url)
    tell(status == 0 and counts(fetched, unreachable=1) and url in said["note"] and "cannot be reached" in said["note"] and
         bench.is_untouched(), "a server that is down is said, and nothing is lost", (status, said, fetched))


def check_bad(bench):
    with open(bench.other, "rb") as file:
        other = file.read()
    with bad_server(other) as (server, url):
        for path, outcome, words, more in (
                ("lie", "fetched", "is not its debug file", ()), ("noise", "fetched", "is not its debug file", ()),
                ("nothing", "failed", "empty", ()), ("busy", "failed", "503", ()),
                ("elsewhere", "failed", "file", ()), ("round", "failed", "redirects", ()),
                ("cut", "failed", "cannot be fetched", ()), ("endless", "too_large", "larger than the 4 MiB", ("--debuginfod-max", "4M")),
                ("hang", "timed_out", "longer than 1 seconds", ("--debuginfod-timeout", "1s"))):
            shutil.rmtree(bench.cache, ignore_errors=True)
            status, said, fetched = bench.symbolize("--debuginfod", f"{url}/{path}", *more)
            tell(status == 0 and counts(fetched, **{outcome: 1}) and words in said["note"] and bench.is_untouched() and
                 not [name for name in bench.kept() if not name.endswith(".absent")],
                 f"a server that does this names nothing, and no file of its is kept: {path}", (status, said, fetched, bench.kept()))
        before = len(server.asked)
        bench.symbolize("--debuginfod", f"{url}/busy", DEBUGINFOD_URLS=f"{url}/lie", DEBUGINFOD_CACHE_PATH=bench.work)
        asked = server.asked[before:]
        tell(asked == [f"/busy/buildid/{bench.ident}/debuginfo"], "the server that is named is asked, once", asked)
        bench.symbolize(DEBUGINFOD_URLS=f"{url}/lie")
        tell(server.asked[before:] == asked, "none is asked without --debuginfod, whatever the environment says", server.asked)
        for prefix, of_whom in ((), ""), (as_service(), ", with the service's capabilities"):
            server.hangs.clear()
            server.go_on.clear()
            process = bench.start("--debuginfod", f"{url}/hang", "--debuginfod-timeout", "100s", prefix=prefix)
            server.hangs.wait(PATIENCE)
            status = fetcher_of(process.pid)
            user = "65534" if os.geteuid() == 0 else str(os.geteuid())
            tell(status.get("Seccomp") == "2" and status.get("NoNewPrivs") == "1" and status.get("Uid", "").split() == [user] * 4 and
                 int(status.get("CapEff", "1"), 16) == int(status.get("CapPrm", "1"), 16) == 0,
                 "the process that speaks to it has no rights" + of_whom, status)
            server.go_on.set()
            bench.finish(process)


def check_rest(bench):
    key = os.path.join(bench.work, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", key + ".crt", "-subj",
                    "/CN=127.0.0.1"], stderr=subprocess.DEVNULL, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key + ".crt", key)
    shutil.rmtree(bench.cache, ignore_errors=True)
    with bad_server(b"", context) as (server, url):
        status, said, fetched = bench.symbolize("--debuginfod", f"{url}/lie")
        tell(status == 0 and counts(fetched, unreachable=1) and "certificate" in said["note"] and not server.asked,
             "a certificate that nobody vouches for is not taken", (status, said, fetched))
    with bad_server(b"") as (server, url):
        with open(bench.debug, "rb") as file:
            server.lie = file.read()
        # two files that have not been used for long, without a byte of them on the disk
        directory = os.path.join(bench.cache, "stacktap", "debuginfod")
        os.makedirs(directory, exist_ok=True)
        for name, age in (("aa.debug", 9000), ("bb.debug", 8000), ("cc.debug", 7000), ("else", 10000)):
            with open(os.path.join(directory, name), "wb") as file:
                file.truncate(900 << 20)
            os.utime(os.path.join(directory, name), (time.time() - age,) * 2)
        status, said, fetched = bench.symbolize("--debuginfod", f"{url}/lie")
        tell(status == 0 and counts(fetched, fetched=1) and said.get("with_lines", 0) > 20 and
             bench.kept() == sorted([bench.ident + ".debug", "cc.debug", "else"]),
             "what was not used for longest makes room, and what is not ours stays", (said, fetched, bench.kept()))


def main():
    stacktap, work = sys.argv[1:]
    bench = Bench(stacktap, work)
    check_real(bench)
    check_bad(bench)
    check_rest(bench)
    print(f"1..{len(RESULTS)}")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())

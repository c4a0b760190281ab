# SPDX-License-Identifier: Apache-2.0
"""stacktapd against a receiver that misbehaves: retried or dropped as OTLP says, counted, alive."""

import collections
import glob
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

NET = True
ALONE = True
LOAD = False
# more than the first pauses of a daemon that makes up its own: 1 s, then 2 s
RETRY_AFTER = 6
SCRIPT = f"503:retry-after={RETRY_AFTER},429:retry-after={RETRY_AFTER},close-mid-response,garbage,400,partial:rejected=3,503,ok*"


def before(t):
    bring_pprof(t)
    t.start(["python3", os.path.join(t.top, "tests/otlp/receiver.py"),
             "--output", os.path.join(t.dir, "received.otlp"),
             "--ledger", os.path.join(t.dir, "ledger.jsonl"), "--metrics", os.path.join(t.dir, "metrics.received"),
             "--port-file", os.path.join(t.dir, "port"), "--script", SCRIPT])


def bring_pprof(t):
    """What `go tool pprof` runs; the guest has no Go. It runs where the guest is of this machine's architecture."""
    if t.arch == {"aarch64": "arm64"}.get(os.uname().machine, os.uname().machine) and shutil.which("go"):
        path = subprocess.run(["go", "tool", "-n", "pprof"], check=True, capture_output=True, text=True).stdout.strip()
        shutil.copy(path, os.path.join(t.dir, "pprof"))


def configuration(path, **sections):
    # an emulated CPU takes 20 to 50 times as long for them
    sections.setdefault("symbols", {"wait_seconds": 30})
    with open(path, "w", encoding="ascii") as f:
        for section, values in sections.items():
            f.write(f"[{section}]\n")
            for key, value in values.items():
                f.write(f"{key} = {value}\n")


def guest(t):
    release = os.uname().release
    # an emulated CPU takes a minute to go through all of Debian's
    t.run("mount", "-t", "tmpfs", "modules", f"/lib/modules/{release}")
    os.makedirs(f"/lib/modules/{release}/updates")
    t.run("cp", "/opt/stacktap/stacktap.ko", f"/lib/modules/{release}/updates/")
    t.run("depmod", "-a")
    port = t.until(lambda: os.path.exists(t.path("port")) and open(t.path("port")).read().strip(),
                   20, "the receiver's port")
    # nobody gave the module that it loads a budget that an emulated CPU keeps
    # and an idle guest has few samples: a window must not wait for two thousand of them
    configuration("/tmp/daemon.conf", profile={"rate": 199, "window_seconds": 2,
                                               "window_max_seconds": 3, "budget_ns": 0},
                  metrics={"push": "yes", "push_seconds": 2, "listen": "unix:/tmp/metrics.exporting"},
                  serve={"listen": "127.0.0.1:9471"}, export={"headers_file": "/tmp/headers"}, spool={"directory": "/tmp/exporting"})
    with open("/tmp/headers", "w", encoding="ascii") as f:
        f.write("X-From-File: a token\n")
    t.ok(t.run("/opt/stacktap/bin/stacktapd", "--check-config", "--config",
               "/tmp/daemon.conf").returncode == 0, "the configuration is accepted")
    environment = dict(os.environ, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://10.0.2.2:{port}",
                       OTEL_SERVICE_NAME="daemon-test",
                       OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test%20lab")
    burner = t.start("/opt/stacktap/workload/deep", 5, 3600)
    with open(t.path("stacktapd.log"), "w", encoding="utf-8") as log:
        daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/daemon.conf",
                         env=environment, stderr=log, stdout=log)
        t.until(t.loaded, 30, "stacktapd to load the module")
        t.ok(True, "stacktapd loads the module through libkmod")
        t.until(lambda: ledger_count(t, 200) >= 6, 120, "the receiver to accept six payloads")
        t.ok(daemon.poll() is None, "stacktapd is alive after all of it")
        scrape(t, "/tmp/metrics.exporting", "metrics.first")
        by_url(t, burner)
        scrape(t, "/tmp/metrics.exporting", "metrics.last")
        # written every ten seconds
        t.until(lambda: status()["exporter"]["payloads_sent"] >= 6, 30, "the status file to know of these")
        with open(t.path("status.json"), "w", encoding="utf-8") as f:
            json.dump(status(), f)
        daemon.send_signal(signal.SIGTERM)
        t.ok(t.wait(daemon, 30) == 0, "SIGTERM ends it in good order")
    spool(t, environment)
    journal(t)
    t.stop(burner)
    t.run("rmmod", "stacktap")
    no_endpoint(t, {name: environment[name] for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES")})
    t.run("rmmod", "stacktap")


def by_url(t, burner):
    """Over TCP, with the token of the address that the daemon writes down, as docs/views.md has it; not without."""
    with open("/run/stacktap/serve", encoding="ascii") as f:
        url = f.read().strip()
    t.ok(re.fullmatch(r"http://127\.0\.0\.1:9471/[0-9a-f]{32}/", url), f"the address with its token: {url}")
    token, target = url.split("/")[3], "debug/pprof/profile?seconds=1"
    here, there = "127.0.0.1:9471", "example.com:9471"
    for what, path, host, want in (("no token", f"/{target}", here, 403), ("a wrong one", f"/{token[::-1]}/{target}", here, 403),
                                   ("another Host", f"/{token}/{target}", there, 403),
                                   ("all that is needed", f"/{token}/{target}&pid={burner.pid}", here, 200)):
        connection = http.client.HTTPConnection("127.0.0.1", 9471, timeout=240)
        connection.request("GET", path, headers={"Host": host})
        t.equal(connection.getresponse().status, want, f"a request with {what}")
        connection.close()
    if os.path.exists(t.path("pprof")):
        done = t.run(t.path("pprof"), "-top", "-symbolize=none", "-timeout=200", f"{url}debug/pprof/profile?seconds=3&pid={burner.pid}", timeout=240,
                     check=False, env=dict(os.environ, HOME="/tmp", PPROF_TMPDIR="/tmp"))
        t.ok(done.returncode == 0 and re.search(r"%.* bottom\b", done.stdout), "go tool pprof takes a profile of the running daemon",
             done.stdout + done.stderr)
    elif t.arch == "x86_64":
        t.skip("go tool pprof takes a profile of the running daemon", "there is no go (tests/setup view)")


def status():
    with open("/run/stacktap/status.json", encoding="utf-8") as f:
        return json.load(f)


def ledger_count(t, wanted):
    try:
        with open(t.path("ledger.jsonl"), encoding="utf-8") as f:
            return sum(1 for line in f if line.strip() and json.loads(line).get("status") == wanted)
    except (OSError, ValueError):
        return 0


def spool(t, environment):
    """What nobody took before a kill -9 is sent by the next daemon."""
    configuration("/tmp/spool.conf", profile={"rate": 199, "window_seconds": 2, "window_max_seconds": 3,
                                              "budget_ns": 0}, spool={"directory": "/tmp/spool"},
                  daemon={"status_seconds": 1})
    # the discard port, at which nobody listens
    nobody = dict(environment, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/spool.conf", env=nobody)
    t.until(lambda: of_spool(daemon)["payloads_waiting"] >= 3, 60, "three payloads in the spool")
    doctor(t)
    daemon.kill()
    t.wait(daemon, 30)
    left = sum(os.path.getsize(f"/tmp/spool/{name}") for name in os.listdir("/tmp/spool"))
    with open(t.path("spool.log"), "w", encoding="utf-8") as log:
        daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/spool.conf", env=environment,
                         stderr=log, stdout=log)
        t.until(lambda: of_spool(daemon)["files"] and not of_spool(daemon)["payloads_waiting"], 60,
                "an empty spool")
        counted = status()["exporter"]
        daemon.send_signal(signal.SIGTERM)
        t.ok(t.wait(daemon, 30) == 0, "a daemon with a spool ends in good order")
    with open(t.path("spool.log"), encoding="utf-8") as log:
        t.ok("of an earlier run wait in the spool" in log.read(), "the next daemon says what was left")
    t.ok(left and counted["payloads_sent"] >= 3 and not counted["payloads_dropped"],
         f"and sends it: {left} bytes left, then {counted}")


class Unavailable(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_error(503, "no room")

    def log_message(self, *_):
        pass


def doctor(t):
    """What `doctor` says of a receiver that is down, and of one that is there and takes nothing."""
    def delivery():
        checks = json.loads(t.run("/opt/stacktap/bin/stacktap", "doctor", "--json", check=False).stdout)["checks"]
        return next(check for check in checks if check["name"] == "delivery")

    told = delivery()
    t.ok(told["state"] == "warning" and "127.0.0.1 port 9" in told["text"] and "start the receiver" in told["remedy"],
         "doctor names a receiver that is down, and what to do", told)
    with http.server.HTTPServer(("127.0.0.1", 9), Unavailable) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # the next try comes after a pause
        t.comes_to(lambda: "HTTP 503" in delivery()["text"], 60)
        told = delivery()
        server.shutdown()
    t.ok(told["state"] == "warning" and "HTTP 503" in told["text"] and "receiver's log" in told["remedy"],
         "and one that is there and takes nothing", told)


def of_spool(daemon):
    """The running daemon's; not what a killed one left in its status."""
    try:
        now = status()
    except FileNotFoundError:
        return collections.Counter()
    return now["exporter"]["spool"] if now["pid"] == daemon.pid else collections.Counter()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def journal(t):
    """kill -9 inside a window: the next daemon stores what the first had, but for two seconds."""
    # a daemon's first window ends at random below its longest: that of an hour not while this looks
    configuration("/tmp/journal.conf", profile={"rate": 199, "window_seconds": 3600, "window_max_seconds": 3600,
                                                "budget_ns": 0}, store={"directory": "/tmp/journal"},
                  daemon={"status_seconds": 1})
    command = ["/opt/stacktap/bin/stacktapd", "--config", "/tmp/journal.conf"]
    daemon = t.start(*command)

    def parts():
        try:
            now = status()
        except FileNotFoundError:
            return None
        told = now["exporter"]["journal"]
        return now if now["pid"] == daemon.pid and told["parts"] >= 6 else None

    now = t.until(parts, 60, "six parts in the journal")
    t.ok(not now["windows"]["windows"] and now["parser"]["starts"],
         "the status tells of what is done before the first window ends",
         f'{now["windows"]}, {now["parser"]}')
    told = now["exporter"]["journal"]
    cost = {"journal_ms": told["cpu_ns"] / 1e6, "daemon_ms": cpu_seconds(daemon.pid) * 1000}
    killed = time.time()
    daemon.kill()
    t.wait(daemon, 30)
    left = [name for name in os.listdir("/tmp/journal") if name.startswith("journal-")]
    daemon = t.start(*command)
    t.until(lambda: not any(name.startswith("journal-") and name in left for name in os.listdir("/tmp/journal")) and
            status()["pid"] == daemon.pid, 60, "the next daemon to take the journal over")
    t.stop(daemon)
    with open(t.path("journal.otlp"), "wb") as out:
        for name in sorted(os.listdir("/tmp/journal")):
            with open(f"/tmp/journal/{name}", "rb") as file:
                out.write(file.read())
    with open(t.path("journal.json"), "w", encoding="utf-8") as out:
        json.dump({"killed": killed, "left": left, "told": told, "cost": cost,
                   "files": os.listdir("/tmp/journal")}, out)


def memory_of(pid):
    """Bytes of a process and its children, and theirs, what they share with others by its share."""
    parents = {int(name): parent_of(name) for name in os.listdir("/proc") if name.isdigit()}
    family = [pid]
    for process in family:
        family += [child for child, parent in parents.items() if parent == process]
    sizes = {}
    for process in family:
        with open(f"/proc/{process}/comm", encoding="ascii") as comm, \
                open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
            pss = next(line for line in file if line.startswith("Pss:"))
            sizes[comm.read().strip()] = 1024 * int(pss.split()[1])
    return sizes


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def no_endpoint(t, names):
    """Without an endpoint the profiles go to a bounded local store; beside two hundred other processes."""
    others = t.start("sh", "-c", "for i in $(seq 200); do sleep 3600 & done; wait", start_new_session=True)
    burner = t.start("/opt/stacktap/workload/deep", 5, 3600)
    configuration("/tmp/store.conf",
                  profile={"rate": 199, "window_seconds": 2, "window_max_seconds": 3, "budget_ns": 0},
                  store={"directory": "/tmp/store", "max_bytes": 262144}, serve={"listen": "unix:/tmp/serve.socket"},
                  metrics={"listen": "unix:/tmp/metrics.socket"},
                  # what pprof has a label for
                  relabel={"rule": r"set container.id \1 if deployment.environment.name (.*)"})
    daemon = t.start("/opt/stacktap/bin/stacktapd", "--config", "/tmp/store.conf", env=dict(os.environ, **names))
    t.until(lambda: glob.glob("/tmp/store/*.otlp"), 60, "a file in the store")
    time.sleep(8)
    sizes, limit = memory_of(daemon.pid), (64 << 20) + (128 << 10) * os.cpu_count()
    t.ok(len(sizes) >= 3 and sum(sizes.values()) <= limit,
         f"the daemon and its helpers take {sum(sizes.values())} bytes of {limit}: {sizes}")
    # which takes more
    live(t, burner)
    t.stop(daemon)
    t.stop(burner)
    os.killpg(others.pid, signal.SIGKILL)
    t.end_of(others)
    files = sorted(glob.glob("/tmp/store/*.otlp"))
    size = sum(map(os.path.getsize, files))
    t.ok(files and size <= 262144, f"{len(files)} files, {size} bytes in the store")
    with open(t.path("report.txt"), "w", encoding="utf-8") as f:
        f.write(t.stacktap("report", "--limit", 5, "/tmp/store").stdout)


def ask(target, path="/tmp/serve.socket"):
    """The daemon's answer, which waits for the seconds that are asked for."""
    connection = http.client.HTTPConnection("localhost", timeout=240)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(path)
    connection.request("GET", target)
    answer = connection.getresponse()
    return answer.status, answer.read()


def scrape(t, path, name):
    """What the endpoint says at this moment, for `make test-dashboard`."""
    with open(t.path(name), "wb") as file:
        file.write(ask("/metrics", path)[1])


def ask_store(target):
    """The same of what is stored, for which a host that is busy may have less than a minute of time."""
    for _ in range(4):
        code, answer = ask(target)
        if code != 503:
            break
    return code, answer


def at_own_rate(t, burner, rate):
    """A profile, and whether a session of that rate was there meanwhile; one that was over too soon is asked for again."""
    target = f"/debug/pprof/profile?rate={rate}&event=cpu-clock&pid={burner.pid}"
    for seconds in (2, 8, 32):
        answers, is_seen = [], False
        asking = threading.Thread(target=lambda: answers.append(ask(f"{target}&seconds={seconds}")))
        asking.start()
        while asking.is_alive():
            sessions = json.loads(t.stacktap("status", "--json").stdout)["sessions"]
            is_seen |= any(source["rate_hz"] == rate for session in sessions for source in session["sources"])
        asking.join()
        if is_seen or answers[0][0] != 200:
            break
    return *answers[0], is_seen


def live(t, burner):
    """Profiles of the next seconds, while the daemon's own go where they went."""
    other = t.start("/opt/stacktap/workload/deep", 2, 3600)
    began = time.time()
    code, profile = ask(f"/debug/pprof/profile?seconds=3&pid={burner.pid}")
    ended = time.time()
    t.ok(code == 200, f"a profile of the next seconds for go tool pprof: {code}", profile[:300] if code != 200 else "")
    with open(t.path("live.pb.gz"), "wb") as file:
        file.write(profile)
    # not of those that receivers are to take: what pprof has no word for is missing
    t.stacktap("convert", "-f", "otlp", "-o", t.path("live.converted"), t.path("live.pb.gz"))
    code, page = ask("/flamegraph?seconds=1&process=deep")
    t.ok(code == 200 and b"descend" in page, f"and a flame graph of them: {code}, {len(page)} bytes")
    t.equal(ask("/debug/pprof/profile?seconds=1&pid=1999999")[0], 404, "of a process that is not there, 404")
    # what comes later pushes out of the store what is to be compared
    with open(t.path("stored.otlp"), "wb") as out:
        for path in sorted(glob.glob("/tmp/store/*.otlp")):
            with open(path, "rb") as file:
                out.write(file.read())
    # who reads the store has the lowest priority, and a minute
    for process in (burner, other):
        process.send_signal(signal.SIGSTOP)
    code, timeline = ask_store("/store/timeline.json?process=deep")
    t.ok(code == 200 and json.loads(timeline)["events"][0]["samples"] > 0, f"the store's timeline: {code}", timeline[:300])
    for process in (burner, other):
        code, report = ask_store(f"/store/report.json?pid={process.pid}")
        t.ok(code == 200 and {one["pid"] for event in json.loads(report)["events"] for one in event["processes"]} == {process.pid},
             f"what is stored of a process by its number: {code}", report[:600])
    t.equal([ask(f"/store/{what}")[0] for what in ("?pid=1999999", "report.json?pid=1999999", "report.json?pid=deep")], [200, 404, 400],
            "the page for any; of one that is not there, 404; of none, 400")
    code, page = ask_store("/store/flamegraph?process=deep")
    t.ok(code == 200 and b"descend" in page, f"and a flame graph of what is stored: {code}, {len(page)} bytes", page[:300])
    for process in (burner, other):
        process.send_signal(signal.SIGCONT)
    code, profile, is_seen = at_own_rate(t, burner, 997)
    t.ok(code == 200, f"a profile at a rate of its own: {code}", profile[:300] if code != 200 else "")
    t.ok(is_seen, "by a session of that rate")
    with open(t.path("rate.pb.gz"), "wb") as file:
        file.write(profile)
    t.stacktap("convert", "-f", "otlp", "-o", t.path("rate.converted"), t.path("rate.pb.gz"))
    event = json.loads(t.stacktap("report", "--json", t.path("rate.converted")).stdout)["events"][0]
    # its ceiling of 0.2 %, which an emulated CPU does not keep when its host is busy, doubles periods
    t.ok(event["weight"] / event["samples"] * 997 / 1e9 > 0.99,
         "and the weight of that rate, or of what its ceiling leaves of it", (event["samples"], event["weight"]))
    process = event["processes"][0]
    t.equal((process["service_name"], process["container_id"]), ("daemon-test", "test lab"),
            "and OTEL_SERVICE_NAME, and by a rule OTEL_RESOURCE_ATTRIBUTES, of the daemon")
    t.equal(len(json.loads(t.stacktap("status", "--json").stdout)["sessions"]), 1, "its session is gone, the daemon's is there")
    code, refusal = ask("/flamegraph?seconds=1&rate=99&event=nothing")
    t.ok(code == 400 and b"nothing" in refusal, f"an event that there is not: {code}", refusal)
    t.ok(status()["serve"]["address"] == "/tmp/serve.socket", "the status says where", status()["serve"])
    t.stop(other)
    metrics = dict(line.rsplit(" ", 1) for line in ask("/metrics", "/tmp/metrics.socket")[1].decode().splitlines()
                   if not line.startswith("#"))
    of_module = {name: float(metrics.get(f'stacktap_module_{name}_total{{cpu="0"}}', 0))
                 for name in ("calls", "recorded", "filtered", "lost", "handler_seconds")}
    t.ok(of_module["recorded"] and of_module["handler_seconds"] > 0 and
         of_module["calls"] >= of_module["recorded"] + of_module["filtered"] + of_module["lost"],
         f"metrics have what the module counts on a CPU: {of_module}")
    threads = {name: float(value) for name, value in metrics.items() if name.startswith("stacktap_thread_")}
    t.ok(len(threads) == 4 and 0 < sum(threads.values()) < float(metrics["stacktap_cpu_seconds_total"]),
         f"and the time of each thread: {threads}")
    with open(t.path("live.json"), "w", encoding="utf-8") as out:
        json.dump({"pid": burner.pid, "began": began, "ended": ended}, out)


def host(t):
    with open(os.path.join(t.dir, "ledger.jsonl"), encoding="utf-8") as f:
        ledger = [json.loads(line) for line in f]
    verdicts = [entry.get("status") for entry in ledger]
    with open(os.path.join(t.dir, "status.json"), encoding="utf-8") as f:
        status = json.load(f)
    exporter = status["exporter"]
    t.ok(exporter["retries"] >= 3, f"503, 429 and the broken connection were retried ({exporter})")
    pauses = [after["time"] - before["time"] for before, after in zip(ledger, ledger[1:])
              if "retry-after" in (before["step"] or "")]
    # this machine's clock against the guest's, which a busy host sets going too fast
    t.ok(len(pauses) == 2 and min(pauses) >= RETRY_AFTER / 2,
         f"no request for as long as Retry-After says ({', '.join(f'{p:.1f}' for p in pauses)} s)")
    t.ok(exporter["payloads_dropped"] >= 1, "400 was dropped and counted")
    t.equal(exporter["partial_rejected"], 3, "a partial success is counted and not sent again")
    t.equal([exporter["bad_responses"] >= 1, exporter["payloads_unconfirmed"]], [True, 1],
            "the payload that was answered by garbage is counted, and not as sent")
    # those of the first daemon: six were accepted then
    t.equal([entry["headers"].get("X-From-File") for entry in ledger[:6]], ["a token"] * 6, "each request has the header that the file says")
    t.ok(len({entry.get("connection") for entry in ledger}) < len(ledger),
         f"connections are kept alive ({verdicts})")
    check = subprocess.run(["python3", "-B", os.path.join(t.top, "tests/otlp/check.py"),
                            os.path.join(t.dir, "received.otlp")], capture_output=True, text=True,
                           check=False)
    t.ok(check.returncode == 0, "every payload conforms" if not check.returncode else
         f"payloads conform: {check.stdout[-2000:]}{check.stderr[-500:]}")
    samples = t.load("received.otlp")
    attributes = dict(samples[0].process.attributes)
    t.equal(attributes.get("deployment.environment.name"), "test lab",
            "OTEL_RESOURCE_ATTRIBUTES reach the receiver")
    t.ok(any(s.process.service_name == "daemon-test" for s in samples), "OTEL_SERVICE_NAME too")
    pushed(t)
    recovered(t)
    asked(t)
    shown(t)


def shown(t):
    """What README.md shows of a report is what one of a recording of this guest looks like."""
    sys.path.insert(0, os.path.join(t.top, "tests/cli"))
    import shown as documents
    with open(os.path.join(t.dir, "report.txt"), encoding="utf-8") as f:
        text = f.read()
    block = next(block for block in documents.blocks("README.md") if "quality: " in block.lines[-1])
    # the guest's programs, their functions, what not all recordings have; a PMU's event is no fallback
    names = [r"\S+(?= \(\d+\), )", r"(?<=service ).*", r"(?<=\[[ku]\] ).*", r"\[[ku]\]", r"\s*± \d+\.\d+", r", \S+ % missed \(late timers\)"]
    names += [] if t.arch == "x86_64" else [" counted as cpu-clock .*"]
    t.equal(documents.missing(block, text, names), [], "README.md shows what report prints")


def pushed(t):
    import wire
    values, wrong = [], []
    for payload in wire.read(os.path.join(t.dir, "metrics.received")):
        data, complaints = wire.decode(payload, "MetricsData")
        metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
        samples = metrics["stacktap.windows.samples"].sum.data_points[0].as_int
        values.append(samples)
        wrong += complaints
    t.equal(wrong, [], "metrics conform")
    calls = metrics["stacktap.module.calls"].sum.data_points
    t.ok(len(values) > 2 and values == sorted(values) and values[-1],
         f"metrics come to the receiver of profiles: samples {values[:3]} to {values[-1]}")
    t.ok(len(calls) > 1 and all(dict((a.key, a.value.string_value) for a in point.attributes).get("cpu") for point in calls) and
         any(point.as_int for point in calls), "with what the module counts on each CPU")


def recovered(t):
    with open(os.path.join(t.dir, "journal.json"), encoding="utf-8") as f:
        ran = json.load(f)
    killed = ran["killed"]
    samples = [(time / 1e9, dict(sample.profile.attributes).get("stacktap.recovered"))
               for sample in t.load("journal.otlp") if sample.process.executable == "deep"
               for time in sample.timestamps]
    before = sorted(time for time, _ in samples if time < killed)
    t.ok(len(ran["left"]) >= 1 and not [name for name in ran["files"] if name.startswith("journal-")],
         f"a kill leaves a journal, which the next daemon takes over ({ran['left']}, {ran['files']})")
    t.ok(before and killed - before[-1] < 2, "kill -9 loses less than 2 s: the last sample is " +
         (f"{killed - before[-1]:.2f} s older" if before else "none"))
    # the burner always runs: a part that is missing is a gap
    gaps = [later - earlier for earlier, later in zip(before, before[1:])]
    t.ok(gaps and max(gaps) < 1, f"and none before: {len(before)} samples, the largest gap {max(gaps, default=0):.2f} s")
    t.ok(any(mark for time, mark in samples if time < killed) and not any(mark for time, mark in samples if time > killed),
         "what was recovered says so, and nothing else does")
    share = ran["cost"]["journal_ms"] / ran["cost"]["daemon_ms"]
    # how much that is depends on how busy the host is
    t.ok(share > 0, f"the journal takes {100 * share:.1f} % of the daemon's time, its start included: {ran['cost']}")


def asked(t):
    with open(os.path.join(t.dir, "live.json"), encoding="utf-8") as f:
        ran = json.load(f)
    samples = t.load("live.converted")
    t.equal({sample.process.pid for sample in samples}, {ran["pid"]}, "the profile of a process has nothing of another")
    names = {frame.function for sample in samples for frame in sample.stack}
    t.ok({"descend", "bottom"} <= names, f"its functions have their names ({sorted(names)[:20]})")
    profile = samples[0].profile
    stored, periods, worth = [], set(), 0
    for sample in t.load("stored.otlp"):
        times = [time for time in sample.timestamps if profile.start <= time < profile.start + profile.duration]
        if sample.process.pid == ran["pid"] and times:
            stored += times
            periods.add(sample.profile.period)
            worth += len(times) * sample.profile.period
    t.ok(ran["began"] <= profile.start / 1e9 and profile.start / 1e9 + profile.duration / 1e9 <= ran["ended"] and
         profile.duration >= 3e9, f"it is of its time: {profile.duration / 1e9:.3f} s")
    count = sum(sum(sample.values) for sample in samples)
    # where the module degrades meanwhile, periods differ, and the values are what samples are worth
    t.ok(stored and (len(stored) == count if len(periods) == 1 else abs(worth - count) <= len(stored)),
         f"and has the samples that the store has of it: {len(stored)}, {count}")
    t.ok(len(periods) > 1 or {profile.period} == periods, f"each worth what it is worth there: {periods}")

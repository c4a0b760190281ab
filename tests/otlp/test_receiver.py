#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the receiver and its script, over real connections."""

import email.utils
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import make_sample
import receiver
import script
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
PAYLOAD = make_sample.encode(make_sample.build())
HEADERS = {"Content-Type": receiver.CONTENT_TYPE, "Content-Encoding": "gzip",
           receiver.VERSION_HEADER: "1"}


class Running:
    """A receiver process and one client connection to it."""

    def __init__(self, *options):
        self.directory = tempfile.TemporaryDirectory()
        self.path = lambda name: os.path.join(self.directory.name, name)
        self.process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(HERE, "receiver.py"), "--output",
             self.path("out.otlp"), "--ledger", self.path("ledger"), "--port-file",
             self.path("port"), *options], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.client = None
        self.connect()

    def connect(self):
        """Start over on a new connection."""
        if self.client:
            self.client.close()
        self.client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)

    def post(self, body=None, headers=None, path=receiver.PATH, method="POST", **kwargs):
        self.client.request(method, path, gzip.compress(PAYLOAD) if body is None else body,
                            HEADERS if headers is None else headers, **kwargs)
        response = self.client.getresponse()
        return response, response.read()

    def ledger(self):
        with open(self.path("ledger"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def stored(self):
        return wire.read(self.path("out.otlp"))

    def stop(self):
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=15)
        self.directory.cleanup()
        return self.process.returncode, json.loads(out)


class Receiver(unittest.TestCase):
    def start(self, *options):
        running = Running(*options)
        self.addCleanup(lambda: running.process.poll() is not None or running.stop())
        return running

    def status(self, running, *args, **kwargs):
        response, body = running.post(*args, **kwargs)
        if response.status >= 400:
            status, complaints = wire.decode(body, "Status")
            self.assertEqual(complaints, [])
            self.assertEqual(status.code, receiver.RPC_CODES.get(response.status, 13))
            self.assertTrue(status.message)
        self.assertEqual(response.getheader("Content-Type"), receiver.CONTENT_TYPE)
        return response.status

    def test_accepts(self):
        running = self.start()
        with open(running.path("port"), encoding="ascii") as file:
            self.assertEqual(int(file.read()), running.port)
        response, body = running.post()
        self.assertEqual((response.status, body), (200, b""))
        self.assertEqual(self.status(running, PAYLOAD, {**HEADERS, "Content-Encoding":
                                                        "identity"}), 200)
        self.assertEqual(self.status(running, PAYLOAD, {"Content-Type": receiver.CONTENT_TYPE}),
                         200)
        self.assertEqual(running.stored(), [PAYLOAD] * 3)
        rows = running.ledger()
        self.assertEqual([row["connection"] for row in rows], [1, 1, 1])
        self.assertEqual(rows[0]["bytes_compressed"], len(gzip.compress(PAYLOAD)))
        self.assertEqual(rows[0]["bytes_uncompressed"], len(PAYLOAD))
        self.assertEqual(rows[0]["headers"][receiver.VERSION_HEADER], "1")
        self.assertEqual(rows[0]["violations"], [])
        running.connect()
        running.post()
        self.assertEqual(running.ledger()[3]["connection"], 2)
        code, totals = running.stop()
        self.assertEqual(code, 0)
        self.assertEqual((totals["requests"], totals["accepted"], totals["refused"],
                          totals["connections"], totals["violations"]), (4, 4, 0, 2, 0))
        self.assertEqual(totals["bytes_uncompressed"], 4 * len(PAYLOAD))

    def test_chunked(self):
        running = self.start()
        body = gzip.compress(PAYLOAD)
        parts = iter([body[:100], body[100:]])
        self.assertEqual(self.status(running, parts, encode_chunked=True), 200)
        self.assertEqual(self.status(running), 200)
        self.assertEqual(running.stored(), [PAYLOAD] * 2)
        self.assertEqual([row["connection"] for row in running.ledger()], [1, 1])

    def test_expect_continue(self):
        running = self.start()
        self.assertEqual(self.status(running, headers={**HEADERS, "Expect": "100-continue"}), 200)

    def test_refuses(self):
        running = self.start("--body-limit", "100000")
        bomb = gzip.compress(bytes(1 << 24))
        for expected, args, kwargs in (
                (415, (), {"headers": {**HEADERS, "Content-Type": "application/json"}}),
                (400, (PAYLOAD,), {"headers": {**HEADERS, "Content-Encoding": "zstd"}}),
                (400, (PAYLOAD,), {}),
                (400, (gzip.compress(PAYLOAD)[:-9],), {}),
                (400, (gzip.compress(b"\x0a\x7f"),), {}),
                (404, (), {"path": "/v1/profiles"}),
                (405, (), {"method": "PUT"}),
                (413, (bomb,), {}),
                (200, (), {})):
            with self.subTest(expected=expected, kwargs=kwargs):
                self.assertEqual(self.status(running, *args, **kwargs), expected)
        self.assertEqual(self.status(running, bytes(100001)), 413)
        rows = running.ledger()
        self.assertEqual({row["connection"] for row in rows}, {1})
        self.assertEqual([row["stored"] for row in rows], [False] * 8 + [True, False])
        self.assertEqual(running.stored(), [PAYLOAD])

    def test_refuses_raw(self):
        running = self.start("--body-limit", "1000")
        start = f"POST {receiver.PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: " \
                f"{receiver.CONTENT_TYPE}\r\n"
        chunked = "Transfer-Encoding: chunked\r\n\r\n"
        for rest, expected in (("\r\n", 411), ("Content-Length: -5\r\n\r\n", 411),
                               ("Content-Length: 9\r\n\r\nshort", 400),
                               (chunked + "zz\r\n", 400), (chunked + "-1\r\n", 413),
                               (chunked + "3e9\r\n", 413)):
            with self.subTest(rest=rest), \
                    socket.create_connection(("127.0.0.1", running.port), 10) as raw:
                raw.sendall((start + rest).encode())
                raw.shutdown(socket.SHUT_WR)
                reply = raw.makefile("rb").read()
                self.assertIn(f" {expected} ".encode(), reply.split(b"\r\n")[0])
                self.assertIn(b"Connection: close", reply)
        self.assertEqual(len(running.ledger()), 6)
        self.assertEqual(self.status(running), 413)

    def test_version_header(self):
        running = self.start()
        for value in ("01", "", "2", "1,1", "1 1"):
            self.assertEqual(self.status(
                running, headers={**HEADERS, receiver.VERSION_HEADER: value}), 400, value)
        with socket.create_connection(("127.0.0.1", running.port), 10) as raw:
            raw.sendall(f"POST {receiver.PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: "
                        f"{receiver.CONTENT_TYPE}\r\n{receiver.VERSION_HEADER}: 1\r\n"
                        f"{receiver.VERSION_HEADER}: 1\r\nContent-Length: 0\r\n\r\n".encode())
            self.assertIn(b" 400 ", raw.recv(100))
        strict = self.start("--require-version")
        without = {key: value for key, value in HEADERS.items() if key != receiver.VERSION_HEADER}
        self.assertEqual(self.status(strict, headers=without), 400)
        self.assertEqual(self.status(strict), 200)

    def test_violations(self):
        running = self.start()
        data = make_sample.build()
        data.dictionary.string_table.append("orphan")
        self.assertEqual(self.status(running, gzip.compress(make_sample.encode(data))), 200)
        self.assertIn("is not used", running.ledger()[0]["violations"][0])
        self.assertEqual(running.stop()[1]["violations"], 1)
        blind = self.start("--no-check")
        self.assertEqual(self.status(blind), 200)
        self.assertIsNone(blind.ledger()[0]["violations"])

    def test_script_of_errors(self):
        running = self.start("--script", "503:retry-after=2,503,429:retry-after-date=5,400,413,"
                             "404,500:store=1,ok*2,502")
        statuses = []
        for _ in range(11):
            response, body = running.post()
            statuses.append(response.status)
            if response.status >= 400:
                self.assertIn("scripted", wire.decode(body, "Status")[0].message)
            if len(statuses) == 1:
                self.assertEqual(response.getheader("Retry-After"), "2")
            elif len(statuses) == 2:
                self.assertIsNone(response.getheader("Retry-After"))
            elif len(statuses) == 3:
                moment = email.utils.parsedate_to_datetime(response.getheader("Retry-After"))
                self.assertAlmostEqual(moment.timestamp(), time.time() + 5, delta=2)
        self.assertEqual(statuses, [503, 503, 429, 400, 413, 404, 500, 200, 200, 502, 200])
        rows = running.ledger()
        self.assertEqual([row["status"] for row in rows], statuses)
        self.assertEqual(sum(row["stored"] for row in rows), 4)
        self.assertEqual(len(running.stored()), 4)
        self.assertEqual({row["connection"] for row in rows}, {1})

    def test_script_of_successes(self):
        running = self.start("--script", "partial:rejected=3,partial-warning,garbage,redirect")
        for rejected in (3, 0):
            response, body = running.post()
            self.assertEqual(response.status, 200)
            partial = wire.decode(body, "ExportProfilesServiceResponse")[0].partial_success
            self.assertEqual(partial.rejected_profiles, rejected)
            self.assertTrue(partial.error_message)
        response, body = running.post()
        self.assertEqual(response.status, 200)
        with self.assertRaises(wire.WireError):
            wire.decode(body, "ExportProfilesServiceResponse")
        response, _ = running.post()
        self.assertEqual(response.status, 307)
        self.assertTrue(response.getheader("Location").endswith(receiver.PATH))
        self.assertEqual(len(running.stored()), 3)

    def test_script_of_cuts(self):
        running = self.start("--script", "close-before-response,close-mid-response,hang:0.3,ok*")
        with self.assertRaises((http.client.RemoteDisconnected, ConnectionResetError)):
            running.post()
        running.connect()
        with self.assertRaises(http.client.IncompleteRead):
            running.post()
        running.connect()
        before = time.monotonic()
        with self.assertRaises((http.client.RemoteDisconnected, ConnectionResetError)):
            running.post()
        self.assertGreater(time.monotonic() - before, 0.29)
        running.connect()
        self.assertEqual(self.status(running), 200)
        self.assertEqual(len(running.stored()), 1)
        self.assertEqual([row["connection"] for row in running.ledger()], [1, 2, 3, 4])

    def test_script_file_and_errors(self):
        with tempfile.NamedTemporaryFile("w", suffix=".script") as file:
            file.write("# outage\n503*2, 400\nok*\n")
            file.flush()
            running = self.start("--script", file.name)
            self.assertEqual([self.status(running) for _ in range(5)], [503, 503, 400, 200, 200])
        wrong = subprocess.run(
            [sys.executable, "-B", os.path.join(HERE, "receiver.py"), "--script", "teapot"],
            capture_output=True, text=True, check=False, timeout=10)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("'teapot' is not a step", wrong.stderr)

    def test_parallel_connections(self):
        running = self.start()

        def work():
            client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
            for _ in range(5):
                client.request("POST", receiver.PATH, gzip.compress(PAYLOAD), HEADERS)
                client.getresponse().read()
            client.close()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(running.stored(), [PAYLOAD] * 40)
        self.assertEqual(running.stop()[1]["accepted"], 40)

    def test_stops_inside_a_hang(self):
        running = self.start("--script", "hang:60")
        thread = threading.Thread(target=lambda: self.assertRaises(Exception, running.post))
        thread.start()
        while not os.path.exists(running.path("ledger")) or not running.ledger():
            time.sleep(0.01)
        before = time.monotonic()
        self.assertEqual(running.stop()[0], 0)
        self.assertLess(time.monotonic() - before, 10)
        thread.join()


class Scripts(unittest.TestCase):
    def test_steps(self):
        steps = script.Script("503:retry-after=2*2\nok, hang:1.5 # tail\n\n429:retry-after-date*")
        texts = [steps.next().text for _ in range(6)]
        self.assertEqual(texts, ["503:retry-after=2", "503:retry-after=2", "ok", "hang:1.5",
                                 "429:retry-after-date", "429:retry-after-date"])
        self.assertEqual(script.Script().next().name, "ok")

    def test_errors(self):
        for text, words in (("200", "not a step"), ("600", "not a step"), ("ok*0", "of times"),
                            ("ok*x", "of times"), ("503:retry=1", "not an option"),
                            ("503:retry-after=x", "not an option"), ("hang", "needs seconds"),
                            ("hang:x", "could not convert")):
            with self.assertRaisesRegex(ValueError, re.escape(words)):
                script.Script(text)


if __name__ == "__main__":
    unittest.main()

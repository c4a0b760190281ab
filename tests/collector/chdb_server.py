# SPDX-License-Identifier: Apache-2.0
"""ClickHouse's HTTP interface, as far as the Collector's exporter uses it, in front of its engine in process (chdb of PyPI).

Statements come as the request's body; rows to insert as the body in the format Native, with the statement in the URL.
Answers are Native as a client that names its revision reads it: block information, and after each column's type whether its
coding is a special one.
"""

import http.server
import json
import struct
import tempfile
import threading
import urllib.parse

from chdb import session

BLOCK_INFORMATION = b"\x01\x00\x02\xff\xff\xff\xff\x00"
FORMAT = " FORMAT Native"


def varint(number):
    out = b""
    while number > 0x7f:
        out += bytes((number & 0x7f | 0x80,))
        number >>= 7
    return out + bytes((number,))


def string(text):
    data = text.encode()
    return varint(len(data)) + data


def block(columns, rows):
    """@columns: (name, type), of which the exporter asks for these two types alone."""
    coders = {"String": string, "UInt32": lambda value: struct.pack("<I", value)}
    out = BLOCK_INFORMATION + varint(len(columns)) + varint(len(rows))
    for number, (name, kind) in enumerate(columns):
        out += string(name) + string(kind) + b"\0" + b"".join(coders[kind](row[number]) for row in rows)
    return out


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, directory):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.session = session.Session(directory)
        self.directory = directory
        self.refused = []
        self.run("CREATE DATABASE IF NOT EXISTS default")

    def run(self, statement):
        """([(name, type)], rows); what does not select has neither."""
        with self.lock:
            data = self.session.query(statement, "JSONCompact").bytes()
        answer = json.loads(data) if data and data.strip() else {"meta": [], "data": []}
        return [(column["name"], column["type"]) for column in answer["meta"]], answer["data"]

    def insert(self, statement, data):
        if not statement.rstrip().endswith(FORMAT):
            raise ValueError(f"no insert in the format Native: {statement[:200]}")
        with tempfile.NamedTemporaryFile(suffix=".native") as file:
            file.write(data)
            file.flush()
            self.run(statement.rstrip()[:-len(FORMAT)] + f" SELECT * FROM file('{file.name}', Native)")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def do_POST(self):
        statement = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)).get("query")
        data = self.body()
        try:
            if statement:
                self.server.insert(statement, data)
                status, answer = 200, b""
            else:
                columns, rows = self.server.run(data.decode())
                status, answer = 200, block(columns, rows) if columns else b""
        except (RuntimeError, ValueError, KeyError) as error:
            self.server.refused.append(str(error))
            status, answer = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

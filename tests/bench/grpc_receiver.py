#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A gRPC server that takes everything and hands out each request as it came over the wire. Guests have no grpcio, so it
speaks what it needs of HTTP/2: headers are not read, and windows are opened so wide that nothing waits for them.

usage: grpc_receiver.py FILE"""

import socketserver
import struct
import sys
import threading
import zlib

PREFACE = 24        # bytes before a client's first frame
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
ACK = END_STREAM = 1
END_HEADERS, PADDED = 4, 8
INITIAL_WINDOW = 4
WIDE = 1 << 30
ROOM = 65535        # of a connection before its first WINDOW_UPDATE


def literal(name, value):
    """A header field in HPACK, without its table."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


STATUS_200 = b"\x88"
ANSWER = STATUS_200 + literal(b"content-type", b"application/grpc")
TRAILER = literal(b"grpc-status", b"0")
EMPTY = bytes(5)    # not compressed, no bytes


class Connection(socketserver.StreamRequestHandler):
    def send(self, kind, flags, stream, payload=b""):
        self.wfile.write(struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload)

    def handle(self):
        streams = {}
        self.rfile.read(PREFACE)
        self.send(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, WIDE))
        self.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", WIDE - ROOM))
        while len(head := self.rfile.read(9)) == 9:
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            payload = self.rfile.read(int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                self.send(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.send(PING, ACK, 0, payload)
            elif kind == DATA:
                if flags & PADDED:
                    payload = payload[1:len(payload) - payload[0]]
                streams[stream] = streams.get(stream, b"") + payload
                self.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", max(1, len(payload))))
                if flags & END_STREAM:
                    self.request_ended(streams.pop(stream))
                    self.send(HEADERS, END_HEADERS, stream, ANSWER)
                    self.send(DATA, 0, stream, EMPTY)
                    self.send(HEADERS, END_HEADERS | END_STREAM, stream, TRAILER)

    def request_ended(self, data):
        is_compressed, size = struct.unpack(">BI", data[:5])
        body = data[5:]
        if len(body) != size:
            raise ValueError(f"{len(body)} bytes in a message of {size}")
        self.server.got(size, zlib.decompress(body, zlib.MAX_WBITS | 16) if is_compressed else body)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        """A client may go away at any time."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def start(got):
    """Its port; got(bytes as sent, message) is called for each request, in threads of their own."""
    server = Server(("127.0.0.1", 0), Connection)
    server.got = got
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    """Prints its port; each request becomes two lengths, as sent and of the message, and the message in FILE."""
    lock = threading.Lock()
    with open(sys.argv[1], "wb") as file:
        def got(size, message):
            with lock:
                file.write(struct.pack(">II", size, len(message)) + message)
                file.flush()

        print(start(got), flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()

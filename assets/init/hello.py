"""A service in plain Python: reactor starts it, gives it a port and routes http://localhost/hello/ to it."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = f"Hello from {os.environ.get('REACTOR_INSTANCE', 'hello')}: you asked for {self.path}\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/plain; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        print(format % args, flush=True)


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Hello).serve_forever()

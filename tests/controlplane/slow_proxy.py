"""An HTTP proxy of our extender that can delay requests or respond with status 500."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.controlplane.extender_process import ExtenderProcess


class SlowProxy:
    """Forwards requests, received over plain HTTP, to an extender.

    Attributes:
        extender: the extender process.
        broken: respond with status 500.
    """

    def __init__(self, extender: ExtenderProcess) -> None:
        self.extender, self.broken = extender, False
        self._may_forward = threading.Event()
        self._may_forward.set()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                proxy._may_forward.wait()
                status, content = (500, b"broken") if proxy.broken else extender.forward(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

            def handle(self) -> None:
                try:
                    super().handle()
                except (BrokenPipeError, ConnectionResetError):  # the client timed out
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._may_forward.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The URL prefix for kube-scheduler."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def pause(self) -> None:
        """Let requests wait from now on."""
        self._may_forward.clear()

    def resume(self) -> None:
        """Forward waiting and new requests."""
        self._may_forward.set()

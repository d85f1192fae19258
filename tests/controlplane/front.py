"""Something in front of our extender that answers slowly, or with 500, when it is told to."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.controlplane.beside import Beside


class Front:
    """Passes requests on to *ours*, over plain HTTP on this side.

    Attributes:
        ours: who answers.
        broken: answer 500 instead.
    """

    def __init__(self, ours: Beside) -> None:
        self.ours, self.broken = ours, False
        self._quick = threading.Event()
        self._quick.set()
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                front._quick.wait()
                code, answer = (500, b"broken") if front.broken else ours.pass_on(self.path, body)
                self.send_response(code)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing."""

            def handle(self) -> None:
                try:
                    super().handle()
                except (BrokenPipeError, ConnectionResetError):  # who asked has given up
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._quick.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where kube-scheduler asks."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def hold(self) -> None:
        """From now on requests have to wait."""
        self._quick.clear()

    def go(self) -> None:
        """Requests that wait are passed on, and those that come."""
        self._quick.set()

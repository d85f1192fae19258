"""The proxy that injects errors ends with all its connections."""

import gc
import http.client
import socket
import ssl
import threading
import warnings
from pathlib import Path

import trustme

from tests.history.error_proxy import ErrorProxy


def serve_watch(server: socket.socket, context: ssl.SSLContext, closed: threading.Event, end: threading.Event) -> None:
    """Send an event, send another one when the scheduler closed its connection, and read nothing more."""
    connection, _ = server.accept()
    with context.wrap_socket(connection, server_side=True) as watch:
        watch.recv(2**16)
        watch.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        closed.wait()
        watch.sendall(b"2\r\n{}\r\n")
        end.wait()


def test_a_proxy_with_an_open_watch_stops_without_open_connections(tmp_path: Path) -> None:
    """A connection that is open when the event loop ends is a ResourceWarning, in whichever test runs then."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    closed, end = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve_watch, args=(server, context, closed, end), daemon=True)
        thread.start()
        proxy = ErrorProxy(f"https://127.0.0.1:{server.getsockname()[1]}", tmp_path / "ca.pem", "token")
        scheduler = http.client.HTTPConnection(proxy.url.removeprefix("http://"))
        scheduler.request("GET", "/api/v1/pods?watch=true")
        assert scheduler.getresponse().read(2) == b"{}"
        scheduler.close()
        closed.set()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            proxy.stop()
            del proxy
            gc.collect()
        end.set()
        thread.join()
    assert [str(warning.message) for warning in caught] == []

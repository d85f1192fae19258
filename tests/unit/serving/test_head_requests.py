"""HEAD on the pages of both processes: the response of GET without its body."""

from http.client import HTTPConnection

import pytest

from extender.extender_api.routes import new_app
from extender.serving.diagnostics_app import make_diagnostics_app
from tests.unit.extender_api.http_harness import TIMEOUT, make_service, serve_in_thread
from tests.unit.serving.test_diagnostics_app import RecordedCalls, service


@pytest.mark.parametrize("process", ["serve", "schedule"])
def test_head_has_the_status_and_the_length_of_get_and_no_body(process: str) -> None:
    app = new_app(make_service()) if process == "serve" else make_diagnostics_app(service(RecordedCalls()))
    with serve_in_thread(app) as port:
        connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        for path, length in (("/healthz", "2"), ("/livez", "2"), ("/readyz", "2"), ("/livez/ping", "2")):
            connection.request("HEAD", path)
            with connection.getresponse() as response:
                assert (response.status, response.headers["content-length"], response.read()) == (200, length, b"")
        connection.request("HEAD", "/metrics")
        with connection.getresponse() as response:
            assert (response.status, response.read()) == (200, b"")
        connection.request("HEAD", "/healthz/unknown")
        with connection.getresponse() as response:
            assert response.status == 404
        connection.close()

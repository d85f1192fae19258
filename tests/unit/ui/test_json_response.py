"""Responses with JSON documents, and the pages whose documents are large."""

import gzip

import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from extender.ui.json_response import make_json_response
from extender.ui.page_source import RecordedSource
from extender.ui.pages import make_app


def make_request(encoding: str) -> Request:
    return Request({"type": "http", "headers": [(b"accept-encoding", encoding.encode())] if encoding else []})


def test_a_document_is_compressed_if_the_reader_accepts_it() -> None:
    document = b"[" + b"0," * 1000 + b"0]"
    response = make_json_response(make_request("br, gzip"), document, 400)
    assert response.status_code == 400
    assert response.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(bytes(response.body)) == document
    assert len(response.body) < 100


@pytest.mark.parametrize("encoding", ["", "br", "identity"])
def test_a_document_is_sent_as_it_is_to_other_readers(encoding: str) -> None:
    response = make_json_response(make_request(encoding), b"{}")
    assert response.body == b"{}"
    assert "Content-Encoding" not in response.headers
    assert response.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["cluster", "pods/ml/notebook"])
def test_the_documents_of_the_pages_are_compressed(demo_source: RecordedSource, path: str) -> None:
    response = TestClient(make_app(demo_source)).get(f"/ui/data/{path}", headers={"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["Content-Type"] == "application/json"
    assert "general-a1" in response.text


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("nodes/n", 404, "There is no node n."),
        ("pods/shop/nobody", 404, 'Pod nobody: there is no such pod in namespace "shop"'),
        ("volumes", 404, "There is no such page."),
    ],
    ids=["an unknown node", "an unknown pod", "an unknown document"],
)
def test_the_error_of_a_document_is_json(demo_source: RecordedSource, path: str, status: int, message: str) -> None:
    response = TestClient(make_app(demo_source)).get(f"/ui/data/{path}")
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/json")
    assert response.json() == {"errors": [message]}
    page = TestClient(make_app(demo_source)).get(f"/ui/{path}")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"

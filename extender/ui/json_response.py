"""Responses with JSON documents. That of a large cluster has a megabyte, and compressed a twentieth of it."""

import gzip
from functools import lru_cache

from fastapi import Request, Response


def make_json_response(request: Request, document: bytes, status: int = 200) -> Response:
    """Return *document* as the response to *request*, compressed if the reader accepts it."""
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        document, headers["Content-Encoding"] = _compress(document), "gzip"
    return Response(document, status, media_type="application/json", headers=headers)


@lru_cache(maxsize=2)
def _compress(document: bytes) -> bytes:
    """Return a document as gzip data. All readers of the page Cluster get the same document."""
    return gzip.compress(document, compresslevel=1)

"""An extender that decides nothing, to measure what the calls of kube-scheduler cost by themselves.

    python tests/bench/echo.py --port PORT [--one]

`filter` answers all node names of the request, or with `--one` the first of them. `prioritize` answers an empty list,
so all scores are 0. It reads only the form of request that kube-scheduler sends with `nodeCacheCapable: true`.
"""

import argparse
import asyncio
import re
from typing import Final, cast

import uvloop

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_NAMES_START: Final = b'"NodeNames":['


def make_answer(path: bytes, body: bytes, *, one: bool) -> bytes:
    """Return the answer to a request in JSON.

    Args:
        path: the path of the request; its last part is the verb.
        body: the body of the request.
        one: whether filter answers one name only.

    Raises:
        ValueError: the request has no list `NodeNames`.

    Source: kube-scheduler/extender/v1/types.go, ExtenderFilterResult, HostPriorityList (1.37).
    """
    if path.endswith(b"/prioritize"):
        return b"[]"
    start = body.index(_NAMES_START) + len(_NAMES_START)
    names = body[start : body.index(b"]", start)]
    return b'{"NodeNames":[%b]}' % (names.partition(b",")[0] if one else names)


class _EchoProtocol(asyncio.Protocol):
    def __init__(self, *, one: bool) -> None:
        self._one, self._received = one, b""
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's is no instance of this class

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, rest = self._received.partition(_HEAD_END)
        length = _LENGTH.search(head + b"\r\n")
        size = int(length.group(1)) if length else 0
        if not separator or len(rest) < size:
            return
        self._received = rest[size:]
        answer = make_answer(head.split(b" ", 2)[1], rest[:size], one=self._one)
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(answer), answer)
        )


async def _serve(port: int, *, one: bool) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _EchoProtocol(one=one), "127.0.0.1", port)
    print("the echo is ready", flush=True)
    await server.serve_forever()


def main() -> None:
    """Parse the command line and serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--one", action="store_true", help="answer one node in filter")
    args = parser.parse_args()
    uvloop.run(_serve(args.port, one=args.one))


if __name__ == "__main__":
    main()

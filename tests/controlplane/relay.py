"""Passes on TCP connections: `relay.py PORT TARGET`, both ports of the loopback address.

Stopped by SIGSTOP it is a network that has swallowed everything and tells nobody; killed, one that lost it for good.
"""

import asyncio
import sys
from contextlib import closing, suppress


async def passed_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Whatever comes from *source* goes to *sink*, until either ends."""
    with closing(sink), suppress(OSError):
        while data := await source.read(2**16):
            sink.write(data)
            await sink.drain()


async def main(port: int, target: int) -> None:
    """Serves until killed."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(passed_on(reader, far_writer), passed_on(far_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))

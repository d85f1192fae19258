"""Forwards TCP connections: `tcp_relay.py PORT TARGET`, both ports of the loopback address.

While it is stopped by SIGSTOP, connections stay open without traffic. When it is killed, they are reset.
"""

import asyncio
import sys
from contextlib import closing, suppress


async def copy_bytes(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy from *source* to *sink* until either ends."""
    with closing(sink), suppress(OSError):
        while data := await source.read(2**16):
            sink.write(data)
            await sink.drain()


async def main(port: int, target: int) -> None:
    """Serve until killed."""

    async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy_bytes(reader, target_writer), copy_bytes(target_reader, writer))

    server = await asyncio.start_server(on_connect, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))

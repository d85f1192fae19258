"""A TCP proxy between one scheduler and the API server that can be cut or stalled."""

import asyncio
from contextlib import suppress


class TcpProxy:
    """Forwards bytes in both directions while it is up."""

    def __init__(self, port: int) -> None:
        self._target_port = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_up = True
        self._is_flowing = asyncio.Event()
        self._is_flowing.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Abort all connections, and new ones at once."""
        self._is_up = False
        for writer in list(self._writers):
            writer.transport.abort()

    def stall(self) -> None:
        """Keep connections open and accept new ones, but forward nothing."""
        self._is_flowing.clear()

    def restore(self) -> None:
        """Accept new connections again. Stalled ones are aborted, as after a partition that lost packets."""
        for writer in list(self._writers):
            writer.transport.abort()
        self._is_up = True
        self._is_flowing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._is_up:
            writer.transport.abort()
            return
        target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers |= {writer, target_writer}
        for source, destination in ((reader, target_writer), (target_reader, writer)):
            task = asyncio.create_task(self._forward(source, destination))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(2**16):
                await self._is_flowing.wait()
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

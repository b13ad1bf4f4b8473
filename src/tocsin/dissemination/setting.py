"""The setting of a simulation: overlay, zones, server and byte model."""

from __future__ import annotations

from msgspec import Struct

from tocsin.dissemination.byte_model import ByteModel
from tocsin.dissemination.can.can import Can
from tocsin.dissemination.network.overlay import Overlay
from tocsin.model.errors import TocsinError


class Setting(Struct, frozen=True):
    """An overlay with its content-addressable network (overlay node z owns zone z), its server, and the byte model."""

    overlay: Overlay
    can: Can
    server: int = 0
    byte_model: ByteModel = ByteModel()
    seed: int = 1  # of the random choices of a strategy

    def __post_init__(self) -> None:
        nodes = len(self.overlay)
        if len(self.can) != nodes:
            raise TocsinError(
                f"{len(self.can)} zones and {nodes} overlay nodes; build a network with a zone for each node"
            )
        if not 0 <= self.server < nodes:
            raise TocsinError(
                f"node {self.server} cannot be the server; the overlay has the nodes 0 to {nodes - 1}"
            )

"""An engine as a file, and its state as bytes."""

from tocsin.engine.saving.files import EngineContents, SavedEngine, SavedEngineFile, save_engine
from tocsin.engine.saving.snapshots import Restored, restore_snapshot, take_snapshot
from tocsin.engine.saving.state import EngineParts

__all__ = [
    "EngineContents",
    "EngineParts",
    "Restored",
    "SavedEngine",
    "SavedEngineFile",
    "restore_snapshot",
    "save_engine",
    "take_snapshot",
]

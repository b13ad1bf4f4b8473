"""The folder for files that Tocsin can recreate, such as compiled code."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def user_cache() -> Path:
    """Return `TOCSIN_CACHE_DIR`, or Tocsin's folder in the user's cache; it need not exist yet."""
    override = os.environ.get("TOCSIN_CACHE_DIR")
    if override:
        return Path(override)
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "tocsin"

"""Archives of compiled kernels, which other machines look into before they compile: `TOCSIN_KERNELS`.

An archive is a tar file, or the folder it was extracted to. It has the folders of a cache, and a manifest: the target that
it was compiled for, Numba's version, a digest of the sources, and one of each file. Compiled code is loaded as Python
objects, so an archive is to be trusted like the program itself.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import tarfile
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm
import numba

from tocsin.model.errors import TocsinError

_log = logging.getLogger("tocsin")
_MANIFEST: Final = "tocsin-kernels.json"
VARIABLE: Final = "TOCSIN_KERNELS"

# What x86-64-v3 stands for: processors of Intel since 2013 and of AMD since 2015
_V3: Final = "avx,avx2,bmi,bmi2,cmov,cx16,cx8,f16c,fma,fxsr,lzcnt,mmx,movbe,popcnt,sahf,sse,sse2,sse3,sse4.1,sse4.2,ssse3,xsave"
PORTABLE: Final = "x86-64-v3" if platform.machine().lower() in ("x86_64", "amd64") else "generic"


class KernelArchiveError(TocsinError):
    """An archive of kernels cannot be used here."""


def target_environment(target: str) -> dict[str, str]:
    """Return the environment in which a process compiles for a target; `native` is this machine."""
    if target == "native":
        return {}
    features = ",".join(f"+{name}" for name in _V3.split(",")) if target == "x86-64-v3" else ""
    return {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": features}


class KernelArchive:
    """An archive that this process can use; raises `KernelArchiveError` if it cannot."""

    def __init__(self, path: Path, sources: str) -> None:
        self.path = path
        try:
            self._tar = None if path.is_dir() else tarfile.open(path)  # noqa: SIM115 - as long as the process
            manifest = json.loads(self._bytes(_MANIFEST))
            triple, cpu, features = manifest["target"]
            self.target = str(triple), str(cpu), str(features)
            self._digests: dict[str, str] = manifest["files"]
            made_by = manifest["numba"], manifest["sources"]
        except (OSError, tarfile.TarError, EOFError, ValueError, KeyError, TypeError) as fault:
            raise KernelArchiveError(f"it cannot be read: {_reason(fault, path)}") from None
        if made_by[0] != numba.__version__:
            raise KernelArchiveError(f"it was compiled by Numba {made_by[0]}, this is {numba.__version__}")
        if made_by[1] != sources:
            raise KernelArchiveError("it was compiled from other sources: make it anew with this version")
        self._check_target()

    def _check_target(self) -> None:
        """Raise `KernelArchiveError` if this machine's processor lacks what the archive was compiled for."""
        triple, cpu, features = self.target
        here = llvm.get_process_triple()
        if triple != here:
            raise KernelArchiveError(f"it was compiled for {triple}, this is {here}")
        has = llvm.get_host_cpu_features()
        lacks = [one[1:] for one in features.split(",") if one.startswith("+") and not has.get(one[1:])]
        if lacks:
            raise KernelArchiveError(
                f"it was compiled for {cpu}, and this processor has no {', '.join(lacks)}"
            )

    def names(self, folder: str) -> set[str]:
        """Return the names of the files in a folder: the compiled code of one module."""
        return {name.partition("/")[2] for name in self._digests if name.startswith(f"{folder}/")}

    def read(self, name: str) -> bytes | None:
        """Return a file, or None if it is not there or not as it was written."""
        if name not in self._digests:
            return None
        try:
            content = self._bytes(name)
            if hashlib.sha256(content).hexdigest() == self._digests[name]:
                return content
            why = "is damaged"
        except (OSError, tarfile.TarError, EOFError, KeyError) as fault:
            why = f"cannot be read: {_reason(fault, self.path)}"
        _refuse(self.path, f"{name} {why}")
        self._digests = {}  # the rest is no better
        return None

    def _bytes(self, name: str) -> bytes:
        if self._tar is None:
            return (self.path / name).read_bytes()
        member = self._tar.extractfile(name)
        if member is None:
            raise KeyError(name)
        return member.read()


@cache
def kernel_archives(sources: str) -> tuple[KernelArchive, ...]:
    """Return the archives that `TOCSIN_KERNELS` names and this process can use; others are named in the log."""
    found = []
    for text in os.environ.get(VARIABLE, "").split(os.pathsep):
        if text:
            try:
                found.append(KernelArchive(Path(text), sources))
            except KernelArchiveError as fault:
                _refuse(Path(text), str(fault))
    return tuple(found)


def write_archive(output: Path, folder: Path, target: tuple[Any, ...], sources: str) -> None:
    """Write the compiled code in a cache's folder as an archive."""
    files = sorted(folder.glob("*/*.nbc"))
    names = [one.relative_to(folder).as_posix() for one in files]
    manifest = {
        "target": list(target),
        "numba": numba.__version__,
        "sources": sources,
        "files": {
            name: hashlib.sha256(one.read_bytes()).hexdigest() for name, one in zip(names, files, strict=True)
        },
    }
    with tarfile.open(output, "w") as tar:
        content = json.dumps(manifest).encode()
        head = tarfile.TarInfo(_MANIFEST)
        head.size = len(content)
        tar.addfile(head, BytesIO(content))
        for name, one in zip(names, files, strict=True):
            tar.add(one, name)


def _reason(fault: Exception, path: Path) -> str:
    """Return why something of an archive cannot be read."""
    if not path.exists():
        return "there is no such file or folder"
    if isinstance(fault, FileNotFoundError) and fault.filename is not None:
        return f"the folder has no {Path(fault.filename).name}"
    return (fault.strerror if isinstance(fault, OSError) else None) or str(fault)


def _refuse(path: Path, why: str) -> None:
    _log.warning("%s=%s is not used: %s; compiling as usual", VARIABLE, path, why)

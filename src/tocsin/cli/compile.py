"""`tocsin compile`: compile ahead of time, for images and clusters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Annotated

import typer

from tocsin.cli.options import binary_to_be_written
from tocsin.cli.terminal import counted, note
from tocsin.model.errors import MatcherError, TocsinError

_MEGABYTE = 1_000_000


def compile_(
    matcher: Annotated[
        list[str] | None,
        typer.Option(
            "--matcher", metavar="NAME", help="Compile this matcher too; may be given several times."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Compile every matcher.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write an archive for other machines: see TOCSIN_KERNELS.",
            callback=binary_to_be_written,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="CPU",
            help="The processor that an archive is for: `native`, or a name that LLVM knows. "
            "Without it, one that most machines have: x86-64-v3, or `generic` on ARM.",
        ),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Print the processor time of each compiled function.")
    ] = False,
) -> None:
    """Compile the kernels of filters, sequences and views, so that nobody waits for them later."""
    from tocsin.engine.compilation import all_matchers  # noqa: PLC0415 - it brings the compiler
    from tocsin.matching.starting_matcher import INDEX  # noqa: PLC0415

    names = all_matchers() if every else tuple(dict.fromkeys([INDEX, *(matcher or ())]))
    unknown = set(names) - set(all_matchers())
    if unknown:
        raise MatcherError(f"there is no matcher `{min(unknown)}`; known: {', '.join(all_matchers())}")
    if output is not None:
        _write_archive(output, names, target)
    elif target is not None:
        raise typer.BadParameter("--target is for an archive: give --output too", param_hint="--target")
    else:
        _compile(names, report=report)


def _compile(names: tuple[str, ...], *, report: bool) -> None:
    """Compile into this user's cache, and print how much that was."""
    from tocsin.engine.compilation import compile_kernels  # noqa: PLC0415 - it brings the compiler
    from tocsin.structures.compile_log import compiled  # noqa: PLC0415
    from tocsin.structures.folders import user_cache  # noqa: PLC0415

    began, processor = perf_counter(), process_time()
    compile_kernels(names)
    found = compiled()
    if report:
        for one in sorted(found, key=lambda one: -one.seconds):
            kind = "kernel" if one.is_kernel else "helper"
            typer.echo(f"{one.seconds:8.3f} s  {kind}  {one.name.removeprefix('tocsin.')}")
    size = sum(one.stat().st_size for one in user_cache().glob("*/*.nbc"))
    kernels = sum(one.is_kernel for one in found)
    typer.echo(
        f"compiled {counted(kernels, 'kernel')} and {counted(len(found) - kernels, 'helper')} "
        f"in {perf_counter() - began:.1f} s ({process_time() - processor:.1f} s of processor time); "
        f"{user_cache()} has {size / _MEGABYTE:.1f} MB"
    )


def _write_archive(output: Path, names: tuple[str, ...], target: str | None) -> None:
    """Compile for another processor, in a process of its own: Numba reads its target when it is imported."""
    from tocsin.structures.kernel_archives import PORTABLE, VARIABLE, target_environment  # noqa: PLC0415

    chosen = target or PORTABLE
    note(f"compiling for {chosen}")
    with TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
        environment |= {"TOCSIN_CACHE_DIR": folder, **target_environment(chosen)}
        command = "import sys; from tocsin.cli.compile import compile_archive; compile_archive(*sys.argv[1:])"
        done = subprocess.run(  # noqa: S603 - this very program
            [sys.executable, "-c", command, folder, str(output.absolute()), *names],
            env=environment,
            check=False,
        )
    if done.returncode:
        raise TocsinError(f"nothing could be compiled for {chosen}; `--target native` is for this machine")
    typer.echo(f"{output} is for {chosen} and has {output.stat().st_size / _MEGABYTE:.1f} MB")


def compile_archive(folder: str, output: str, *names: str) -> None:
    """Compile into a folder, and write it as an archive."""
    from tocsin.engine.compilation import compile_kernels  # noqa: PLC0415 - it brings the compiler
    from tocsin.structures.jit import compile_target, sources_digest  # noqa: PLC0415
    from tocsin.structures.kernel_archives import write_archive  # noqa: PLC0415

    compile_kernels(names)
    write_archive(Path(output), Path(folder), compile_target(), sources_digest())

"""The Python that Spark's workers run, which must have Tocsin: checked, and set where that is possible, before a job starts.

A classic session hands `SparkContext.pythonExec` to its workers with each function. It is read from PYSPARK_PYTHON when the
context is made, and else is the `python3` on the workers' PATH, which is another Python where a script of a virtual environment
was started without activating it. With Spark Connect it is the server's choice, so that a worker can only be asked.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from ast import literal_eval
from collections.abc import Iterable, Iterator
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.model.errors import SparkError
from tocsin.spark.session_kinds import has_local_master, is_connect

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger("tocsin")
_NEEDED: Final = ("tocsin", "msgspec", "numba", "numpy", "pyarrow", "re2")
_DEFAULT: Final = "python3"  # of PySpark, if PYSPARK_PYTHON is not set
_PATIENCE: Final = 60.0  # seconds that a Python may take to say what it has
# An expression, because a worker without Tocsin cannot load any function of Tocsin's.
_PROBE: Final = (
    "(__import__('sys').executable, list(__import__('sys').version_info[:2]), "
    "[name for name in NAMES if __import__('importlib.util', fromlist=['util']).find_spec(name) is None])"
).replace("NAMES", repr(_NEEDED))
_checked: WeakKeyDictionary[SparkContext, str] = WeakKeyDictionary()  # the Python found to be right
_asked: WeakKeyDictionary[SparkSession, bool] = (
    WeakKeyDictionary()
)  # whether workers of Spark Connect read our files


def ensure_worker_python(spark: SparkSession) -> None:
    """Raise `SparkError` if Spark's workers run a Python without Tocsin; it says which, and what to set.

    On this machine, a Python that nobody chose is replaced by the one that runs now. Elsewhere, a worker is asked
    once per session.
    """
    if is_connect(spark):
        _check_connect(spark)
        return
    context = spark.sparkContext
    if _checked.get(context) == context.pythonExec:
        return
    if str(context.master).startswith("local"):
        _ensure_on_this_machine(context)
    else:
        _check(context, *_ask_worker(context))
    _checked[context] = context.pythonExec


def has_our_files(spark: SparkSession) -> bool:
    """Return whether workers read the files of this machine, as those of a local master do.

    The server of a Connect session may be on another machine, so a worker is asked for a file.
    """
    if not has_local_master(spark):
        return False
    if is_connect(spark):
        try:
            _check_connect(spark)
        except SparkError:  # raised again where the workers' Python matters
            return False
        return _asked[spark]
    return True


def _ensure_on_this_machine(context: SparkContext) -> None:
    """Set the Python of workers that start on this machine, unless somebody chose it; then check the choice."""
    found = shutil.which(context.pythonExec)
    if found is not None and Path(found) == Path(sys.executable):
        return
    if context.pythonExec == _DEFAULT != os.environ.get("PYSPARK_PYTHON"):
        _log.info(
            "Spark's workers would run %s; they run %s, as this process does",
            context.pythonExec,
            sys.executable,
        )
        context.pythonExec = sys.executable  # each function is sent with the Python that runs it
        return
    _check(context, *_ask_program(context, found))


def _ask_program(context: SparkContext, program: str | None) -> tuple[str, list[int], list[str]]:
    """Return a Python's path and version, and the modules that it lacks."""
    if program is None:
        raise _wrong(context, "there is no such program")
    try:
        answer = subprocess.run(  # noqa: S603 - Spark is about to run it
            [program, "-c", f"print({_PROBE})"],
            env={**os.environ, **context.environment},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
            check=True,
        )
        return _read(literal_eval(answer.stdout))
    except (OSError, subprocess.SubprocessError, SyntaxError, ValueError) as fault:
        raise _wrong(context, f"it does not answer as a Python does: {fault}") from None


def _ask_worker(context: SparkContext) -> tuple[str, list[int], list[str]]:
    """Return the same of a worker, by a job with one task."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - a client of Spark Connect may lack it

    try:
        return _read(context.parallelize([_PROBE], 1).map(eval).collect()[0])
    except (PySparkException, Py4JJavaError) as fault:
        told = fault.java_exception.getMessage() if isinstance(fault, Py4JJavaError) else fault
        raise _wrong(context, f"none could be asked: {_cause(told)}") from fault


def _check_connect(spark: SparkSession) -> None:
    """Ask a worker of Spark Connect, once per session; raise `SparkError` if it cannot run Tocsin."""
    if spark in _asked:
        return
    with TemporaryDirectory(prefix="tocsin-") as folder:
        secret = Path(folder) / "secret"
        secret.write_text(token_hex(16))
        try:
            frame = spark.range(0, 1, 1, 1).mapInArrow(connect_probe(str(secret)), "answer string")
            (answer,) = frame.collect()
        except PySparkException as fault:
            raise _wrong_connect(spark, "none could be asked", _cause(fault)) from fault
        executable, version, missing, content = json.loads(answer[0])
        reason = _difference(executable, version, missing)
        if reason is not None:
            raise _wrong_connect(spark, f"they run `{executable}`", reason)
        _asked[spark] = content == secret.read_text()


def connect_probe(path: str) -> Any:
    """Return a function for `mapInArrow` that answers as `_PROBE` does, and with the content of a file.

    It is sent as its code, because a worker without Tocsin cannot load any function of Tocsin's.
    """
    needed = _NEEDED

    def ask(batches: Iterable[Any]) -> Iterator[Any]:
        import json  # noqa: PLC0415
        import sys  # noqa: PLC0415
        from importlib.util import find_spec  # noqa: PLC0415

        import pyarrow as pa  # noqa: PLC0415

        missing = [name for name in needed if find_spec(name) is None]
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                content = file.read()
        except OSError:
            content = None
        answer = json.dumps([sys.executable, list(sys.version_info[:2]), missing, content])
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([answer])], names=["answer"])

    return ask


def _read(answer: Any) -> tuple[str, list[int], list[str]]:
    executable, version, missing = answer
    return str(executable), list(version), list(missing)


def _check(context: SparkContext, executable: str, version: list[int], missing: list[str]) -> None:
    """Raise `SparkError` for a Python of another version, or one that lacks a module."""
    reason = _difference(executable, version, missing)
    if reason is not None:
        raise _wrong(context, reason)


def _difference(executable: str, version: list[int], missing: list[str]) -> str | None:
    """Return why a Python cannot run what this process sends, or None if it can."""
    here = list(sys.version_info[:2])
    if version != here:
        numbers = [".".join(map(str, one)) for one in (version, here)]
        return f"that is Python {numbers[0]} ({executable}), and this process runs {numbers[1]}"
    return f"in {executable} there is no {', '.join(missing)}" if missing else None


def _wrong(context: SparkContext, reason: str) -> SparkError:
    is_local = str(context.master).startswith("local")
    remedy = (
        f"start with PYSPARK_PYTHON={sys.executable}, or without PYSPARK_PYTHON"
        if is_local
        else "install Tocsin on every node, and before the session starts set PYSPARK_PYTHON (with spark-submit also "
        "spark.pyspark.python) to the path of its Python there"
    )
    return SparkError(f"Spark's workers run `{context.pythonExec}`, but {reason}; {remedy}")


def _wrong_connect(spark: SparkSession, state: str, reason: str) -> SparkError:
    remedy = (
        f"start the server with PYSPARK_PYTHON={sys.executable}"
        if has_local_master(spark)
        else "install Tocsin on every node, and start the server with PYSPARK_PYTHON set to the path of its Python there"
    )
    return SparkError(
        f"the workers of this Spark Connect session cannot match: {state}, but {reason}; {remedy}"
    )


def _cause(text: object) -> str:
    """Return the line of a failed task's message that names the cause."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    told = [
        line
        for line in lines
        if "Error" in line or "Cannot run program" in line or "mismatch" in line.lower()
    ]
    return (told or lines or ["no reason was given"])[0]

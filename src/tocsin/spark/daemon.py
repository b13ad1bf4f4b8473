"""The process that Spark forks its Python workers from, with all that they need loaded once, before the first fork.

Set by `spark.python.daemon.module`; `local_session` does so. A worker then starts with the matchers' kernels in
memory instead of loading them itself.
"""

from __future__ import annotations

import gc
import sys
from contextlib import redirect_stdout, suppress

from pyspark.daemon import manager


def load() -> None:
    """Import what workers import, and load the kernels if an earlier process has compiled them.

    Nothing is compiled here: Spark waits for this process, and a worker that needs a kernel can compile it as well.
    """
    import msgspec  # noqa: F401, PLC0415 - in here, a missing module does not stop the daemon
    import numpy as np  # noqa: F401, PLC0415
    import pandas as pd  # noqa: F401, PLC0415
    import pyarrow as pa  # noqa: F401, PLC0415

    from tocsin.matching.adaptive.matcher import Adaptive  # noqa: PLC0415
    from tocsin.matching.starting_matcher import INDEX_KERNELS  # noqa: PLC0415
    from tocsin.structures.jit import is_compiled_before  # noqa: PLC0415

    if is_compiled_before(INDEX_KERNELS):
        Adaptive.warm_up()
    gc.collect()
    gc.freeze()  # the collections in workers need not look at any of it, and leave its memory shared


if __name__ == "__main__":
    # Whatever fails here fails again in the worker that needs it, where Spark reports it. Standard output is how the
    # daemon tells Spark its port: nobody else may write to it.
    with suppress(Exception), redirect_stdout(sys.stderr):
        load()
    manager()

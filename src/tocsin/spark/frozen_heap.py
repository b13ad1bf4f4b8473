"""What a worker keeps for many tasks, out of the garbage collector's sight.

PySpark runs a full collection after each task of a worker that stays. With PySpark, pandas, Numba and an index in memory, that
walks over hundreds of thousands of objects, and takes longer than a small micro-batch.
"""

from __future__ import annotations

import gc
from collections.abc import Hashable
from typing import Final

from pyspark import TaskContext

_MOST: Final = 256
_frozen: dict[Hashable, None] = {}  # the newest last


def freeze_heap(*stays: Hashable) -> None:
    """Have later collections leave out all objects of now, if some of what stays in memory is new.

    What was frozen before, and is garbage since then, is collected. Called at the end of a task, when kernels are loaded, too;
    in another process than a worker, whose objects are not ours to freeze, nothing happens.
    """
    if TaskContext.get() is None:
        return
    new = [one for one in stays if one not in _frozen]
    if not new:
        return
    _frozen.update(dict.fromkeys(new))
    while len(_frozen) > _MOST:
        del _frozen[next(iter(_frozen))]
    gc.unfreeze()
    gc.collect()
    gc.freeze()

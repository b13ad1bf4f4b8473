"""The paths of a matcher's places, and those of many sequences in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

from tests.sequences.outcomes import compiled, ids
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.sequences.running.paths import nodes_of, paths_of


def matcher_paths(matcher: AutomatonMatcher) -> set[bytes]:
    """Return the paths of all nodes."""
    graph = matcher._graph
    found = paths_of(graph.state, graph.streams, nodes_of(graph.state))
    return {row.tobytes() for row in np.ascontiguousarray(found)}


def paths_of_texts(texts: list[str], matcher: str = "oracle") -> list[list[str]]:
    """Return the paths of each text's nodes."""
    every = []
    for text in texts:
        runner = AutomatonMatcher(matcher=matcher)
        runner.add(ids(0), compiled(text), {})
        every.append(sorted(path.hex() for path in matcher_paths(runner)))
    return every


def paths_elsewhere(texts: list[str], seed: str) -> list[list[str]]:
    """Return the same of a process in which Python hashes strings by another seed."""
    done = subprocess.run(
        [sys.executable, "-c", "from tests.sequences import paths; paths.main()"],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    found: list[list[str]] = json.loads(done.stdout)
    return found


def main() -> None:
    """Read texts as JSON, and write the paths of each."""
    sys.stdout.write(json.dumps(paths_of_texts(json.load(sys.stdin))))

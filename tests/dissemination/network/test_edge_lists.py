"""Networks from files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tocsin.dissemination.network.edge_lists import read_edges
from tocsin.model.errors import TocsinError

LINKS = """# two routers and their neighbours
r1 r2 10Mbit
r2,  a , 3
a\tr2

b r1  # the same again:
r1 b
b b
alone alone
"""


def test_links_are_read_once_and_nodes_numbered_as_they_appear(tmp_path: Path) -> None:
    file = tmp_path / "links.txt"
    file.write_text(LINKS)
    topology = read_edges(file)
    assert topology.nodes == 4  # r1, r2, a, b
    assert topology.ends.tolist() == [[0, 1], [0, 3], [1, 2]]


def test_a_compressed_file_is_read_alike(tmp_path: Path) -> None:
    file = tmp_path / "links.txt.gz"
    file.write_bytes(gzip.compress(LINKS.encode()))
    assert read_edges(str(file)).nodes == 4


@pytest.mark.parametrize("line", ["c", "c,", ",c", "c #d", "c,,d"])
def test_a_line_that_is_no_link_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "links.txt"
    file.write_text(f"a b\n\n{line}\n")
    with pytest.raises(TocsinError, match=r"links\.txt, line 3: .* is no link; write the names of two nodes"):
        read_edges(file)


def test_a_binary_file_is_reported_in_printable_characters(tmp_path: Path) -> None:
    file = tmp_path / "links.bin"
    file.write_bytes(b"\x00\xff" * 10_000)
    with pytest.raises(TocsinError, match=r"line 1: `\\x00\\udcff.*…` is no link") as raised:
        read_edges(file)
    assert len(str(raised.value).encode()) < 1_000


def test_a_network_in_parts_is_refused_with_their_sizes(tmp_path: Path) -> None:
    file = tmp_path / "links.txt"
    # The long part's nodes appear in an order that makes its least node known late.
    chain = [f"c{(7 * i) % 40} c{(7 * i + 7) % 40}" for i in range(39)]
    file.write_text("\n".join(["a b", *chain, "x y", "y z"]))
    with pytest.raises(
        TocsinError, match=r"3 parts, of 40, 3, 2 nodes; keep .* largest one alone, in which `c0`"
    ):
        read_edges(file)
    file.write_text("\n".join(f"a{i} b{i}" for i in range(9)))
    with pytest.raises(TocsinError, match=r"9 parts, of 2, 2, 2, 2, 2 and 4 others, none larger"):
        read_edges(file)


def test_a_file_that_is_not_there_has_no_link_or_ends_early_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "links.txt.gz"
    with pytest.raises(TocsinError, match="there is no file"):
        read_edges(file)
    file.write_bytes(gzip.compress(b"# nothing\na a\n"))
    with pytest.raises(TocsinError, match="no link between two nodes"):
        read_edges(file)
    file.write_bytes(gzip.compress(LINKS.encode())[:-12])
    with pytest.raises(TocsinError, match="cannot be read further"):
        read_edges(file)

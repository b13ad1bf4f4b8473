"""What must hold of a BE-Tree's arrays between any two calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import SIBLING
from tocsin.matching.be_tree.matcher import BeTree
from tocsin.matching.be_tree.state import (
    CAPACITY,
    COUNT,
    DEAD,
    DIRECTORY,
    DIRECTORY_CLASS,
    FIELD,
    FREE_FORM,
    FREE_NODE,
    HIGHEST,
    KIND,
    LEAF,
    LEAF_CLASS,
    LEAST,
    LEFT,
    LIVE_FORMS,
    LIVE_NODES,
    LOWEST,
    MEMBER,
    MEMBERS,
    MOST,
    NODE,
    OWN,
    OWNER,
    PARTITION,
    PARTITIONS,
    PLACE,
    RIGHT,
    ROOT,
    ROWS,
    SPLIT,
    SPOT,
    TODO,
    TOP_FORM,
    TOP_NODE,
    TREE,
    UP,
    USES,
    State,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.structures import hash_index

SIZES = [1, 2, 3, 4, *(size for log in range(2, 40) for size in (6 << (log - 2), 8 << (log - 2)))]
Interval = tuple[int, int]


def check_invariants(matcher: BeTree) -> None:
    state = matcher._state
    assert state.tops[TODO] == 0
    walk = Walk(state, matcher.capacity)
    walk.visit(ROOT, -1, {})
    walk.check_totals()
    check_lists(state)


class Walk:
    """Goes through the tree from the root, and notes what it comes to."""

    def __init__(self, state: State, capacity: int) -> None:
        self.state = state
        self.capacity = capacity
        self.nodes: set[int] = set()
        self.partitions: set[int] = set()
        self.numbers: list[int] = []
        self.leaves: list[tuple[int, int]] = []
        self.directories: list[tuple[int, int]] = []

    def visit(self, node: int, up: int, path: dict[int, Interval]) -> int:
        """Check a node and all below it; return the members of its leaf and of those in its tree below."""
        state = self.state
        assert node not in self.nodes
        self.nodes.add(node)
        row, about = state.nodes[node].tolist(), state.about[node].tolist()
        assert about[UP] == up
        assert node == ROOT or about[MEMBERS] or row[PARTITIONS] or row[LEFT] >= 0 or row[RIGHT] >= 0
        self.check_leaf(node, path)
        self.check_directory(node, path)
        own = int(about[MEMBERS])
        for side, low, high in (
            (LEFT, state.bounds[node, 0], row[SPLIT]),
            (RIGHT, row[SPLIT] + 1, state.bounds[node, 1]),
        ):
            child = row[side]
            if child >= 0:
                assert node != ROOT
                assert state.about[child, PARTITION] == about[PARTITION]
                assert state.bounds[child].tolist() == [low, high]
                field = int(state.partitions[about[PARTITION], FIELD])
                own += self.visit(child, node, {**path, field: (int(low), int(high))})
        return own

    def check_leaf(self, node: int, path: dict[int, Interval]) -> None:
        state = self.state
        row, about = state.nodes[node].tolist(), state.about[node].tolist()
        assert about[MEMBERS] <= about[CAPACITY]
        assert about[CAPACITY] % self.capacity == 0
        assert (row[LEAF] >= 0) == (row[ROWS] > 0)
        if row[LEAF] < 0:
            assert about[MEMBERS] == about[DEAD] == 0
            return
        assert row[ROWS] <= SIZES[about[LEAF_CLASS]]
        self.leaves.append((row[LEAF], SIZES[about[LEAF_CLASS]]))
        at, end, members, dead = row[LEAF], row[LEAF] + row[ROWS], 0, 0
        while at < end:
            number, size = state.leaves.rows[at].tolist()
            if number < 0:
                dead += size + 1
            else:
                members += 1
                self.numbers.append(number)
                assert state.forms[number, NODE] == node
                assert state.forms[number, SPOT] == at - row[LEAF]
                found = intervals(state, at)
                for field, (low, high) in path.items():
                    assert any(low <= least and most <= high for least, most in found[field])
            at += size + 1
        assert at == end
        assert (members, dead) == (about[MEMBERS], about[DEAD])
        assert 4 * dead <= row[ROWS]

    def check_directory(self, node: int, path: dict[int, Interval]) -> None:
        state = self.state
        first, count = int(state.nodes[node, DIRECTORY]), int(state.nodes[node, PARTITIONS])
        assert (first >= 0) == (count > 0)
        if first < 0:
            return
        self.directories.append((first, SIZES[int(state.about[node, DIRECTORY_CLASS])]))
        assert count <= SIZES[int(state.about[node, DIRECTORY_CLASS])]
        for place, word in enumerate(state.directories.rows[first : first + count, 0].tolist()):
            field, tree = word >> 32, word & 0xFFFFFFFF
            assert field not in path
            partition = int(state.about[tree, PARTITION])
            assert partition not in self.partitions
            self.partitions.add(partition)
            assert state.partitions[partition, [OWNER, FIELD, TREE, PLACE]].tolist() == [
                node,
                field,
                tree,
                place,
            ]
            assert hash_index.find(state.partition_index, node, field, 0) == partition
            assert node != ROOT or state.fields.tree[field] == tree
            assert state.bounds[tree].tolist() == [LOWEST, HIGHEST]
            own = self.visit(tree, node, {**path, field: (LOWEST, HIGHEST)})
            assert own == state.partitions[partition, OWN]

    def check_totals(self) -> None:
        state, tops = self.state, self.state.tops
        assert len(self.nodes) == tops[LIVE_NODES]
        assert len(self.partitions) == hash_index.live_entries(state.partition_index)
        assert np.count_nonzero(state.fields.tree >= 0) == state.nodes[ROOT, PARTITIONS]
        held = np.flatnonzero(state.owner[: tops[TOP_FORM]] >= 0).tolist()
        assert sorted(self.numbers) == held
        assert len(held) == tops[LIVE_FORMS]
        free = chain(state.about[:, UP], int(tops[FREE_NODE]))
        assert sorted([*self.nodes, *free]) == list(range(int(tops[TOP_NODE])))
        assert (state.about[free, MEMBERS] == -1).all()
        free = chain(state.forms[:, SIBLING], int(tops[FREE_FORM]))
        assert sorted([*held, *free]) == list(range(int(tops[TOP_FORM])))
        for memory, used in ((state.leaves, self.leaves), (state.directories, self.directories)):
            check_disjoint(used, memory.free, memory.rows[:, 0], int(memory.top[0]))


def chain(links: NDArray[Any], first: int) -> list[int]:
    found = []
    while first >= 0:
        found.append(first)
        first = int(links[first])
    return found


def check_disjoint(used: list[tuple[int, int]], free: NDArray[Any], links: NDArray[Any], top: int) -> None:
    """Check that blocks in use and free ones fill the memory, and that none overlaps another."""
    blocks = list(used)
    for class_, head in enumerate(free.tolist()):
        blocks += [(at, SIZES[class_]) for at in chain(links, head)]
    end = 0
    for first, size in sorted(blocks):
        assert first == end
        end += size
    assert end == top


def intervals(state: State, at: int) -> dict[int, list[Interval]]:
    """Return, by field, the intervals in which a conjunction's predicates want values, and what all of them want."""
    found: dict[int, list[Interval]] = {}
    rows = state.leaves.rows[at + 1 : at + 1 + state.leaves.rows[at, 1]].tolist()
    for i, (key, tag) in enumerate(rows):
        op, field = tag >> FIELD_BITS, tag & ((1 << FIELD_BITS) - 1)
        whole = (LOWEST, HIGHEST)
        if op in (Op.RESIDUAL, Op.MISSING, 14):
            continue
        if op == Op.IN:
            field = int(state.lists[key, KIND])
            wanted = (int(state.lists[key, LEAST]), int(state.lists[key, MOST]))
        elif op == Op.EQ:
            wanted = (key, key)
        elif field % FIELDS == Field.STRING:
            wanted = whole
        else:
            high = rows[i + 1][0] if op == Op.BETWEEN else key
            wanted = {
                Op.LT: (LOWEST, key - 1),
                Op.LE: (LOWEST, key),
                Op.GT: (key + 1, HIGHEST),
                Op.GE: (key, HIGHEST),
                Op.BETWEEN: (key, high) if key <= high else whole,
            }.get(Op(op), whole)
        found.setdefault(field, []).append(wanted)
    for wanted_by in found.values():
        low, high = max(low for low, _ in wanted_by), min(high for _, high in wanted_by)
        if low <= high:
            wanted_by.append((low, high))
    return found


def check_lists(state: State) -> None:
    used = state.lists[state.lists[:, USES] > 0]
    blocks = [(int(row[MEMBER]), min(size for size in SIZES if size >= row[COUNT])) for row in used]
    check_disjoint(blocks, state.members.free, state.members.rows[:, 0], int(state.members.top[0]))
    assert (state.lists[:, USES] >= 0).all()

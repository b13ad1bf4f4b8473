"""The invariants of a BE-Tree's arrays between any two calls."""

from __future__ import annotations

import numpy as np

from tests.matching.block_memory import SIZES, chain, check_disjoint
from tocsin.matching.be_tree.matcher import BeTree
from tocsin.matching.be_tree.state import (
    HIGHEST,
    LOWEST,
    ROOT,
    Node,
    NodeInfo,
    Partition,
    State,
    StoredColumn,
    Top,
    ValueList,
)
from tocsin.matching.conjunction_store.state import HIGH_ROW, StoreColumn, StoreCounter, numbers_in_use
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.structures import hash_index

Interval = tuple[int, int]


def check_invariants(matcher: BeTree) -> None:
    state = matcher._state
    assert state.tops[Top.OVERFULL] == 0
    walk = Walk(state, matcher.capacity)
    walk.visit(ROOT, -1, {})
    walk.check_totals()
    check_lists(state)


class Walk:
    """Walks the tree from the root, and records its nodes."""

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
        row, about = state.nodes[node].tolist(), state.info[node].tolist()
        assert about[NodeInfo.PARENT] == up
        assert (
            node == ROOT
            or about[NodeInfo.MEMBERS]
            or row[Node.PARTITIONS]
            or row[Node.LEFT] >= 0
            or row[Node.RIGHT] >= 0
        )
        self.check_leaf(node, path)
        self.check_directory(node, path)
        own = int(about[NodeInfo.MEMBERS])
        for side, low, high in (
            (Node.LEFT, state.bounds[node, 0], row[Node.SPLIT]),
            (Node.RIGHT, row[Node.SPLIT] + 1, state.bounds[node, 1]),
        ):
            child = row[side]
            if child >= 0:
                assert node != ROOT
                assert state.info[child, NodeInfo.PARTITION] == about[NodeInfo.PARTITION]
                assert state.bounds[child].tolist() == [low, high]
                field = int(state.partitions[about[NodeInfo.PARTITION], Partition.FIELD])
                own += self.visit(child, node, {**path, field: (int(low), int(high))})
        return own

    def check_leaf(self, node: int, path: dict[int, Interval]) -> None:
        state = self.state
        row, about = state.nodes[node].tolist(), state.info[node].tolist()
        assert about[NodeInfo.MEMBERS] <= about[NodeInfo.CAPACITY]
        assert about[NodeInfo.CAPACITY] % self.capacity == 0
        assert (row[Node.LEAF] >= 0) == (row[Node.ROWS] > 0)
        if row[Node.LEAF] < 0:
            assert about[NodeInfo.MEMBERS] == about[NodeInfo.DEAD] == 0
            return
        assert row[Node.ROWS] <= SIZES[about[NodeInfo.LEAF_CLASS]]
        self.leaves.append((row[Node.LEAF], SIZES[about[NodeInfo.LEAF_CLASS]]))
        at, end, members, dead = row[Node.LEAF], row[Node.LEAF] + row[Node.ROWS], 0, 0
        while at < end:
            number, size = state.leaves.rows[at].tolist()
            if number < 0:
                dead += size + 1
            else:
                members += 1
                self.numbers.append(number)
                assert state.store.rows[number, StoredColumn.NODE] == node
                assert state.store.rows[number, StoredColumn.ROW] == at - row[Node.LEAF]
                found = intervals(state, at)
                for field, (low, high) in path.items():
                    assert any(low <= least and most <= high for least, most in found[field])
            at += size + 1
        assert at == end
        assert (members, dead) == (about[NodeInfo.MEMBERS], about[NodeInfo.DEAD])
        assert 4 * dead <= row[Node.ROWS]

    def check_directory(self, node: int, path: dict[int, Interval]) -> None:
        state = self.state
        first, count = int(state.nodes[node, Node.DIRECTORY]), int(state.nodes[node, Node.PARTITIONS])
        assert (first >= 0) == (count > 0)
        if first < 0:
            return
        self.directories.append((first, SIZES[int(state.info[node, NodeInfo.DIRECTORY_CLASS])]))
        assert count <= SIZES[int(state.info[node, NodeInfo.DIRECTORY_CLASS])]
        for place, word in enumerate(state.directories.rows[first : first + count, 0].tolist()):
            field, tree = word >> 32, word & 0xFFFFFFFF
            assert field not in path
            partition = int(state.info[tree, NodeInfo.PARTITION])
            assert partition not in self.partitions
            self.partitions.add(partition)
            assert state.partitions[
                partition, [Partition.OWNER, Partition.FIELD, Partition.TREE, Partition.POSITION]
            ].tolist() == [
                node,
                field,
                tree,
                place,
            ]
            assert hash_index.find(state.partition_index, node, field, 0) == partition
            assert node != ROOT or state.fields.tree[field] == tree
            assert state.bounds[tree].tolist() == [LOWEST, HIGHEST]
            own = self.visit(tree, node, {**path, field: (LOWEST, HIGHEST)})
            assert own == state.partitions[partition, Partition.MEMBERS]

    def check_totals(self) -> None:
        state, tops = self.state, self.state.tops
        assert len(self.nodes) == tops[Top.LIVE_NODES]
        assert len(self.partitions) == hash_index.live_entries(state.partition_index)
        assert np.count_nonzero(state.fields.tree >= 0) == state.nodes[ROOT, Node.PARTITIONS]
        store, counters = state.store, state.store.counters
        held = numbers_in_use(store).tolist()
        assert sorted(self.numbers) == held
        assert len(held) == counters[StoreCounter.LIVE]
        free = chain(state.info[:, NodeInfo.PARENT], int(tops[Top.FREE_NODE]))
        assert sorted([*self.nodes, *free]) == list(range(int(tops[Top.NODES])))
        assert (state.info[free, NodeInfo.MEMBERS] == -1).all()
        free = chain(store.rows[:, StoreColumn.SIBLING], int(counters[StoreCounter.FREE]))
        assert sorted([*held, *free]) == list(range(int(counters[StoreCounter.TOP])))
        for memory, used in ((state.leaves, self.leaves), (state.directories, self.directories)):
            check_disjoint(used, memory.free, memory.rows[:, 0], int(memory.top[0]))


def intervals(state: State, at: int) -> dict[int, list[Interval]]:
    """Return, by field, the intervals in which a conjunction's predicates want values, and what all of them want."""
    found: dict[int, list[Interval]] = {}
    rows = state.leaves.rows[at + 1 : at + 1 + state.leaves.rows[at, 1]].tolist()
    for i, (key, tag) in enumerate(rows):
        op, field = tag >> FIELD_BITS, tag & ((1 << FIELD_BITS) - 1)
        whole = (LOWEST, HIGHEST)
        if op in (Op.RESIDUAL, Op.MISSING, HIGH_ROW):
            continue
        if op == Op.IN:
            field = int(state.lists[key, ValueList.FIELD])
            wanted = (int(state.lists[key, ValueList.LEAST]), int(state.lists[key, ValueList.GREATEST]))
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
    used = state.lists[state.lists[:, ValueList.USES] > 0]
    blocks = [
        (int(row[ValueList.FIRST]), min(size for size in SIZES if size >= row[ValueList.COUNT]))
        for row in used
    ]
    check_disjoint(blocks, state.members.free, state.members.rows[:, 0], int(state.members.top[0]))
    assert (state.lists[:, ValueList.USES] >= 0).all()

"""The vocabulary: codes for the names, strings and lists in predicates, shared by matchers and events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count as counting
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.language.json_form import predicate_from_json, predicate_to_json
from tocsin.matching.encoding.codes import (
    FIELD_BITS,
    FIELDS,
    OPERATORS,
    OPS,
    Field,
    Keys,
    Op,
    field_of,
    key_of,
    number_of,
    string_key_bounds,
)
from tocsin.matching.operators.registry import operator_indexes
from tocsin.matching.operators.text_tests import TextTests, pattern_of, pattern_symbol
from tocsin.model.conditions import NEGATED, Operator, Predicate
from tocsin.model.terms import Attribute, Literal, literal
from tocsin.model.timestamps import from_microseconds
from tocsin.model.values import Value
from tocsin.structures.interning import InterningTable

_FIELD_MASK: Final = (1 << FIELD_BITS) - 1
_ORDERED: Final = (Op.LT, Op.LE, Op.GT, Op.GE, Op.BETWEEN, Op.NOT_BETWEEN)
_FEW: Final = 8  # predicates that are counted one by one
_OTHER_OPS: Final = [op in (Op.RESIDUAL, Op.IN, Op.NOT_IN) for op in range(max(Op) + 1)]
_numbers = counting(1)


class Encoded(NamedTuple):
    """A predicate as three integers: the tag (operator and field) and one or two keys."""

    tag: int
    low: int
    high: int


class Vocabulary:
    """The codes of all names, symbols, lists, residual predicates and text tests in the predicates of matchers.

    Every matcher that shares a vocabulary reads the same encoded events. A code lives from the first predicate that needs
    it to the last; matchers count predicates with `retain` and `release`. Only the thread that adds or removes
    subscriptions writes here.
    """

    def __init__(self) -> None:
        self.names: InterningTable[str] = InterningTable()
        self.symbols: InterningTable[str | int] = InterningTable()
        self.predicates: InterningTable[str] = InterningTable()  # lists and residual predicates, as JSON
        self.patterns: InterningTable[str] = InterningTable()  # operators and constants of text tests
        self.tests = TextTests(self.patterns)
        self.ordered_texts = 0  # predicates that compare strings by order
        self.number = next(_numbers)  # identifies the vocabulary, unlike `id`, which may be reused
        self.timed: dict[int, int] = {}  # attribute -> predicates that compare it with a timestamp
        self._timings = 0  # changes of the keys of `timed`
        self._read: dict[int, Predicate] = {}  # code -> decoded predicate, where it was needed
        self._members: dict[int, tuple[Keys, Keys]] = {}  # code -> fields and keys of a list

    @property
    def tables(self) -> dict[str, InterningTable[Any]]:
        """Return the interning tables by name."""
        return {name: getattr(self, name) for name in ("names", "symbols", "predicates", "patterns")}

    @property
    def version(self) -> tuple[int, ...]:
        """Return a value that changes whenever an event might be encoded differently."""
        return (
            self.number,
            self.names.version,
            self.symbols.version,
            self.ordered_texts > 0,
            self._timings,
            self.tests.version,
        )

    def is_timed(self, attribute: int) -> bool:
        """Tell whether strings of an attribute are parsed as timestamps too."""
        return attribute in self.timed

    def encode(self, predicate: Predicate) -> Encoded:
        """Return a predicate over constants as integers; a predicate that no key can express becomes residual."""
        op = OPS.get(predicate.operator)
        subject = predicate.subject
        if type(subject) is not Attribute:
            return self._residual(predicate)
        if op is None:
            return self._test(subject.path, predicate)
        if op in (Op.PRESENT, Op.MISSING):
            return Encoded(self._tag(op, subject.path, Field.ANY), 0, 0)
        constants = [operand.value for operand in predicate.operands if type(operand) is Literal]
        if not constants or len(constants) < len(predicate.operands):
            return self._residual(predicate)
        fields = {field_of(value) for value in constants}
        if op is Op.IN:
            return self._list(op, subject.path, predicate, Field.ANY)
        field = fields.pop()
        if fields or (field is Field.BIG and op is not Op.EQ):
            return self._residual(predicate)
        if op is Op.NOT_IN:
            return self._list(op, subject.path, predicate, field)
        if op in (Op.EQ, Op.NE):
            key = self.key(constants[0])
            return Encoded(self._tag(op, subject.path, field), key, key)
        bounds = [_order_key(value) for value in constants]
        if None in bounds:
            return self._residual(predicate)
        return Encoded(self._tag(op, subject.path, field), bounds[0], bounds[-1])  # type: ignore[arg-type]

    def encode_tests(
        self, name: str, operator: Operator, constants: Sequence[Value]
    ) -> NDArray[np.int64] | None:
        """Return the tags, lows and highs of one text test with each of these constants.

        None if a constant is not a string, or if the operator has no index.
        """
        known = operator_indexes()
        positive = operator if operator in known else NEGATED[operator]
        if positive not in known or any(type(constant) is not str for constant in constants):
            return None
        code, count = self.patterns.code, len(constants)
        codes = (code(pattern_symbol(positive, constant)) for constant in constants)  # type: ignore[arg-type]
        table = np.empty((3, count), dtype=np.int64)
        table[0] = self._tag(Op.EQ if operator is positive else Op.NE, name, Field.TEXT)
        table[1:] = np.fromiter(codes, dtype=np.int64, count=count)
        return table

    def key(self, value: Value) -> int:
        """Return the key of a constant; a new symbol is interned."""
        key = key_of(value)
        return self.symbols.code(value) if key is None else key  # type: ignore[arg-type]

    def decode(self, tag: int, low: int, high: int) -> Predicate:
        """Return the predicate of this code; inverse of `encode`."""
        op, place = Op(tag >> FIELD_BITS), tag & _FIELD_MASK
        if op in (Op.IN, Op.NOT_IN, Op.RESIDUAL):
            return self.predicate(low)
        subject, field = Attribute(self.names.value(place // FIELDS)), Field(place % FIELDS)
        if op in (Op.PRESENT, Op.MISSING):
            return Predicate(subject, OPERATORS[op])
        if field is Field.TEXT:
            operator, constant = pattern_of(self.patterns.value(low))
            return Predicate(subject, operator if op is Op.EQ else NEGATED[operator], (literal(constant),))
        keys = (low, high) if op in (Op.BETWEEN, Op.NOT_BETWEEN) else (low,)
        read = ordered_constant if op in _ORDERED else self.constant
        return Predicate(subject, OPERATORS[op], tuple(literal(read(field, key)) for key in keys))

    def constant(self, field: Field, key: int) -> Value:
        """Return the constant of an equality with this key."""
        if field in (Field.STRING, Field.BIG):
            return self.symbols.value(key)
        return ordered_constant(field, key)

    def predicate(self, code: int) -> Predicate:
        """Return the list predicate or residual predicate with this code."""
        read = self._read.get(code)
        if read is None:
            read = self._read[code] = predicate_from_json(json.loads(self.predicates.value(code)))
        return read

    def members(self, code: int) -> tuple[Keys, Keys]:
        """Return the fields and keys of a list's members; the list must be retained, now or next."""
        if code not in self._members:
            self._members[code] = self._read_members(self.predicate(code))
        return self._members[code]

    def retain(self, tags: Keys, lows: Keys) -> None:
        """Count one more use of each of these predicates."""
        self._count(tags, lows, 1)

    def release(self, tags: Keys, lows: Keys) -> None:
        """Count one use less of each of these predicates."""
        self._count(tags, lows, -1)

    def part(self, tags: Keys, lows: Keys) -> Vocabulary:
        """Return a vocabulary with the same codes that counts only these predicates, once each."""
        part = Vocabulary()
        for name, table in self.tables.items():
            setattr(part, name, table.copy())
        part.tests = TextTests(part.patterns)
        part.retain(tags, lows)
        for table in part.tables.values():
            table.forget_unused()
        return part

    def agrees_with(self, other: Vocabulary) -> bool:
        """Tell whether `merge` is possible: no code means one thing here and another there."""
        others = other.tables
        return all(table.agrees_with(others[name]) for name, table in self.tables.items())

    def merge(self, other: Vocabulary) -> None:
        """Add the codes and uses of a vocabulary that this one agrees with."""
        shared = [code for code, _ in other.predicates if self.predicates.is_known(code)]
        others = other.tables
        for name, table in self.tables.items():
            table.merge(others[name])
        self.tests.merge(other.tests)
        self.ordered_texts += other.ordered_texts
        for attribute, uses in other.timed.items():
            self.timed[attribute] = self.timed.get(attribute, 0) + uses
        self._timings += 1
        # The members of a list are retained once, however many predicates use it.
        for code in shared:
            if self.encode(self.predicate(code)).tag >> FIELD_BITS != Op.RESIDUAL:
                self._count_members(self.members(code), -1)

    def note_timed(self, places: Keys, change: int) -> None:
        """Add `change` to the predicates that compare the attributes of these fields with timestamps."""
        for attribute in (places[places % FIELDS == Field.TIMESTAMP] // FIELDS).tolist():
            count = self.timed.get(attribute, 0) + change
            self._timings += not count or attribute not in self.timed
            if count:
                self.timed[attribute] = count
            else:
                self.timed.pop(attribute, None)

    def _count(self, tags: Keys, lows: Keys, change: int) -> None:
        """Count the uses of names, symbols, lists and tests in these predicates up or down; `change` is 1 or -1."""
        if len(tags) <= _FEW and self._count_few(tags.tolist(), lows.tolist(), change):
            return
        ops, places = tags >> FIELD_BITS, tags & _FIELD_MASK
        fields = places % FIELDS
        named = ops != Op.RESIDUAL
        plain = named & (ops != Op.IN) & (ops != Op.NOT_IN)
        symbolic = ((fields == Field.STRING) | (fields == Field.BIG)) & ((ops == Op.EQ) | (ops == Op.NE))
        ordered = (fields == Field.STRING) & (ops >= Op.LT) & (ops <= Op.NOT_BETWEEN)
        tests = named & (fields == Field.TEXT)
        self.ordered_texts += change * int(np.count_nonzero(ordered))
        self.note_timed(places[plain], change)
        lists = np.unique(lows[named & ~plain])
        if change > 0:
            self.names.retain(places[named] // FIELDS)
            self.symbols.retain(lows[symbolic])
            for code in lists[~self.predicates.is_used(lists)].tolist():
                self._count_members(self.members(code), 1)
            self.predicates.retain(lows[~plain])
            self.patterns.retain(lows[tests])
            self.tests.retain(places[tests] // FIELDS, lows[tests])
        else:
            # Members and tests are decoded before the codes in them are released.
            self.tests.release(places[tests] // FIELDS, lows[tests])
            self.patterns.release(lows[tests])
            members = {code: self.members(code) for code in lists.tolist()}
            self.names.release(places[named] // FIELDS)
            self.symbols.release(lows[symbolic])
            codes = lows[~plain]
            self.predicates.release(codes)
            for code in set(codes.tolist()):
                if not self.predicates.is_known(code):
                    self._read.pop(code, None)
                    self._members.pop(code, None)
                    if code in members:
                        self._count_members(members[code], -1)

    def _count_few(self, tags: list[int], lows: list[int], change: int) -> bool:
        """Count as `_count` does, or return False if some predicate is residual, a list or a text test.

        A dozen operations on arrays cost more than a few predicates.
        """
        if any(_OTHER_OPS[tag >> FIELD_BITS] or (tag & _FIELD_MASK) % FIELDS == Field.TEXT for tag in tags):
            return False
        name_use = self.names.retain_one if change > 0 else self.names.release_one
        symbol_use = self.symbols.retain_one if change > 0 else self.symbols.release_one
        for tag, low in zip(tags, lows, strict=True):
            op, place = tag >> FIELD_BITS, tag & _FIELD_MASK
            field = place % FIELDS
            if op in (Op.EQ, Op.NE):
                if field in (Field.STRING, Field.BIG):
                    symbol_use(low)
            elif field == Field.STRING and op in _ORDERED:
                self.ordered_texts += change
            if field == Field.TIMESTAMP:
                self.note_timed(np.array([place]), change)
            name_use(place // FIELDS)
        return True

    def _count_members(self, members: tuple[Keys, Keys], change: int) -> None:
        places, keys = members
        self.note_timed(places, change)
        (self.symbols.retain if change > 0 else self.symbols.release)(keys[_is_symbolic(places)])

    def _tag(self, op: Op, name: str, field: Field) -> int:
        return (op << FIELD_BITS) | (self.names.code(name) * FIELDS + field)

    def _test(self, name: str, predicate: Predicate) -> Encoded:
        """Return a text test as integers; a test against anything but a constant string becomes residual."""
        constant = predicate.operands[0]
        table = None
        if type(constant) is Literal:
            table = self.encode_tests(name, predicate.operator, [constant.value])
        return self._residual(predicate) if table is None else Encoded(*table[:, 0].tolist())

    def _code(self, predicate: Predicate) -> int:
        code = self.predicates.code(json.dumps(predicate_to_json(predicate), ensure_ascii=False))
        self._read.setdefault(code, predicate)
        return code

    def _residual(self, predicate: Predicate) -> Encoded:
        return Encoded(Op.RESIDUAL << FIELD_BITS, self._code(predicate), 0)

    def _list(self, op: Op, name: str, predicate: Predicate, field: Field) -> Encoded:
        code = self._code(predicate)
        self.members(code)  # interns its strings
        return Encoded(self._tag(op, name, field), code, 0)

    def _read_members(self, predicate: Predicate) -> tuple[Keys, Keys]:
        values = [operand.value for operand in predicate.operands if isinstance(operand, Literal)]
        base = self.names.code(predicate.subject.path) * FIELDS  # type: ignore[union-attr]
        found = list(dict.fromkeys((base + field_of(value), self.key(value)) for value in values))
        places, keys = np.array(found, dtype=np.int64).reshape(-1, 2).T.copy()
        return places, keys


def _is_symbolic(places: Keys) -> NDArray[np.bool_]:
    fields = places % FIELDS
    return np.asarray((fields == Field.STRING) | (fields == Field.BIG))


def _order_key(value: Value) -> int | None:
    """Return the key of a constant's exact place in the order, or None if no key has it."""
    if isinstance(value, str):
        low, high = string_key_bounds(value)
        return low if low == high else None
    return key_of(value)


def ordered_constant(field: Field, key: int) -> Value:
    """Return the constant that an order key of this field encodes."""
    if field is Field.STRING:
        data = ((key >> 8) + 2**55).to_bytes(7)
        return data[: key & 0xFF].decode()
    if field is Field.BOOLEAN:
        return bool(key)
    if field is Field.TIMESTAMP:
        return from_microseconds(key)
    return number_of(key)

"""Forms: everything that places have in common except constants, and the programs they run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.language.template.template import constant_at
from tocsin.model.conditions import TRUE
from tocsin.model.terms import Parameter
from tocsin.sequences._kernels.instructions import MODE_BITS, Do, Mode, Tag
from tocsin.sequences.automaton import Edge, Node, Output
from tocsin.sequences.programs import NOTHING, Program
from tocsin.sequences.running.columns import Columns
from tocsin.sequences.running.digests import Digest, digest_of_parts
from tocsin.sequences.running.state import FormProgram, SpanColumn, State
from tocsin.sequences.running.values import ValueCodec
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.growth import grown
from tocsin.structures.interning import InterningTable

_SINGLE: Final = (Do.STORE, Do.LINK, Do.PRESENT, Do.MISSING, Do.TRUE)  # operations with one operand
_ROWS: Final = ("programs", "width", "is_end", "rebinds", "keys", "key_count")


class Form(Struct, frozen=True, eq=False):
    """The common part of places: the node, or the output of an end, and the number of constants."""

    number: int
    node: Node | None
    output: Output | None
    columns: Int64s  # the numbers of its columns, each as often as a program uses it
    spans: tuple[tuple[int, int], ...]  # the begin and length of its programs in the code
    constants: int
    digest: Digest  # of its identity

    @property
    def stream(self) -> str | None:
        """Return the stream that a node reads; None for an end."""
        return None if self.node is None else self.node.stream


class _Runs:
    """Runs of neighbouring rows, handed out again to the next user of their length; `top` is above all of them."""

    def __init__(self) -> None:
        self.top = 0
        self._free: dict[int, list[int]] = {}  # by length

    def take(self, length: int) -> int:
        """Return the first row of a run that is not in use."""
        free = self._free.get(length)
        if free:
            return free.pop()
        self.top += length
        return self.top - length

    def give(self, first: int, length: int) -> None:
        """Take back a run."""
        self._free.setdefault(length, []).append(first)


class FormTable:
    """The forms that are in use, and their programs in the arrays that kernels read."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._identities: InterningTable[Hashable] = InterningTable()
        self.forms: list[Form] = []  # by number; some are no longer in use
        self._code: dict[bytes, tuple[int, int]] = {}  # where it begins, and its uses
        self._code_runs = _Runs()
        self._key_runs = _Runs()

    def __getitem__(self, number: int) -> Form:
        return self.forms[number]

    def __len__(self) -> int:
        return len(self._identities)

    def of(
        self, state: State, edge: Edge, target: Node | Output, *, keyed: bool, direct: bool = False
    ) -> tuple[State, Form]:
        """Return the form of a place and the state that has it; without `keyed` it has no keys.

        With `direct` its edge's program also tests the static part.
        """
        programs = programs_of(edge, target, direct=direct)
        keys = target.guard.keys if isinstance(target, Node) and keyed else ()
        identity = (
            tuple((program.code.tobytes(), program.columns, len(program.constants)) for program in programs),
            keys,
            (target.stream, len(target.slots), target.rebind is not None)
            if isinstance(target, Node)
            else target,
            _static_rebind(target),
        )
        known = self._identities.codes.get(identity)
        if known is not None:
            return state, self[known]
        return self._new(state, identity, programs, target, keys)

    def _new(
        self,
        state: State,
        identity: Hashable,
        programs: list[Program],
        target: Node | Output,
        keys: tuple[tuple[str, int], ...],
    ) -> tuple[State, Form]:
        """Store a new form: its code, its columns and its keys."""
        number = self._identities.code(identity)
        columns: list[int] = []
        spans: list[tuple[int, int]] = []
        rows = np.zeros((len(FormProgram), len(SpanColumn)), dtype=np.int32)
        offset = 0
        for i, program in enumerate(programs):
            code, used = self._relocate(program)
            columns += used
            state, begin = self._intern_code(state, code)
            spans.append((begin, len(code)))
            rows[i] = begin, begin + len(code), offset
            offset += len(program.constants)
            if program.scratch > len(state.scratch.values):
                values = np.zeros((2 * program.scratch, 2), dtype=np.int64)
                state = state._replace(scratch=state.scratch._replace(values=values))
        key_columns = [self._columns.table.code(path) for path, _ in keys]
        counted = np.array(columns + key_columns, dtype=np.int64)
        self._columns.table.retain(counted)
        forms = grown(state.forms, _ROWS, number + 1)
        first = self._key_runs.take(len(keys))
        forms = grown(forms, ("key_columns", "key_slots"), self._key_runs.top)
        forms.key_columns[first : first + len(keys)] = key_columns
        forms.key_slots[first : first + len(keys)] = [slot for _, slot in keys]
        node = target if isinstance(target, Node) else None
        output = target if isinstance(target, Output) else None
        forms.programs[number] = rows
        forms.width[number] = len(target.slots) if isinstance(target, Node) else target.width
        forms.is_end[number] = node is None
        rebinds = node is not None and node.rebind is not None
        forms.rebinds[number] = rebinds + _static_rebind(target)
        forms.keys[number], forms.key_count[number] = first, len(keys)
        form = Form(number, node, output, counted, tuple(spans), offset, digest_of_parts(identity))
        self.forms[number : number + 1] = [form]
        return state._replace(forms=forms), form

    def retain(self, number: int, count: int) -> None:
        """Count so many more places of a form."""
        self._identities.retain(np.full(count, number, dtype=np.int64))

    def drop_unused(self, state: State, numbers: Iterable[int]) -> None:
        """Forget the forms among these that no place has."""
        for number in set(numbers):
            if self._identities.is_known(number) and not self._identities.is_used(np.array([number]))[0]:
                self.retain(number, 1)
                self.release(state, number, 1)

    def release(self, state: State, number: int, count: int) -> None:
        """Count so many fewer places of a form; it is forgotten with the last."""
        if not self._identities.release(np.full(count, number, dtype=np.int64)):
            return
        form = self[number]
        self._columns.table.release(form.columns)
        for begin, length in form.spans:
            if length:
                self._drop_code(state, begin, length)
        keys = int(state.forms.key_count[number])
        if keys:
            self._key_runs.give(int(state.forms.keys[number]), keys)

    def _relocate(self, program: Program) -> tuple[Int32s, list[int]]:
        """Return a program's code with the numbers of its columns in all events, and these numbers."""
        used = [self._columns.table.code(column) for column in program.columns]
        code = program.code.copy()
        for row in code:
            if row[0] == Do.JUMP:
                continue
            for column in (2,) if row[0] in _SINGLE else (2, 3):
                if row[column] >> MODE_BITS == Mode.EVENT:
                    row[column] = used[row[column]]
        return code, used

    def _intern_code(self, state: State, code: Int32s) -> tuple[State, int]:
        """Store code, or share equal code; return the new state and the code's first row."""
        if not len(code):
            return state, 0
        code_bytes = code.tobytes()
        begin, uses = self._code.get(code_bytes, (-1, 0))
        if begin < 0:
            begin = self._code_runs.take(len(code))
            program = grown(state.program, ("code",), self._code_runs.top)
            program.code[begin : begin + len(code)] = code
            state = state._replace(program=program)
        self._code[code_bytes] = begin, uses + 1
        return state, begin

    def _drop_code(self, state: State, begin: int, length: int) -> None:
        """Count one use of this code less, and free its rows after the last."""
        code_bytes = state.program.code[begin : begin + length].tobytes()
        _, uses = self._code[code_bytes]
        if uses > 1:
            self._code[code_bytes] = begin, uses - 1
        else:
            del self._code[code_bytes]
            self._code_runs.give(begin, length)


def constant_rows(
    programs: list[Program], columns: Mapping[str, Column], rows: Int64s, codec: ValueCodec
) -> Int64s:
    """Return the tags and integers of the programs' constants, for each of these rows of a template."""
    sources = [source for program in programs for source in program.constants]
    values = np.zeros((len(rows), len(sources), 2), dtype=np.int64)
    for position, source in enumerate(sources):
        if isinstance(source, Parameter):
            values[:, position] = _column(columns[source.name], rows, codec)
        else:
            values[:, position] = codec.encode(source.value)
    return values


def has_any(column: Column, kinds: type | tuple[type, ...]) -> bool:
    """Tell whether any row of a template's column has a value of these types; only object columns can."""
    return column.dtype == np.object_ and any(isinstance(value, kinds) for value in column.tolist())


def _column(column: Column, rows: Int64s, codec: ValueCodec) -> Int64s:
    """Return the encoded constants of these rows of a column."""
    if column.dtype.kind == "f":
        taken = column[rows].astype(np.float64).view(np.int64)
        return np.stack([np.full(len(rows), int(Tag.FLOAT)), taken], axis=1)
    if column.dtype.kind == "i":
        return np.stack([np.full(len(rows), int(Tag.INTEGER)), column[rows].astype(np.int64)], axis=1)
    pairs = [codec.encode(constant_at(column, row)) for row in rows.tolist()]  # type: ignore[arg-type]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def programs_of(edge: Edge, target: Node | Output, *, direct: bool) -> list[Program]:
    """Return the programs of a place by `FormProgram`; with `direct` its edge is in no index."""
    whole = edge.test.whole if direct else None
    programs = [edge.test.program if whole is None else whole, edge.assign]
    if isinstance(target, Node):
        programs += [target.guard.test.program, target.guard.rest]
        if target.rebind is not None:
            programs += [target.rebind.test.program, target.rebind.assign]
    return programs + [NOTHING] * (len(FormProgram) - len(programs))


def _static_rebind(target: Node | Output) -> bool:
    return isinstance(target, Node) and target.rebind is not None and target.rebind.test.static != TRUE

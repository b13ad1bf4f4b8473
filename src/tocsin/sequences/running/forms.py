"""Forms: what places have in common, all but constants, and the programs they run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.template.columns import Column
from tocsin.language.template.template import constant_at
from tocsin.model.conditions import TRUE
from tocsin.model.terms import Parameter
from tocsin.sequences.automaton import Edge, Node, Output
from tocsin.sequences.programs import MODE_BITS, NOTHING, Do, Mode, Program, Tag
from tocsin.sequences.running.columns import Columns
from tocsin.sequences.running.state import ASSIGN, GUARD, PROGRAMS, REBIND, REBIND_ASSIGN, REST, TEST, State
from tocsin.sequences.running.values import ValueCodec
from tocsin.structures.growth import grown

_SINGLE: Final = (Do.STORE, Do.LINK, Do.PRESENT, Do.MISSING, Do.TRUE)  # they have one operand
_ROWS: Final = ("programs", "width", "is_end", "rebinds", "keys", "key_count")


class Form(Struct, frozen=True, eq=False):
    """What places have in common: the node, or the output of an end, and of how many constants they have."""

    number: int
    node: Node | None
    output: Output | None
    columns: NDArray[np.int64]  # by number, each as often as a program uses it
    spans: tuple[tuple[int, int], ...]  # of its programs in the code
    constants: int
    digest: int  # of all of it

    @property
    def stream(self) -> str | None:
        """Return the stream that a node reads; an end reads none."""
        return None if self.node is None else self.node.stream


class FormTable:
    """The forms that are in use, and their programs in the arrays that kernels read."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._numbers: dict[object, int] = {}
        self._keys: list[object] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self._code: dict[bytes, tuple[int, int, int]] = {}  # where it is, how long, and how often it is used
        self._code_free: dict[int, list[int]] = {}
        self._code_top = 0
        self._keys_free: dict[int, list[int]] = {}
        self._key_top = 0
        self.forms: list[Form | None] = []

    def __getitem__(self, number: int) -> Form:
        form = self.forms[number]
        assert form is not None  # noqa: S101 - places hold forms that are in use
        return form

    def __len__(self) -> int:
        return len(self._numbers)

    def of(
        self, state: State, edge: Edge, target: Node | Output, *, keyed: bool, direct: bool = False
    ) -> tuple[State, Form]:
        """Return the form of a place and the state that has it; without `keyed`, none of its keys.

        With `direct` its edge's program tests the static part, too.
        """
        programs = programs_of(edge, target, direct=direct)
        keys = target.guard.keys if isinstance(target, Node) and keyed else ()
        identity = (
            tuple((program.code.tobytes(), program.columns, len(program.constants)) for program in programs),
            keys,
            None if isinstance(target, Node) else target,
            (target.stream, len(target.slots), target.rebind is not None)
            if isinstance(target, Node)
            else None,
            _static_rebind(target),
        )
        known = self._numbers.get(identity)
        if known is not None:
            return state, self[known]
        return self._new(state, identity, programs, target, keys)

    def _new(
        self,
        state: State,
        identity: object,
        programs: list[Program],
        target: Node | Output,
        keys: tuple[tuple[str, int], ...],
    ) -> tuple[State, Form]:
        number = self._free.pop() if self._free else len(self.forms)
        if number == len(self.forms):
            self.forms.append(None)
            self._keys.append(None)
            self._uses.append(0)
        columns: list[int] = []
        spans: list[tuple[int, int]] = []
        rows = np.zeros((PROGRAMS, 3), dtype=np.int32)
        offset = 0
        for place, program in enumerate(programs):
            code, used = self._relocated(program)
            columns += used
            state, begin = self._placed(state, code)
            spans.append((begin, len(code)))
            rows[place] = begin, begin + len(code), offset
            offset += len(program.constants)
            if program.scratch > len(state.scratch.values):
                state = state._replace(
                    scratch=state.scratch._replace(values=np.zeros((2 * program.scratch, 2), dtype=np.int64))
                )
        key_columns = [self._columns.table.code(path) for path, _ in keys]
        columns += key_columns
        counted = np.array(columns, dtype=np.int64)
        self._columns.table.retain(counted)
        forms = grown(state.forms, _ROWS, number + 1)
        first = self._room_for_keys(len(keys))
        forms = grown(forms, ("key_columns", "key_slots"), self._key_top)
        forms.key_columns[first : first + len(keys)] = key_columns
        forms.key_slots[first : first + len(keys)] = [slot for _, slot in keys]
        node = target if isinstance(target, Node) else None
        output = target if isinstance(target, Output) else None
        forms.programs[number] = rows
        forms.width[number] = len(target.slots) if isinstance(target, Node) else target.width
        forms.is_end[number] = node is None
        forms.rebinds[number] = 0 if _no_rebind(target) else 2 if _static_rebind(target) else 1
        forms.keys[number], forms.key_count[number] = first, len(keys)
        form = Form(number, node, output, counted, tuple(spans), offset, hash(identity))
        self._numbers[identity] = number
        self._keys[number], self._uses[number], self.forms[number] = identity, 0, form
        return state._replace(forms=forms), form

    def hold(self, number: int, count: int) -> None:
        """Count so many more places of a form."""
        self._uses[number] += count

    def drop_unused(self, state: State, numbers: Iterable[int]) -> None:
        """Forget those of these forms that no place came to have."""
        for number in set(numbers):
            if self.forms[number] is not None and not self._uses[number]:
                self.release(state, number, 0)

    def release(self, state: State, number: int, count: int) -> None:
        """Count so many fewer places of a form; it goes with the last."""
        self._uses[number] -= count
        if self._uses[number] > 0:
            return
        form = self[number]
        self._columns.table.release(form.columns)
        for begin, length in form.spans:
            if length:
                self._drop_code(state, begin, length)
        keys = int(state.forms.key_count[number])
        if keys:
            self._keys_free.setdefault(keys, []).append(int(state.forms.keys[number]))
        del self._numbers[self._keys[number]]
        self._keys[number], self.forms[number] = None, None
        self._free.append(number)

    def _relocated(self, program: Program) -> tuple[NDArray[np.int32], list[int]]:
        """Return a program's code with its columns by their numbers in all events, and these."""
        used = [self._columns.table.code(column) for column in program.columns]
        code = program.code.copy()
        for row in code:
            if row[0] == Do.JUMP:
                continue
            for place in (2,) if row[0] in _SINGLE else (2, 3):
                if row[place] >> MODE_BITS == Mode.EVENT:
                    row[place] = used[row[place]]
        return code, used

    def _placed(self, state: State, code: NDArray[np.int32]) -> tuple[State, int]:
        """Return where code is, and the state that has it there."""
        if not len(code):
            return state, 0
        text = code.tobytes()
        begin, length, uses = self._code.get(text, (-1, len(code), 0))
        if begin < 0:
            free = self._code_free.get(length)
            begin = free.pop() if free else self._code_top
            if begin == self._code_top:
                self._code_top += length
            program = grown(state.program, ("code",), self._code_top)
            program.code[begin : begin + length] = code
            state = state._replace(program=program)
        self._code[text] = begin, length, uses + 1
        return state, begin

    def _drop_code(self, state: State, begin: int, length: int) -> None:
        text = state.program.code[begin : begin + length].tobytes()
        _, _, uses = self._code[text]
        if uses > 1:
            self._code[text] = begin, length, uses - 1
        else:
            del self._code[text]
            self._code_free.setdefault(length, []).append(begin)

    def _room_for_keys(self, count: int) -> int:
        free = self._keys_free.get(count)
        if not count or free:
            return free.pop() if free and count else 0
        self._key_top += count
        return self._key_top - count


def constant_rows(
    programs: list[Program], columns: Mapping[str, Column], rows: NDArray[np.int64], words: ValueCodec
) -> NDArray[np.int64]:
    """Return, for each of these rows of a template, the tags and integers of its programs' constants."""
    sources = [source for program in programs for source in program.constants]
    values = np.zeros((len(rows), len(sources), 2), dtype=np.int64)
    for place, source in enumerate(sources):
        if isinstance(source, Parameter):
            values[:, place] = _column(columns[source.name], rows, words)
        else:
            values[:, place] = words.encoded(source.value)
    return values


def holds_any(column: Column, kinds: type | tuple[type, ...]) -> bool:
    """Tell whether any row of a template's column gives a value of these types, which only objects are."""
    return column.dtype == np.object_ and any(isinstance(value, kinds) for value in column.tolist())


def _column(column: Column, rows: NDArray[np.int64], words: ValueCodec) -> NDArray[np.int64]:
    if column.dtype.kind == "f":
        taken = column[rows].astype(np.float64).view(np.int64)
        return np.stack([np.full(len(rows), int(Tag.FLOAT)), taken], axis=1)
    if column.dtype.kind == "i":
        return np.stack([np.full(len(rows), int(Tag.INTEGER)), column[rows].astype(np.int64)], axis=1)
    pairs = [words.encoded(constant_at(column, row)) for row in rows.tolist()]  # type: ignore[arg-type]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def programs_of(edge: Edge, target: Node | Output, *, direct: bool) -> list[Program]:
    """Return the programs of a place, in the order of their numbers; `direct` is whether its edge is in no index."""
    programs = [NOTHING] * PROGRAMS
    whole = edge.test.whole if direct else None
    programs[TEST], programs[ASSIGN] = edge.test.program if whole is None else whole, edge.assign
    if isinstance(target, Node):
        programs[GUARD], programs[REST] = target.guard.test.program, target.guard.rest
        if target.rebind is not None:
            programs[REBIND], programs[REBIND_ASSIGN] = target.rebind.test.program, target.rebind.assign
    return programs


def _no_rebind(target: Node | Output) -> bool:
    return not isinstance(target, Node) or target.rebind is None


def _static_rebind(target: Node | Output) -> bool:
    return isinstance(target, Node) and target.rebind is not None and target.rebind.test.static != TRUE

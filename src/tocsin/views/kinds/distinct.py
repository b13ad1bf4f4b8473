"""The distinct values within a range: told when the last row of a value leaves it or the first one comes."""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import IdArray, Matches
from tocsin.structures.growth import bytes_of, roomier
from tocsin.structures.sorted_blocks import PairChanges, new_sorted_blocks, of_pairs, with_changes, with_room
from tocsin.views._kernels.distinct import MOST, Differences, Held, codes_within, reformulate_distinct
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kinds.kind import Answers, Kind, Present, Reads, Reformulator, absent
from tocsin.views.messages import Messages

Codes = tuple[int, ...]


class DistinctReformulator(Reformulator):
    """Points in order of their code, which finds the neighbours of one, and in order of x, which finds codes.

    A subscription hears of a code if the point that comes or goes is the only one of that code within its range.
    """

    def __init__(self) -> None:
        self._by_code = new_sorted_blocks()  # (code, x)
        self._by_x = new_sorted_blocks()  # (x, code)
        self._seen: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def load(self, x: Floats, y: Floats) -> None:
        """Take all points at once, in the place of those that were held; none is NaN."""
        order = np.lexsort((x, y))
        self._by_code = of_pairs(_floats(y[order]), _floats(x[order]))
        order = np.lexsort((y, x))
        self._by_x = of_pairs(_floats(x[order]), _floats(y[order]))
        self._know(y)

    def _know(self, codes: Floats) -> None:
        """Have room for marks of these codes, of which NaN are none."""
        needed = int(np.fmax.reduce(codes, initial=-1)) + 1
        if needed > len(self._seen):
            self._seen = np.zeros(roomier(len(self._seen), needed), dtype=np.bool_)

    def reformulate(self, changes: PointChanges) -> Messages:
        """Make the changes, and return messages whose payload is a code `removed` and one `added`, -1 for none."""
        old_x, old_y = _floats(changes.old_x), _floats(changes.old_y)
        new_x, new_y = _floats(changes.new_x), _floats(changes.new_y)
        room = MOST * len(changes)
        change, removed, added = np.empty((3, room), dtype=np.int64)
        inner_l, inner_r, outer_l, outer_r = np.empty((4, room))
        written = np.zeros(1, dtype=np.int64)
        out = Differences(change, inner_l, inner_r, outer_l, outer_r, removed, added, written)
        by_code = PairChanges(old_y, old_x, new_y, new_x)
        reached = reformulate_distinct(self._by_code, by_code, 0, out)
        while 0 <= reached < len(changes):
            self._by_code = with_room(self._by_code, len(changes) - reached)
            reached = reformulate_distinct(self._by_code, by_code, reached, out)
        made = reached if reached >= 0 else -1 - reached
        by_x = PairChanges(old_x[:made], old_y[:made], new_x[:made], new_y[:made])
        done = 0
        while done < made:
            self._by_x, done = with_changes(self._by_x, by_x, done)
        self._know(new_y)
        if reached < 0:
            raise absent(changes, made)
        count = int(written[0])
        payload = {"removed": removed[:count], "added": added[:count]}
        return Messages(
            change[:count], inner_l[:count], inner_r[:count], outer_l[:count], outer_r[:count], payload
        )

    def present(self, lows: Floats, highs: Floats) -> Present:
        """Return the `codes` within the ranges, ascending in each: those of range i end at `offsets[i + 1]`."""
        used = int(self._by_x.used[0])
        before = np.zeros(used + 1, dtype=np.int64)
        np.cumsum(self._by_x.size[:used], out=before[1:])
        held = Held(self._by_code, self._by_x, before, self._seen)
        lows, highs = _floats(lows), _floats(highs)
        offsets = np.zeros(len(lows) + 1, dtype=np.int64)
        codes = np.empty(8 * len(lows) + 64, dtype=np.int64)
        reached = 0
        while True:
            reached = codes_within(held, lows, highs, reached, offsets, codes)
            if reached == len(lows):
                break
            longer = np.empty(2 * len(codes), dtype=np.int64)
            longer[: offsets[reached]] = codes[: offsets[reached]]
            codes = longer
        # Sorted all at once: a range's number before the code.
        span = len(self._seen) + 1
        keys = np.repeat(np.arange(len(lows)) * span, np.diff(offsets)) + codes[: offsets[-1]]
        keys.sort()
        return {"offsets": offsets, "codes": keys % span}

    @property
    def nbytes(self) -> int:
        """Return the bytes of the points, in both orders."""
        return bytes_of(self._by_code) + bytes_of(self._by_x) + self._seen.nbytes


class DistinctAnswers(Answers):
    """A sorted tuple of codes for each subscription, by place; subscriptions that have one in common stay together."""

    def __init__(self) -> None:
        self._sets: list[Codes] = []
        self._numbers: list[int] = []  # one object for each code, in however many sets it is

    def begin(self, places: IdArray, present: Present) -> None:
        """Let subscriptions begin with the codes within their ranges."""
        codes, ends = present["codes"], present["offsets"].tolist()
        self._sets += [()] * (int(places.max(initial=-1)) + 1 - len(self._sets))
        self._numbers += range(len(self._numbers), int(codes.max(initial=-1)) + 1)
        every = list(map(self._numbers.__getitem__, codes.tolist()))
        shared: dict[Codes, Codes] = {}
        for place, begin, end in zip(places.tolist(), ends, ends[1:], strict=False):
            one = tuple(every[begin:end])
            self._sets[place] = shared.setdefault(one, one)

    def end(self, places: IdArray) -> None:
        """Let go of the sets of subscriptions."""
        for place in places.tolist():
            self._sets[place] = ()

    def tell(self, messages: Messages, found: Matches) -> AnswerChanges:
        """Return the sets that change for those that hear each message."""
        removed, added = messages.payload["removed"], messages.payload["added"]
        heard = np.diff(found.offsets)
        self._numbers += range(len(self._numbers), int(added.max(initial=-1)) + 1)
        old: list[Codes] = []
        new: list[Codes] = []
        for message in np.flatnonzero(heard).tolist():
            goes, comes = int(removed[message]), int(added[message])
            # Sets are known by their identity; none of the old ones goes before the list of them does.
            made: dict[int, Codes] = {}
            for place in found[message].tolist():
                before = self._sets[place]
                after = made.get(id(before))
                if after is None:
                    after = made[id(before)] = self._changed(before, goes, comes)
                self._sets[place] = after
                old.append(before)
                new.append(after)
        return AnswerChanges(
            np.repeat(messages.change, heard),
            found.ids,
            np.fromiter(old, dtype=object, count=len(old)),
            np.fromiter(new, dtype=object, count=len(new)),
            np.repeat(removed, heard),
            np.repeat(added, heard),
        )

    def _changed(self, codes: Codes, removed: int, added: int) -> Codes:
        changed = list(codes)
        if removed >= 0:
            del changed[bisect_left(changed, removed)]
        if added >= 0:
            insort(changed, self._numbers[added])
        return tuple(changed)

    def answer(self, place: int) -> Codes:
        """Return a subscription's codes, ascending."""
        return self._sets[place]

    @property
    def nbytes(self) -> int:
        """Return the bytes of all sets, those in common counted once, and of the codes in them."""
        sets = {id(one): sys.getsizeof(one) for one in self._sets}
        numbers = sys.getsizeof(self._numbers) + sum(map(sys.getsizeof, self._numbers))
        return sys.getsizeof(self._sets) + sum(sets.values()) + numbers


KIND: Final = Kind("distinct", Reads.VALUE, DistinctReformulator, DistinctAnswers)


def _floats(column: Floats) -> Floats:
    return np.ascontiguousarray(column, dtype=np.float64)

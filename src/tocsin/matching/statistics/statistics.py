"""Statistics of past events, for the cost estimates of matchers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tocsin.matching.batches import EventBatch
from tocsin.matching.statistics.distribution import Distribution, distribution
from tocsin.matching.statistics.estimates import AttributeStatistics, assumed, satisfying
from tocsin.matching.statistics.files import encode, read_document, read_file, write_file
from tocsin.matching.statistics.joint import Group, Joint, joint
from tocsin.matching.statistics.merging import merged_attribute, merged_joint
from tocsin.matching.statistics.tally import EVENTS, GROUP, REFUSED, TEXTS, Row, Tally
from tocsin.matching.statistics.texts import value_of
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.terms import Attribute, Literal
from tocsin.model.values import Kind, Value

TOP: Final = 256
BINS: Final = 32
_UNKNOWN: Final = AttributeStatistics(0, {})


class Statistics(Struct, frozen=True):
    """Statistics of a history of events: attributes, their values, and combinations of values.

    Frequent values and combinations are counted exactly. The rest is summarised by the number of distinct values and by
    bins of about equal depth.

    >>> statistics = Statistics.of([{"city": "Oslo", "price": p} for p in range(9)] + [{"city": "Bergen"}])
    >>> from tocsin.language import parse_condition
    >>> [statistics.probability(parse_condition(t)) for t in ("city = 'Oslo'", "price >= 4", "price is missing")]
    [0.9, 0.5, 0.1]
    """

    events: int
    attributes: Mapping[str, AttributeStatistics] = {}
    groups: Mapping[Group, Joint] = {}
    refused: int = 0  # records that are not events
    groups_left_out: int = 0  # groups in subscriptions that were not counted

    @classmethod
    def of(
        cls,
        events: EventBatch | Iterable[Mapping[str, object]],
        *,
        groups: Iterable[Sequence[str]] = (),
        top: int = TOP,
        bins: int = BINS,
    ) -> Statistics:
        """Return the statistics of these events.

        `groups` are attributes to be counted together; each attribute and group keeps its `top` most frequent values and
        `bins` bins of the rest.
        """
        wanted = tuple(dict.fromkeys(map(group_of, groups)))
        tally = Tally(wanted)
        tally.add(events if isinstance(events, EventBatch) else EventBatch.of_dicts(events))
        counts: dict[tuple[str, str], dict[str, int]] = {}
        for row in tally.rows():
            found = counts.setdefault((row.subject, row.kind), {})
            found[row.value] = found.get(row.value, 0) + row.events
        distributions: dict[tuple[str, Kind], Distribution] = {}
        joints: dict[Group, Joint] = {group: Joint() for group in wanted}
        rows: list[Row] = []
        for (subject, kind), found in counts.items():
            if kind == GROUP:
                joints[wanted[int(subject)]] = joint(list(found.items()), top=top)
            elif kind in (EVENTS, REFUSED, TEXTS):
                rows += [Row(subject, kind, "", count) for count in found.values()]
            else:
                values = [(value_of(Kind(kind), text), count) for text, count in found.items()]
                distributions[subject, Kind(kind)] = distribution(Kind(kind), values, top=top, bins=bins)
        return cls.assembled(distributions, joints, rows)

    @classmethod
    def assembled(
        cls,
        distributions: Mapping[tuple[str, Kind], Distribution],
        joints: Mapping[Group, Joint],
        rows: Iterable[Row],
        *,
        groups_left_out: int = 0,
    ) -> Statistics:
        """Return the statistics of these parts; `rows` count the events, the refused records and the texts."""
        totals = {(row.subject, row.kind): row.events for row in rows}
        kinds: dict[str, dict[Kind, Distribution]] = {}
        for (path, kind), values in sorted(distributions.items()):
            kinds.setdefault(path, {})[kind] = values
        attributes = {}
        for path, found in kinds.items():
            texts = totals.get((path, TEXTS), 0)
            count = sum(values.count for values in found.values()) - texts
            attributes[path] = AttributeStatistics(count, found, texts)
        return cls(
            totals.get(("", EVENTS), 0),
            attributes,
            dict(joints),
            totals.get(("", REFUSED), 0),
            groups_left_out,
        )

    @classmethod
    def merged(cls, parts: Iterable[Statistics], *, top: int = TOP, bins: int = BINS) -> Statistics:
        """Return the merged statistics of several histories.

        A value that is frequent in one part and not in another is assumed to have the average count of the other's rest.
        Groups that some part has not counted are left out.
        """
        listed = list(parts)
        events = sum(part.events for part in listed)
        paths = sorted({path for part in listed for path in part.attributes})
        groups = [
            group for group in (listed[0].groups if listed else ()) if all(group in p.groups for p in listed)
        ]
        return cls(
            events,
            {
                path: merged_attribute([part.attribute(path) for part in listed], top=top, bins=bins)
                for path in paths
            },
            {group: merged_joint([part.groups[group] for part in listed], top=top) for group in groups},
            sum(part.refused for part in listed),
            max((part.groups_left_out for part in listed), default=0),
        )

    # queries

    def attribute(self, path: str) -> AttributeStatistics:
        """Return the statistics of an attribute, empty if no event has it."""
        return self.attributes.get(path, _UNKNOWN)

    def presence(self, path: str) -> float:
        """Return the share of events that have an attribute."""
        return self._share(self.attribute(path).count)

    def equality(self, path: str, kind: Kind, value: Value) -> float:
        """Return the probability that an event has this value."""
        return self._share(self.attribute(path).of(kind).equal_to(value))

    def probability(self, predicate: Predicate) -> float:
        """Return the probability that an event satisfies a predicate.

        A text test is evaluated on the frequent strings, and the rest is assumed to be like them. A predicate that
        compares attributes, or computes, is assumed to hold for a tenth of the events with its attributes if it is `=`,
        nine tenths if it is `!=`, and otherwise a third.
        """
        subject = predicate.subject
        if isinstance(subject, Attribute) and all(
            isinstance(operand, Literal) for operand in predicate.operands
        ):
            attribute = self.attribute(subject.path)
            if predicate.operator is Operator.PRESENT:
                return self._share(attribute.count)
            if predicate.operator is Operator.MISSING:
                return self._share(self.events - attribute.count)
            return self._share(satisfying(predicate, attribute))
        return assumed(predicate, self.presence)

    def joint_probability(self, predicates: Iterable[Predicate]) -> float:
        """Return the probability that an event satisfies all of these predicates.

        Equalities on a group's attributes are looked up together, the widest groups first. All other predicates are
        assumed to be independent; of several predicates on one attribute, only the least probable counts.
        """
        by_path: dict[str, list[Predicate]] = {}
        probability = 1.0
        for predicate in predicates:
            if isinstance(predicate.subject, Attribute):
                by_path.setdefault(predicate.subject.path, []).append(predicate)
            else:
                probability *= self.probability(predicate)
        for group, constants in self._grouped(by_path):
            least = min(self.probability(predicate) for path in group for predicate in by_path.pop(path))
            probability *= min(self._together(group, constants), least)
        return probability * prod(min(map(self.probability, predicates)) for predicates in by_path.values())

    def combination(self, group: Group, constants: tuple[Literal, ...]) -> float | None:
        """Return the probability that an event has all of these values in a group's attributes.

        None if they are not counted together: a group counts a string that parses as a timestamp only as a string.
        """
        if not all(map(self._is_grouped, group, constants)):
            return None
        alone = (self.equality(path, one.kind, one.value) for path, one in zip(group, constants, strict=True))
        return min(self._together(group, constants), *alone)

    def _grouped(
        self, by_path: Mapping[str, Sequence[Predicate]]
    ) -> Iterator[tuple[Group, tuple[Literal, ...]]]:
        """Yield disjoint groups whose attributes all have equalities, with the constants."""
        constants = {
            path: constant
            for path, predicates in by_path.items()
            if (constant := _equality(predicates)) is not None and self._is_grouped(path, constant)
        }
        for group in sorted(self.groups, key=lambda group: (-len(group), group)):
            if all(path in constants for path in group):
                yield group, tuple(constants.pop(path) for path in group)

    def _is_grouped(self, path: str, constant: Literal) -> bool:
        return not (constant.kind is Kind.TIMESTAMP and self.attribute(path).texts)

    def _together(self, group: Group, constants: tuple[Literal, ...]) -> float:
        return self._share(self.groups[group].equal_to(constants))

    def _share(self, count: float) -> float:
        return min(max(count / self.events, 0.0), 1.0) if self.events else 0.0

    # saving and showing

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to a file, which is replaced in one step."""
        write_file(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Statistics:
        """Return the statistics in a file; raise `SavedStatisticsError` if it has none that can be read."""
        return cls(*read_file(Path(path)))

    def to_document(self) -> Any:
        """Return the statistics as a JSON document, as they are saved."""
        return msgspec.json.decode(encode(self))

    @classmethod
    def from_document(cls, document: Any) -> Statistics:
        """Return the statistics of a document by `to_document`; raise `SavedStatisticsError` for anything else."""
        return cls(*read_document(document))

    @property
    def bytes(self) -> int:
        """Return the size of the saved statistics in bytes."""
        return len(encode(self))

    def summary(self, most: int = 20) -> str:
        """Return a page of text for the terminal, with the `most` most frequent attributes and groups."""
        lines = [f"{self.events:,} events, {len(self.attributes):,} attributes, {len(self.groups):,} groups"]
        if self.refused:
            lines.append(f"{self.refused:,} records are no events and were left out")
        ranked = sorted(self.attributes.items(), key=lambda item: (-item[1].count, item[0]))
        for path, attribute in ranked[:most]:
            kinds = ", ".join(
                f"{values.distinct:,} {kind}{'s' if values.distinct != 1 else ''}"
                for kind, values in attribute.kinds.items()
            )
            lines.append(f"{self._share(attribute.count):7.1%}  {path}: {kinds}")
        if len(ranked) > most:
            lines.append(f"and {len(ranked) - most:,} more attributes")
        for group, found in list(self.groups.items())[:most]:
            lines.append(
                f"{self._share(found.count):7.1%}  {', '.join(group)}: {found.distinct:,} combinations"
            )
        if len(self.groups) > most:
            lines.append(f"and {len(self.groups) - most:,} more groups")
        if self.groups_left_out:
            lines.append(f"{self.groups_left_out:,} groups of the subscriptions were not counted")
        return "\n".join(lines)


def group_of(names: Sequence[str]) -> Group:
    """Return attributes as a group: in the order of their names, each once."""
    group = tuple(sorted(set(names)))
    if isinstance(names, str) or len(group) < 2:
        raise ValueError(f"a group is two attributes or more, not {names!r}")
    return group


def _equality(predicates: Sequence[Predicate]) -> Literal | None:
    """Return the constant of an equality among predicates on one attribute, if there is one."""
    for predicate in predicates:
        if predicate.operator is Operator.EQ and isinstance(constant := predicate.operands[0], Literal):
            return constant
    return None

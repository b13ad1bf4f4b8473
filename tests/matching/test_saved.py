"""Any matcher survives its folder, and a folder survives its matcher."""

from __future__ import annotations

import shutil
from hashlib import sha256
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from tests.contract.test_matchers import add, match, remove
from tests.contract.workloads import Add, Match, Operation, Remove, workloads
from tests.strategies import events, predicates
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.language.json_form import predicate_from_json, predicate_to_json
from tocsin.matching import (
    ConjunctionBatch,
    EventBatch,
    Matcher,
    Oracle,
    base,
    create_matcher,
    open_matcher,
    registered_matchers,
    registry,
    save_matcher,
    saved,
)
from tocsin.matching.be_tree._kernels.placement import take_out
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.matching.opindex._kernels.placement import withdraw
from tocsin.matching.saved import FORMAT
from tocsin.model import Event, Predicate, read_event
from tocsin.model.errors import MatcherError, SavedMatcherError, TocsinError
from tocsin.structures.jit import compiled_kernels

MATCHERS = sorted(registered_matchers())
INDEXED = [name for name in MATCHERS if name != "oracle"]


def apply(operation: Operation, *matchers: Matcher) -> None:
    """Do the same to all; the last one knows what comes of a match."""
    for matcher in matchers:
        if isinstance(operation, Add):
            matcher.add(operation.batch())
        elif isinstance(operation, Remove):
            remove(matcher, *operation.ids)
    if isinstance(operation, Match):
        batch = EventBatch.of(operation.events)
        wanted = matchers[-1].match(batch).to_lists()
        assert [matcher.match(batch).to_lists() for matcher in matchers] == [wanted] * len(matchers)


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_same_explanations(first: Matcher, second: Matcher, ids: list[int], event: Event) -> None:
    for id_ in ids:
        try:
            wanted = first.explain(event, id_)
        except MatcherError:
            with pytest.raises(MatcherError):
                second.explain(event, id_)
        else:
            assert second.explain(event, id_) == wanted


def assert_empty(vocabulary: Vocabulary) -> None:
    assert not len(vocabulary.names)
    assert not len(vocabulary.symbols)
    assert not len(vocabulary.predicates)
    assert not len(vocabulary.patterns)
    assert not len(vocabulary.tests)
    assert not vocabulary.timed
    assert not vocabulary.ordered_texts


@pytest.mark.parametrize("name", MATCHERS)
@settings(max_examples=settings().max_examples // 8)
@given(before=workloads(), after=workloads(), event=events)
def test_an_opened_matcher_goes_on_where_the_saved_one_stood(
    name: str, before: list[Operation], after: list[Operation], event: Event
) -> None:
    matcher, oracle = create_matcher(name), Oracle()
    for operation in before:
        apply(operation, matcher, oracle)
    ids = sorted({i for o in [*before, *after] if isinstance(o, Add) for i, _ in o.subscriptions})
    with TemporaryDirectory() as home:
        folder = Path(home) / "saved"
        save_matcher(matcher, folder)
        files = contents(folder)
        opened = open_matcher(folder)
        assert type(opened) is type(matcher)
        assert opened.stats().conjunctions == matcher.stats().conjunctions
        assert_same_explanations(matcher, opened, ids, event)
        for operation in (before[-1], *after):
            apply(operation, opened, matcher, oracle)
        assert_same_explanations(matcher, opened, ids, event)
        again = Path(home) / "again"
        save_matcher(opened, again)
        apply(after[-1], open_matcher(again), oracle)
        assert contents(folder) == files
        remove(opened, *ids)
        assert opened.stats().conjunctions == 0
        if isinstance(opened, base.IndexedMatcher):
            opened.vocabulary.names.forget_unused()
            opened.vocabulary.symbols.forget_unused()
            opened.vocabulary.predicates.forget_unused()
            assert_empty(opened.vocabulary)


@given(predicates())
def test_a_predicate_survives_its_form_exactly(predicate: Predicate) -> None:
    form = msgspec.json.decode(msgspec.json.encode(predicate_to_json(predicate)))
    assert repr(predicate_from_json(form)) == repr(predicate)


@pytest.mark.parametrize("name", MATCHERS)
@pytest.mark.parametrize("number", [0, 2**53 + 1, -(2**63), 2**70, 10**4299, -(10**4299)])
def test_integers_of_any_size_survive(name: str, number: int, tmp_path: Path) -> None:
    matcher = create_matcher(name)
    add(matcher, (1, parse_condition(f"a = {number} and b in ({number}, 'x') and c - {number} > 0")))
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)
    event: dict[str, object] = {"a": number, "b": number, "c": number + 1}
    assert match(opened, event, event | {"a": number + 1}) == [[1], []]


@pytest.mark.parametrize("name", MATCHERS)
def test_many_subscriptions_survive_and_their_files_stay_as_they_are(name: str, tmp_path: Path) -> None:
    count = 20_000 if name == "oracle" else 200_000
    random = np.random.default_rng(7)
    template = Template("symbol = :s and price > :p")
    rows = {
        "s": [f"S{i}" for i in random.integers(0, 500, count)],
        "p": np.round(random.uniform(0, 100, count), 2),
    }
    matcher = create_matcher(name)
    matcher.add(ConjunctionBatch.of_rows(np.arange(count, dtype=np.int64), template.bind_many(rows)))
    rows_of_events = [{"symbol": f"S{i}", "price": 50.0 + i} for i in range(3)]
    wanted = matcher.match(EventBatch.of_dicts(rows_of_events)).to_lists()
    assert all(wanted)
    save_matcher(matcher, tmp_path / "saved")
    files = contents(tmp_path / "saved")
    opened = open_matcher(tmp_path / "saved")
    assert opened.match(EventBatch.of_dicts(rows_of_events)).to_lists() == wanted
    opened.remove(np.arange(0, count, 2, dtype=np.int64))
    more = template.bind_many({"s": ["S0", "new"] * 50_000, "p": np.zeros(100_000)})
    opened.add(ConjunctionBatch.of_rows(np.arange(count, count + 100_000, dtype=np.int64), more))
    found = opened.match(EventBatch.of_dicts([*rows_of_events, {"symbol": "new", "price": 1}])).to_lists()
    odd = [[i for i in ids if i % 2] for ids in wanted]
    assert found[1:3] == odd[1:]
    assert found[0] == odd[0] + list(range(count, count + 100_000, 2))
    assert found[3] == list(range(count + 1, count + 100_000, 2))
    assert contents(tmp_path / "saved") == files


@pytest.mark.parametrize("name", INDEXED)
def test_no_kernel_is_compiled_once_more_for_mapped_arrays(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "_MAPPED", 1)
    matcher = create_matcher(name)
    condition = parse_condition("a = 1 and b > 2 and c in ('x', 'y') or d like '%x_y%' and e != 2")
    add(matcher, (1, condition))
    save_matcher(matcher, tmp_path / "saved")
    add(matcher, *((i, condition) for i in range(2, 500)))
    remove(matcher, *range(0, 500, 2))
    match(matcher, {"a": 1, "b": 3, "c": "x"})
    matcher.explain(read_event({}), 1)
    before = compiled_kernels()
    opened = open_matcher(tmp_path / "saved")
    assert isinstance(opened, base.IndexedMatcher)
    mapped = opened._store.owner
    assert type(mapped) is np.ndarray
    assert isinstance(mapped.base, np.memmap)
    assert mapped.flags.carray
    add(opened, *((i, condition) for i in range(500)))
    remove(opened, *range(0, 500, 2))
    assert match(opened, {"a": 1, "b": 3, "c": "x"}) == [list(range(1, 500, 2))]
    opened.explain(read_event({}), 1)
    assert compiled_kernels() == before


@pytest.mark.parametrize("name", INDEXED)
def test_matchers_that_shared_a_vocabulary_share_one_again(name: str, tmp_path: Path) -> None:
    vocabulary = Vocabulary()
    first, second = (create_matcher(name, vocabulary=vocabulary) for _ in range(2))
    names = [f"n{i}" for i in range(40)]  # more attributes than an empty matcher has room for
    add(first, (1, parse_condition("a = 'x' and t > timestamp '2026-01-01T00:00:00Z'")))
    add(second, *((i, parse_condition(f"{n} = 'x' and a in ('x', '{n}')")) for i, n in enumerate(names)))
    save_matcher(first, tmp_path / "first")
    save_matcher(second, tmp_path / "second")
    third = open_matcher(tmp_path / "first")
    assert isinstance(third, base.IndexedMatcher)
    assert [symbol for _, symbol in third.vocabulary.names] == ["a", "t"]  # the other's words are not kept
    fourth = open_matcher(tmp_path / "second", vocabulary=third.vocabulary)
    assert isinstance(fourth, base.IndexedMatcher)
    assert fourth.vocabulary is third.vocabulary
    batch = EventBatch.of_dicts([{"a": "x", "t": "2026-01-02T00:00:00Z", **dict.fromkeys(names, "x")}])
    assert third.match(batch).to_lists() == [[1]]
    assert fourth.match(batch).to_lists() == [list(range(40))]
    remove(third, 1)
    assert fourth.match(batch).to_lists() == [list(range(40))]
    remove(fourth, *range(40))
    assert_empty(third.vocabulary)


@pytest.mark.parametrize("name", ["be-tree", "opindex"])
def test_conjunctions_whose_move_was_interrupted_are_saved_with_the_rest(name: str, tmp_path: Path) -> None:
    matcher: Any = create_matcher(name)
    add(matcher, *((i, parse_condition(f"a = {i} and b = {i % 3}")) for i in range(200)))
    (matcher._moving,) = matcher._placeable(np.arange(200, dtype=np.int64))
    if name == "be-tree":
        take_out(matcher._state, matcher._moving.numbers)
    else:
        withdraw(matcher._state, matcher._moving)
    save_matcher(matcher, tmp_path)
    rows: list[dict[str, object]] = [{"a": i, "b": i % 3} for i in range(200)]
    assert match(open_matcher(tmp_path), *rows) == match(matcher, *rows) == [[i] for i in range(200)]


def test_static_without_a_limit_of_space_is_saved_and_opened(tmp_path: Path) -> None:
    for space in (inf, None):
        matcher = create_matcher("static", space=space)
        matcher.add(
            ConjunctionBatch.of((i, to_dnf(parse_condition(f"a = {i} and b = 1"))) for i in range(40))
        )
        save_matcher(matcher, tmp_path / "saved")
        opened = open_matcher(tmp_path / "saved")
        opened.cluster()  # type: ignore[attr-defined]
        assert opened.match(EventBatch.of_dicts([{"a": 7, "b": 1}])).to_lists() == [[7]]
        save_matcher(opened, tmp_path / "saved")
        assert open_matcher(tmp_path / "saved").stats().subscriptions == 40


def test_a_vocabulary_that_says_something_else_is_left_alone(tmp_path: Path) -> None:
    matcher, other = create_matcher("propagation"), create_matcher("propagation")
    add(matcher, (1, parse_condition("a = 'x'")))
    add(other, (1, parse_condition("b = 'y'")))
    save_matcher(matcher, tmp_path / "saved")
    assert isinstance(other, base.IndexedMatcher)
    with pytest.raises(SavedMatcherError, match="gives some codes to other words than the saved one does"):
        open_matcher(tmp_path / "saved", vocabulary=other.vocabulary)
    assert [symbol for _, symbol in other.vocabulary.names] == ["b"]
    assert match(other, {"b": "y"}) == [[1]]


class _Tally(NamedTuple):
    seen: NDArray[np.int64]
    weights: NDArray[np.float32]


class _Tallying(ClusteredMatcher):
    """Keeps an option, an array and a tuple of arrays of its own."""

    saved_options: ClassVar = ("space",)
    saved_states: ClassVar = ("_state", "_tally", "_extra")

    def __init__(self, *, space: float = 1.0, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(vocabulary=vocabulary)
        self.space = space
        self._tally = _Tally(np.zeros(4, np.int64), np.zeros((4, 2), np.float32))
        self._extra = np.zeros(3, np.uint8)


def test_the_state_of_a_subclass_is_saved_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._MATCHERS, "tallying", _Tallying)
    matcher = create_matcher("tallying", space=2.5)
    assert isinstance(matcher, _Tallying)
    matcher._tally.seen[2] = 7
    matcher._extra = np.arange(9, dtype=np.uint8)
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)
    assert isinstance(opened, _Tallying)
    assert opened.space == 2.5
    assert opened._tally.seen.tolist() == [0, 0, 7, 0]
    assert opened._extra.tolist() == list(range(9))

    monkeypatch.setattr(_Tallying, "saved_states", ("_state", "_tally", "_extra", "_more"))
    monkeypatch.setattr(_Tallying, "_more", np.zeros(1), raising=False)
    with pytest.raises(SavedMatcherError, match="it has no array `more`; save the matcher again"):
        open_matcher(tmp_path)


# folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    matcher = create_matcher("propagation")
    add(matcher, (1, parse_condition("a = 'x' and b like '%y_z%'")))
    save_matcher(matcher, tmp_path / "saved")
    return tmp_path / "saved"


def parts_of(folder: Path) -> Path:
    (parts,) = folder.glob("parts-*")
    return parts


def edit_manifest(folder: Path, **changes: Any) -> None:
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest | changes))


def refusal(folder: Path) -> str:
    with pytest.raises(SavedMatcherError) as caught:
        open_matcher(folder)
    assert isinstance(caught.value, TocsinError)
    return str(caught.value)


def test_the_manifest_describes_the_saved_matcher(folder: Path) -> None:
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
    assert manifest["matcher"] == "propagation"
    assert (manifest["subscriptions"], manifest["conjunctions"], manifest["predicates"]) == (1, 1, 2)
    assert manifest["arrays"]["state.totals"] == {"dtype": "<f8", "shape": [10]}
    assert manifest["parts"] == parts_of(folder).name


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no") == f"{tmp_path}/no: there is no such folder; `save_matcher` makes one"


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: this is not a saved matcher: it has no manifest.json"
    (tmp_path / "manifest.json").write_text('{"name": "an application"}')
    assert refusal(tmp_path) == (
        f"{tmp_path}: this is not a saved matcher: its manifest.json says something else "
        "(Object missing required field `saved`)"
    )
    (tmp_path / "manifest.json").write_text('{"saved": "tea", "format": 1, "tocsin": "0"}')
    assert refusal(tmp_path) == f"{tmp_path}: this is not a saved matcher: its manifest.json is of a `tea`"


def test_a_folder_from_the_future(folder: Path) -> None:
    edit_manifest(folder, format=FORMAT + 1, tocsin="9.9")
    assert refusal(folder) == (
        f"{folder}: it was saved by Tocsin 9.9 in format {FORMAT + 1}, and Tocsin 0.1.0 reads format {FORMAT}; "
        "update Tocsin, or save the matcher with this version"
    )


def test_a_folder_of_an_older_format(folder: Path) -> None:
    edit_manifest(folder, format=FORMAT - 1, tocsin="0.0.9")
    assert refusal(folder) == (
        f"{folder}: it was saved by Tocsin 0.0.9 in format {FORMAT - 1}, and Tocsin 0.1.0 reads format {FORMAT}; "
        "save the matcher again"
    )


def test_a_manifest_that_lacks_something(folder: Path) -> None:
    edit_manifest(folder, arrays=None)
    assert refusal(folder) == (
        f"{folder}/manifest.json: it cannot be read: Expected `object`, got `null` - at `$.arrays`; "
        "save the matcher again"
    )


def test_a_matcher_that_this_version_does_not_have(folder: Path) -> None:
    edit_manifest(folder, matcher="propagatoin")
    with pytest.raises(MatcherError, match="there is no matcher `propagatoin`; did you mean `propagation`"):
        open_matcher(folder)


@pytest.mark.parametrize("mapped", [1, 1 << 16])
def test_a_file_that_is_missing_or_damaged(
    folder: Path, mapped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "_MAPPED", mapped)
    file = parts_of(folder) / "state.store.newest.npy"
    whole = file.read_bytes()
    file.unlink()
    assert refusal(folder) == f"{file}: the file is missing; save the matcher again"
    for size in (0, 50, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert refusal(folder) == f"{file}: the file is cut short, or is no array; save the matcher again"
    np.save(file, np.zeros(64, dtype=np.int64))
    assert refusal(folder) == (
        f"{file}: the file holds int64[64], but the manifest says int32[64]; save the matcher again"
    )
    np.save(file, np.zeros(63, dtype=np.int32))
    assert refusal(folder) == (
        f"{file}: the file holds int32[63], but the manifest says int32[64]; save the matcher again"
    )


def test_words_that_are_missing_or_damaged(folder: Path) -> None:
    file = parts_of(folder) / "vocabulary.symbols.json"
    whole = file.read_bytes()
    file.unlink()
    assert refusal(folder) == f"{file}: the file is missing; save the matcher again"
    for broken in (whole[:-2], b"", b"7"):
        file.write_bytes(broken)
        assert refusal(folder) == f"{file}: the file is cut short, or is no list; save the matcher again"


def test_an_array_that_this_version_keeps_otherwise(folder: Path) -> None:
    np.save(parts_of(folder) / "state.totals.npy", np.zeros(8, dtype=np.float32))
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
    edit_manifest(folder, arrays={**manifest["arrays"], "state.totals": {"dtype": "<f4", "shape": [8]}})
    assert refusal(folder) == (
        f"{folder}: its array `state.totals` is float32[8], which is not what this version of Tocsin keeps "
        "there; save the matcher again"
    )


def test_no_matcher_is_saved_over_a_folder_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SavedMatcherError) as caught:
        save_matcher(Oracle(), tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: this folder is neither empty nor a saved matcher, and is left as it is; save to another"
    )
    with pytest.raises(SavedMatcherError, match="this is a file; a matcher is saved to a folder"):
        save_matcher(Oracle(), tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_matcher_that_is_not_registered_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(MatcherError, match="`_Tallying` is not a registered matcher"):
        save_matcher(_Tallying(), tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_saving_again_replaces_the_matcher_and_leaves_the_opened_one_as_it_is(folder: Path) -> None:
    opened = open_matcher(folder)
    add(opened, (2, parse_condition("a = 'x'")))
    save_matcher(opened, folder)
    parts_of(folder)  # the old ones are gone
    save_matcher(Oracle(), folder)
    assert match(opened, {"a": "x"}) == [[2]]
    assert isinstance(open_matcher(folder), Oracle)


def test_a_save_that_fails_leaves_the_old_matcher(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = contents(folder)
    matcher = open_matcher(folder)
    add(matcher, (2, parse_condition("a = 'x'")))

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    for target, name in ((np, "save"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, full)
            with pytest.raises(OSError, match="no space left"):
                save_matcher(matcher, folder)
        (folder / "manifest.json.new").unlink(missing_ok=True)
        assert contents(folder) == files
    assert match(open_matcher(folder), {"a": "x"}) == [[]]


def test_files_left_by_a_crash_are_removed_by_the_next_save(tmp_path: Path) -> None:
    (tmp_path / "parts-dead").mkdir()
    (tmp_path / "parts-dead" / "state.store.newest.npy").write_bytes(b"half")
    (tmp_path / "manifest.json.new").write_text("{")
    assert "this is not a saved matcher" in refusal(tmp_path)
    save_matcher(Oracle(), tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    open_matcher(tmp_path)


def test_a_folder_saved_again_while_it_is_opened_is_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, matcher = saved._read_array, open_matcher(folder)
    add(matcher, (2, parse_condition("a = 'x'")))
    waiting = [matcher]

    def read_late(*arguments: Any) -> NDArray[Any]:
        if waiting:
            save_matcher(waiting.pop(), folder)
        return read(*arguments)

    monkeypatch.setattr(saved, "_read_array", read_late)
    assert match(open_matcher(folder), {"a": "x"}) == [[2]]


def test_a_folder_can_be_moved(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder, tmp_path / "elsewhere")
    assert match(open_matcher(tmp_path / "elsewhere"), {"a": "x", "b": "yxz"}) == [[1]]

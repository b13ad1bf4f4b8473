"""Each broken subscription of the gallery gives exactly the message written below it."""

import pickle
from pathlib import Path

import pytest

from tocsin.language import parse
from tocsin.model.errors import LanguageError

GALLERY = Path(__file__).with_name("broken_subscriptions.txt").read_text(encoding="utf-8")
CASES = [
    tuple(case.split("\n===== error\n"))
    for case in GALLERY.removesuffix("\n").split("===== subscription\n")[1:]
]


def test_the_gallery_has_at_least_thirty_errors() -> None:
    assert len(CASES) >= 30


@pytest.mark.parametrize(("text", "message"), CASES, ids=[repr(text)[:60] for text, _ in CASES])
def test_a_broken_subscription_gets_the_message_of_the_gallery(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        parse(text)
    assert str(caught.value) == message.removesuffix("\n")


def test_an_error_carries_its_place_for_programs_too() -> None:
    with pytest.raises(LanguageError) as caught:
        parse("a = 1\n and b => 2")
    fault = caught.value
    assert (fault.line, fault.column, fault.offset, fault.length) == (2, 8, 13, 2)
    assert fault.suggestion == "did you mean `>=`?"
    assert "`>=`" in fault.expected


def test_a_long_line_is_shown_around_the_fault() -> None:
    with pytest.raises(LanguageError) as caught:
        parse(
            " and ".join(f"attribute_{i} = {i}" for i in range(100))
            + " and b => 2 and "
            + "c = 1 and " * 50
            + "d = 1"
        )
    _, shown, carets, *_ = str(caught.value).split("\n")
    assert len(shown) < 120
    assert shown.startswith("    …")
    assert shown.endswith("…")
    assert shown[carets.index("^") :].startswith("=>")


def test_the_caret_stands_under_the_fault_after_wide_characters_and_tabs() -> None:
    with pytest.raises(LanguageError) as caught:
        parse("名前 = '東京' and\tb => 2")
    _, _, carets, *_ = str(caught.value).split("\n")
    assert "\t" in carets
    assert (
        carets.count(" ") == 4 + len("名前 = '東京' and" + "b ") + 4
    )  # each of four wide characters takes two


def test_errors_survive_pickling() -> None:
    with pytest.raises(LanguageError) as caught:
        parse("a => 1")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


def test_lone_surrogates_are_refused_with_their_place() -> None:
    with pytest.raises(LanguageError, match="column 6: the text is not valid Unicode"):
        parse("a = '\ud800'")


@pytest.mark.parametrize(
    ("text", "meant"), [("from s a nxt s b", "next"), ("from s a where a.x = 1 foold s b", "fold")]
)
def test_a_mistyped_step_is_named(text: str, meant: str) -> None:
    with pytest.raises(LanguageError, match=f"did you mean `{meant}`"):
        parse(text)

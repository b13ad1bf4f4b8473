from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import tocsin
from tocsin import Engine
from tocsin.cli import subscription_loading
from tocsin.cli.subscription_loading import load_entries
from tocsin.formats.subscription_files import Entry


@pytest.mark.parametrize("together", [1, 2, 10_000])
def test_faults_are_reported_in_the_order_of_their_lines_and_the_rest_is_subscribed(
    together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(subscription_loading, "_TOGETHER", together)
    path = tmp_path / "subscriptions.txt"
    path.write_text(
        "  price = 1\n"  # continues nothing
        "high: price > 100\n"
        "bad: price => 1\n"
        "never: price = 1 and price = 2\n"
        "high: price > 200\n"
        "low:\n  price < 100\n  and price !\n"
        "ibm: symbol = 'IBM'\n"
    )
    reported: list[str] = []
    engine = Engine()
    assert load_entries(engine, path, lambda fault: reported.append(str(fault))) == 4
    assert [report.splitlines()[0] for report in reported] == [
        f"{path}:1: an indented line continues a subscription, but none has begun",
        f"{path}:3:12: subscription `bad`: a comparison is missing, found `=>`",
        f"{path}:5: subscription `high`: it is subscribed already; to change it, set `replace`",
        f"{path}:8:13: subscription `low`: a comparison is missing, found `!`",
    ]
    assert "subscription `never`: it can never match" in capsys.readouterr().err
    assert [one.id for one in engine.subscriptions()] == ["high", "never", "ibm"]
    assert [note.subscription for note in engine.publish({"price": 150})] == ["high"]


def test_the_entries_before_a_fault_that_ends_the_file_are_subscribed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(path: Path, _: object) -> Iterator[Entry]:
        yield Entry(str(path), 1, 0, "high", "price > 100")
        raise EOFError("the file ends in the middle")

    monkeypatch.setattr(subscription_loading, "read_subscriptions", read)
    engine = Engine()
    with pytest.raises(EOFError):
        load_entries(engine, Path("some.txt"), print)
    assert "high" in engine


def test_a_file_of_events_is_no_file_of_subscriptions(tmp_path: Path) -> None:
    for name, content in (
        ("flights.csv", "time,carrier\n2026-01-01,WN\n" * 2),
        ("flights.jsonl", '{"id": 1, "time": 5, "carrier": "WN"}\n' * 2),
    ):
        events = tmp_path / name
        events.write_text(content)
        reason = (
            f"{events} holds no subscriptions: each has a `text`, or a `query` in JSON, and the first record has "
            "`time`, `carrier`\n"
        )
        for command in (
            ("check", events),
            ("match", "-f", events, "-"),
            ("apply", events, "--to", tmp_path / "s.jsonl"),
        ):
            done = tocsin(*command)
            assert (done.returncode, done.stderr) == (2, reason)


def test_an_id_that_is_written_otherwise_has_a_hint(tmp_path: Path) -> None:
    for line in ("ann : price > 1", "my id: price > 1", "ann:price > 1"):
        (tmp_path / "subscriptions.txt").write_text(f"{line}\n")
        done = tocsin("check", tmp_path / "subscriptions.txt")
        assert (
            "an id is one word, with a colon right after it and then a space: my-id: price > 5" in done.stderr
        )
    (tmp_path / "subscriptions.txt").write_text("ann: price > :p\n")
    assert "an id is" not in tocsin("check", tmp_path / "subscriptions.txt").stderr

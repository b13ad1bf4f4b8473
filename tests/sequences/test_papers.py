"""The papers' examples as they are written, on a little data made by hand."""

from __future__ import annotations

import pytest

from tests.sequences.outcomes import event, found, shown, values
from tests.sequences.papers import PAPERS
from tocsin.errors import SubscriptionError
from tocsin.model import Event

_MINUTE = 60_000_000
_WEEK = 7 * 24 * 60 * _MINUTE


def _trade(id: str, minute: float, name: str, price: float, vol: int = 1) -> Event:
    return event(id, round(minute * _MINUTE), name=name, price=price, vol=vol)


def _post(id: str, time: int, site: str, link: str, description: str, category: str = "news") -> Event:
    data = {"site": site, "link": link, "description": description, "category": category}
    return Event(id, data, "blog", time, time)


POSTS = [
    _post("p1", 1, "military.blog.com", "http://m/1", "how they fare", "US troop morale"),
    _post("p2", 2, "s3", "http://c/2", "see http://m/1"),
    _post("p3", 3, "s1", "http://a/3", "about XYZ"),
    _post("p4", 4, "s2", "http://b/4", "read http://m/1 and http://a/3"),
    _post("p5", 5, "s1", "http://a/5", "also http://m/1"),
    _post("p6", 6, "s2", "http://b/6", "so says http://b/4"),
]


def test_s1_is_a_sequence_of_one_step_where_it_publishes() -> None:
    trades = [_trade("e1", 1, "IBM", 101), _trade("e2", 2, "IBM", 99), _trade("e3", 3, "MSFT", 101)]
    assert shown(found(PAPERS["S1"], trades)) == [f"e1[{_MINUTE},{_MINUTE}]"]


def test_s2_the_first_msft_after_a_dear_ibm_is_cheap() -> None:
    trades = [
        event("e1", 1, name="IBM", price=101),
        event("e2", 2, name="MSFT", price=24),
        event("e3", 3, name="IBM", price=102),
        event("e4", 4, name="MSFT", price=26),
        event("e5", 5, name="MSFT", price=20),
    ]
    assert shown(found(PAPERS["S2"], trades)) == ["e1e2[1,2]"]


def test_s4_a_stock_rises_for_half_an_hour() -> None:
    trades = [
        _trade("e1", 0, "IBM", 10),
        _trade("e2", 10, "IBM", 11),
        _trade("e3", 20, "MSFT", 5),
        _trade("e4", 30, "IBM", 11),
        _trade("e5", 40, "IBM", 9),
    ]
    assert shown(found(PAPERS["S4"], trades)) == [f"e1e2e4[0,{30 * _MINUTE}]"]


def test_s5_a_price_above_the_average_of_a_year() -> None:
    weeks = [(0, 10), (26, 20), (52, 30), (53, 21), (54, 5)]
    trades = [event(f"w{week}.", week * _WEEK, name="IBM", price=price) for week, price in weeks]
    bag = found(PAPERS["S5"], trades)
    assert shown(bag) == [f"w0.w26.w52.w53.[0,{53 * _WEEK}]"]
    assert values(bag) == [{"mean": 20}]


def test_s6_the_first_post_that_links_to_the_article() -> None:
    assert shown(found(PAPERS["S6"], POSTS)) == ["p1p4[1,4]"]


def test_s7_a_chain_of_posts_that_link_to_the_one_before() -> None:
    assert shown(found(PAPERS["S7"], POSTS)) == ["p3p4[3,4]", "p3p4p6[3,6]"]


def test_autq_a_fall_of_ten_minutes_and_a_rebound() -> None:
    trades = [
        _trade("e1", 0, "IBM", 100, 20_000),
        _trade("e2", 5, "IBM", 95),
        _trade("e3", 12, "IBM", 90),
        _trade("e4", 13, "IBM", 99),
    ]
    assert shown(found(PAPERS["AutQ"], trades)) == [f"e1e2e3e4[0,{13 * _MINUTE}]"]


def test_a_sequence_that_publishes_to_itself_is_refused() -> None:
    with pytest.raises(SubscriptionError, match="`p` closes a cycle"):
        found("from p a next p b publish as p", [])

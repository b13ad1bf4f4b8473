from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tocsin.display.rank_chart import rank_chart


@pytest.mark.parametrize("count", [1, 2, 7, 10, 999, 250_000])
def test_the_curve_rises_to_all_and_has_its_numbers_below(count: int) -> None:
    drawing = rank_chart(np.cumsum(1.0 / np.arange(1, count + 1)), "checks", "filters")
    ET.fromstring(drawing)  # noqa: S314 - our own
    assert f">{count:,}</text>" in drawing
    assert f"<title>{count:,}: 100 % of the checks</title>" in drawing
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', drawing)]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == 10
    assert len(heights) <= 120


def test_without_anything_there_is_no_chart() -> None:
    assert rank_chart(np.zeros(0), "checks", "filters") == rank_chart(np.zeros(3), "checks", "filters") == ""


def test_a_noun_is_escaped() -> None:
    assert "<b>" not in rank_chart(np.ones(1), "<b>", "<b>")

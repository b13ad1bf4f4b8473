from __future__ import annotations

import numpy as np

from tocsin.dissemination.cn_plus.minimum_rows import lowest_in_ranges, minimum_rows


def test_the_lowest_row_of_each_range_is_found() -> None:
    random = np.random.default_rng(5)
    for rows in (0, 1, 2, 7, 40):
        x, height = random.integers(0, 12, (2, rows)).astype(float)
        low, high = np.sort(random.integers(-1, 14, (80, 2)), axis=1).astype(float).T.copy()
        found_x, found = lowest_in_ranges(x, height, low, high)
        for place in range(80):
            within = {
                (h, a)
                for a, h in zip(x.tolist(), height.tolist(), strict=True)
                if low[place] <= a <= high[place]
            }
            if within:
                assert (found[place], found_x[place]) == min(within)
            else:
                assert np.isinf(found[place])
                assert np.isnan(found_x[place])


def test_minima_at_close_numbers_are_distinguished() -> None:
    for x in (np.arange(256.0), np.arange(1, 50) / 10):
        counts = minimum_rows(np.zeros(len(x), dtype=np.int64), 1, x, x, (x, x)).counts[0]
        assert counts.sum() == len(x)
        assert np.count_nonzero(counts) > 0.45 * len(x)

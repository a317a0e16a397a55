"""Block matching and aggregation: what BM3D and NL-Bayes share, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symsmooth import _native
from symsmooth.baselines import groups
from symsmooth.baselines.groups import Search, filter_groups, from_planes, to_planes, whole_patches
from symsmooth.core.image import open_image
from symsmooth.core.parallel import Pool

from .. import oracles

pytestmark = pytest.mark.usefixtures("instruction_set")
SHAPES = [((1, 1, 17, 19), (1, 4, 4)), ((2, 1, 14, 13), (1, 5, 5)), ((1, 7, 8, 9), (3, 3, 3))]


def match(guide, references, patch, radius, min_count, max_count, limit, boost=False, whole=None):
    """Run the kernel; groups as lists of (z, y, x)."""
    flags = None if whole is None else whole.astype(np.uint8)
    numbers = min(float(limit * len(guide) * np.prod(patch)), 1e29)
    found = _native.match_patches(
        guide, flags, *(np.array(r) for r in references), patch, radius, min_count, max_count, numbers,
        boost,
    )  # fmt: skip
    return [
        [tuple(map(int, np.unravel_index(c, guide.shape[1:]))) for c in row[:count]]
        for row, count in zip(found.members, found.counts, strict=True)
    ]


@pytest.mark.parametrize(("shape", "patch"), SHAPES)
@settings(max_examples=10)
@given(
    seed=st.integers(0, 99),
    max_count=st.integers(1, 60),
    min_count=st.integers(1, 60),
    reach=st.integers(0, 6),
    limit=st.sampled_from([np.inf, 2.0, 1.0, 0.0]),
    holes=st.booleans(),
)
def test_matching_is_brute_force(
    shape, patch, seed, max_count, min_count, reach, limit, holes
) -> None:
    rng = np.random.default_rng(seed)
    guide = rng.standard_normal(shape).astype(np.float32)
    whole = rng.random(shape[1:]) < 0.7 if holes else None
    radius = (0 if shape[1] == 1 else reach, reach, reach)
    last = [size - side for size, side in zip(shape[1:], patch, strict=True)]
    references = [sorted({0, end // 2, end}) for end in last]
    found = match(guide, references, patch, radius, min_count, max_count, limit, whole=whole)
    grid = [(z, y, x) for z in references[0] for y in references[1] for x in references[2]]
    for reference, own in zip(grid, found, strict=True):
        assert own == oracles.block_matching(
            guide, reference, patch, radius, max_count, min_count, limit, whole
        )


def test_a_boosted_reference_was_in_an_earlier_group() -> None:
    guide = np.random.default_rng(0).standard_normal((1, 1, 20, 20)).astype(np.float32)
    references = [[0], list(range(0, 17, 2)), list(range(0, 17, 2))]
    options = {
        "patch": (1, 4, 4),
        "radius": (0, 8, 8),
        "min_count": 9,
        "max_count": 9,
        "limit": np.inf,
    }
    plain = match(guide, references, **options)
    boosted = match(guide, references, **options, boost=True)
    done: set[tuple[int, int, int]] = set()
    for own, full in zip(boosted, plain, strict=True):
        assert own == ([] if full[0] in done else full)
        done |= set(own)
    assert any(not own for own in boosted)


def copy_groups(groups, planes) -> tuple[np.ndarray, np.ndarray]:
    """A filter that changes nothing; its weights differ from group to group."""
    total, mass = np.zeros_like(planes), np.zeros_like(planes)
    depth = min(planes.shape[1], 4) if planes.shape[1] > 1 else 1
    for g, row in enumerate(groups.members):
        for corner in row[: groups.counts[g]]:
            z, y, x = np.unravel_index(corner, planes.shape[1:])
            patch = np.s_[:, z : z + depth, y : y + 4, x : x + 4]
            total[patch] += (1 + g % 3) * planes[patch]
            mass[:, z, y, x] += 1 + g % 3
    return total, mass


@pytest.mark.parametrize("shape", [(40, 30, 1), (9, 11, 12, 2), (4, 25, 1), (130, 70, 3)])
def test_aggregating_untouched_groups_is_the_identity(shape) -> None:
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    planes = to_planes(values, 4)
    search = Search(side=4, step=3, radius=5, max_count=4)
    with Pool(2) as pool:
        result = filter_groups(
            [planes], planes[:1], np.empty((0, 0, 0), np.uint8), search, copy_groups,
            np.ones(4, np.float32), pool, "copy",
        )  # fmt: skip
    assert np.allclose(from_planes(result, shape[:-1]), values, atol=1e-5)


@pytest.mark.parametrize("grid", [(1, 150, 90), (1, 8, 8), (30, 26, 41)])
def test_tiles_hold_every_reference_once_and_cover_the_picture(grid) -> None:
    search = Search(side=8, step=3, radius=9, max_count=4)
    patch = (1 if grid[0] == 1 else 8, 8, 8)
    covered, seen = np.zeros(grid, int), np.zeros(grid, int)
    for tile in groups._tiles(grid, patch, search):
        starts = [part.start for part in tile.crop]
        for reference in np.stack(np.meshgrid(*tile.references), -1).reshape(-1, 3):
            at = tuple(int(s + r) for s, r in zip(starts, reference, strict=True))
            seen[at] += 1
            covered[tuple(slice(a, a + p) for a, p in zip(at, patch, strict=True))] += 1
    assert seen.max() == 1
    assert covered.min() >= 1


def test_whole_patches_have_no_missing_pixel() -> None:
    image = np.random.default_rng(2).random((12, 15))
    image[4, 6] = image[11, 0] = np.nan
    picture = open_image(image)
    whole = whole_patches(picture, 3, 3)
    assert whole.shape == (1, 12, 15)
    for y, x in np.ndindex(10, 13):
        assert whole[0, y, x] == np.isfinite(image[y : y + 3, x : x + 3]).all()

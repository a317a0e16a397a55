"""The border of the compiled core: what it refuses, which instruction set it uses, the same bits."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symsmooth
from symsmooth import _native
from symsmooth.core.channels import mix
from symsmooth.core.multiscale import double, halve
from symsmooth.core.patches import whiten
from symsmooth.filters import weights
from symsmooth.mixture import em
from symsmooth.noise.spectrum import filter_by_root
from symsmooth.noise.tone import correct_tone

Call = tuple[Any, ...]
PARTS = ("exp2", "product", "solve", "eigenvectors", "largest")  # only tests call these
VALUES = [name for name, found in vars(_native).items() if isinstance(found, type)]
METHODS = [
    f"{name}.{method}"
    for name in VALUES
    for method, found in vars(getattr(_native, name)).items()
    if callable(found) and not method.startswith("_")
]
FUNCTIONS = [
    name
    for name in dir(_native)
    if not name.startswith("_") and "instruction" not in name and name not in (*PARTS, *VALUES)
    if name != "keep_freed_memory"  # takes nothing
]
KERNELS = sorted(VALUES + METHODS + FUNCTIONS)
# Where a kernel is given an array that it fills; all others make what they return.
FILLED = {
    "add_at": [0],
    "add_rows": [0],
    "keep_largest": [2, 3],
    "list_members": [6, 7, 8],
    "mix_channels": [3],
    "move_parts": [3, 4, 5, 6],
    "scale_by_root": [0],
    "spectral_filter": [6],
    "strongest_clusters": [5, 6],
    "wiener_filter": [8],
}
MADE: dict[int, tuple[Any, str, Call]] = {}  # value objects, and what each was made of


def kernel(name: str) -> Callable[..., Any]:
    return functools.reduce(getattr, name.split("."), _native)


def record() -> dict[str, Call]:
    """One call of each kernel, as methods make it."""
    calls: dict[str, Call] = {}

    def recording(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if name not in calls or n_missing(calls[name]) > n_missing(arguments):
                calls[name] = tuple(copy(a) for a in arguments)
            result = own(*arguments)
            if name in VALUES:
                MADE[id(result)] = result, name, tuple(copy(a) for a in arguments)
            return result

        return call

    noisy = np.random.default_rng(0).normal(100.0, 20.0, (24, 26))
    with pytest.MonkeyPatch.context() as patch:
        for name in METHODS:
            value, method = name.split(".")
            patch.setattr(getattr(_native, value), method, recording(name, kernel(name)))
        for name in VALUES + FUNCTIONS:
            patch.setattr(_native, name, recording(name, kernel(name)))
        for method in ("denoise", "gsf", "nlm", "bm3d", "nl_bayes", "epll"):
            symsmooth.METHODS[method](noisy, 20.0, workers=1)
        symsmooth.fit_gsfw(noisy, 20.0, quality="preview", workers=1)  # asks for deviations
        image = noisy.astype(np.float32)[..., None]
        features = whiten(image, 3, 5.0, 20.0)
        start = em.initial_mixture(features, 4, np.random.default_rng(0))
        near = em.neighbourhood(features, start)
        em.responsibilities(features, start, near)
        weights.nlm(image, 3, 5, 20.0).to_sparse()
        steered = weights.lark(weights.steering_precision(image, 20.0, 1.0, 0.5), 5)
        steered.row_sums()
        steered.to_sparse()
        correct_tone(double(halve(image), image.shape[:2]), image, 1.0)
        filter_by_root(image, np.ones((1, 8, 8)), inverse=True)
        mix(image.repeat(3, axis=-1), np.eye(3, dtype=np.float32))
        groups = calls["bayes_groups"][0]
        _native.Groups(groups.members, groups.counts, (1, 24, 26), (1, 5, 5))
        _native.add_at(
            np.zeros(9, np.float32), np.arange(4, dtype=np.int32), np.ones(4, np.float32)
        )
    return calls


def n_missing(arguments: Call) -> int:
    return sum(value is None for value in arguments)


def copy(value: Any) -> Any:
    if id(value) in MADE:
        _, name, arguments = MADE[id(value)]
        return kernel(name)(*(copy(a) for a in arguments))
    return np.ascontiguousarray(value).copy() if isinstance(value, np.ndarray) else value


CALLS = record()
EXTREMES = [-(2**63), -(2**63) + 1, -(2**62), -(2**31), -1000, -1, 0, 1, 7]
EXTREMES += [1000, 2**20, 2**31 - 1, 2**31, 2**60, 2**62, 2**63 - 9, 2**63 - 1]


def arrays_of(name: str) -> list[int]:
    return [i for i, value in enumerate(CALLS[name]) if isinstance(value, np.ndarray)]


WITH_ARRAYS = [name for name in KERNELS if arrays_of(name)]


def with_argument(name: str, at: int, value: Any) -> list[Any]:
    arguments = [copy(a) for a in CALLS[name]]
    arguments[at] = value
    return arguments


def test_every_kernel_is_called_by_a_method() -> None:
    assert sorted(CALLS) == KERNELS


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_arrays_of_another_kind_are_refused(name) -> None:
    """And never converted: what a kernel writes to a copy would be lost."""
    for at in arrays_of(name):
        own = CALLS[name][at]
        kinds = (np.complex64, np.float16, np.int16, own.dtype.newbyteorder())
        wrong = [np.zeros(own.shape, kind) for kind in kinds]
        wrong += [own[np.newaxis], own.tolist(), "array"]
        apart = np.zeros((*own.shape[:-1], 2 * own.shape[-1]), own.dtype)[..., ::2]
        wrong += [] if apart.flags.c_contiguous else [apart]
        if own.itemsize > 1:
            odd = np.zeros(own.nbytes + 1, np.uint8)[1:].view(own.dtype).reshape(own.shape)
            wrong += [] if odd.flags.aligned else [odd]
        for value in wrong:
            with pytest.raises(TypeError, match="incompatible function arguments"):
                kernel(name)(*with_argument(name, at, value))


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_results_are_not_written_to_what_is_read_only(name) -> None:
    refused = []
    for at in arrays_of(name):
        own = copy(CALLS[name][at])
        own.flags.writeable = False
        try:
            kernel(name)(*with_argument(name, at, own))
        except TypeError:
            refused.append(at)
    assert refused == FILLED.get(name, [])


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_sizes_that_do_not_fit_are_refused(name) -> None:
    """One row or column less of any array: a ValueError, or it is not needed.  Never memory of others."""
    refused = 0
    for at in arrays_of(name):
        own = CALLS[name][at]
        for axis in range(own.ndim):
            for smaller in (own.take(range(own.shape[axis] - 1), axis), own.take([], axis)):
                try:
                    kernel(name)(*with_argument(name, at, copy(smaller)))
                except ValueError:
                    refused += 1
    assert refused


@pytest.mark.parametrize("name", KERNELS)
@given(st.data())
def test_indices_that_lead_outside_are_refused(name, data) -> None:
    """Any whole number of any array replaced by any other: a ValueError, or a result."""
    whole = [at for at in arrays_of(name) if CALLS[name][at].dtype.kind == "i"]
    numbers = [i for i, value in enumerate(CALLS[name]) if isinstance(value, int)]
    tuples = [i for i, value in enumerate(CALLS[name]) if isinstance(value, tuple)]
    extreme = st.sampled_from([-(2**31), -1000, -1, 0, 1, 7, 1000, 2**20, 2**31 - 1])
    if not whole + numbers + tuples:
        return
    at = data.draw(st.sampled_from(whole + numbers + tuples))
    value = data.draw(extreme)
    own = copy(CALLS[name][at])
    if at in whole:
        if own.size == 0:
            return
        own.reshape(-1)[data.draw(st.integers(0, own.size - 1))] = value
    elif at in tuples:
        place = data.draw(st.integers(0, len(own) - 1))
        own = (*own[:place], value, *own[place + 1 :])
    else:
        own = value
    try:
        kernel(name)(*with_argument(name, at, own))
    except (ValueError, MemoryError, TypeError):
        return


def replaced(value: Any, new: list[Any]) -> list[Any]:
    """An argument with each of its numbers, or the first and last of an array, replaced by others."""
    if isinstance(value, tuple):
        return [(*value[:i], x, *value[i + 1 :]) for i in range(len(value)) for x in new]
    if not isinstance(value, np.ndarray):
        return new
    results = []
    for place in (0, -1) if value.size else ():
        for x in new:
            if (
                value.dtype.kind == "f"
                or np.iinfo(value.dtype).min <= x <= np.iinfo(value.dtype).max
            ):
                results.append(copy(value))
                results[-1].reshape(-1)[place] = x
    return results


def is_whole(value: Any) -> bool:
    """Whether an argument is made of whole numbers."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "i"
    return isinstance(value, (int, tuple)) and not isinstance(value, bool)


@pytest.mark.parametrize("name", KERNELS)
def test_no_number_is_so_large_that_it_passes_for_another(name) -> None:
    """Every whole number at the ends of 64 bits: a ValueError or a result, never memory of others."""
    refused = 0
    read = [at for at, own in enumerate(CALLS[name]) if is_whole(own)]
    for at in read:
        for value in replaced(CALLS[name][at], EXTREMES):
            try:
                kernel(name)(*with_argument(name, at, value))
            except (ValueError, MemoryError):
                refused += 1
    assert refused or set(read) <= set(FILLED.get(name, []))


@pytest.mark.parametrize("name", KERNELS)
def test_floats_that_are_no_numbers_do_no_harm(name) -> None:
    for at, own in enumerate(CALLS[name]):
        odd = isinstance(own, float) or (isinstance(own, np.ndarray) and own.dtype.kind == "f")
        for value in replaced(own, [np.nan, np.inf, -np.inf, 1e-30, -1e38, 1e38]) if odd else []:
            with contextlib.suppress(ValueError):
                kernel(name)(*with_argument(name, at, value))


@pytest.mark.parametrize(
    ("name", "at", "value", "says"),
    [
        ("Groups", 0, 2**31 - 1, "lie in the planes"),
        ("Members", 1, 2**31 - 1, "lie in the channel"),
        ("Members", 4, (1, 9, 7), "64 pixels at most"),
        ("SymmetricWindow.apply", 1, (0, 1, 2**62, 1), "span must lie in the image"),
        ("Tiles", 0, -1, "lie in the grid"),
        ("Tiles", 2, -1, "ids must be clusters"),
        ("enlarge", 1, 3, "factor must be 2 or 4"),
        ("enlarge", 2, 2**63 - 1, "larger than factor times its size"),
        ("enlarge", 3, 0, "larger than factor times its size"),
        ("find_candidates", 1, (0, 16, 16), "1 to 2^20 along each axis"),
        ("list_members", 4, (2**20, 2**20, 26), "fit into int32"),
        ("list_members", 5, 2**63 - 1, "lie in the grid"),
        ("list_members", 6, 2**63 - 1, "room for all members"),
        ("match_patches", 7, -1, "min_count must not be negative"),
        ("spectral_filter", 2, 2**63 - 1, "first and last must be clusters"),
        ("strongest_clusters", 3, 1e-30, "close to 0"),
        ("sum_points", 5, 0, "subsample must be at least 1"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_in_words(name, at, value, says) -> None:
    own = CALLS[name][at]
    wrong = np.full_like(own, value) if isinstance(own, np.ndarray) else value
    with pytest.raises(ValueError, match=re.escape(says)):
        kernel(name)(*with_argument(name, at, wrong))


def test_a_shape_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"counts must have shape \(\d+\), got \(3\)"):
        _native.Groups(*with_argument("Groups", 1, np.zeros(3, np.int32)))


def scene(side: int, n_clusters: int, channels: int = 1) -> tuple[Any, Any, Any]:
    """Points, tiles and a mixture that fit together."""
    image = np.zeros((side, side, channels), np.float32)
    features = whiten(image, 3, 5.0, 20.0)
    mixture = em.initial_mixture(features, n_clusters, np.random.default_rng(0))
    last = np.array([[0, 1, side - 1, side, side - 1, side]])
    tiles = _native.Tiles(last, np.array([0, 1]), np.array([n_clusters - 1], np.int32))
    return features.points, tiles, mixture.native


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ((0, (11, 5)), "boxes must lie in the grid"),
        ((1, (13, 5)), "boxes must lie in the grid"),
        ((1, (12, 6)), "ids must be clusters of the mixture"),
        ((2, (12, 4)), "ids must be clusters of the mixture"),
        ((2, (12, 5, 3)), "as many numbers as points"),
    ],
)
def test_values_of_another_picture_are_refused(other, says) -> None:
    at, arguments = other
    values = list(scene(12, 5))
    _native.responsibilities(*values)
    values[at] = scene(*arguments)[at]
    more = {
        "sum_points": (None, None, 1),
        "aggregate_means": (np.zeros((5, 11), np.float32),),
        "responsibilities": (),
        "strongest_clusters": (1.0, 0.1, np.zeros((144, 1), np.int32), np.zeros((144, 1), "f4")),
    }
    for name, rest in more.items():
        with pytest.raises(ValueError, match=says):
            kernel(name)(*values, *rest)


def test_arrays_live_as_long_as_what_was_made_of_them() -> None:
    points, tiles, mixture = scene(12, 5)
    before = _native.responsibilities(points, tiles, mixture)
    trash = [np.full(2**k, np.nan, np.float32) for k in range(4, 14)]  # where arrays were, if freed
    assert np.array_equal(_native.responsibilities(points, tiles, mixture), before)
    del trash


def test_points_far_from_all_clusters_belong_to_some_that_exist(instruction_set) -> None:
    """Squared distances up to the largest float, where log-densities end."""
    _, tiles, mixture, *rest, clusters, weights = (copy(a) for a in CALLS["strongest_clusters"])
    _, _, (padded, *how) = MADE[id(CALLS["strongest_clusters"][0])]
    for factor in (1e5, 1e10, 1e15, 1e17, 1e19):
        clusters[:], weights[:] = -1, 0.0
        points = _native.Points(padded * np.float32(factor), *how)
        _native.strongest_clusters(points, tiles, mixture, *rest, clusters, weights)
        assert (clusters[weights > 0] >= 0).all()
        assert (clusters < len(MADE[id(CALLS["strongest_clusters"][2])][2][0])).all()


def test_positions_that_are_no_numbers_leave_the_other_clusters_alone() -> None:
    grid, tile, centres, radius, _ = (copy(a) for a in CALLS["find_candidates"])

    def listed() -> list[list[int]]:
        pointers, ids = _native.find_candidates(grid, tile, centres, radius)
        return [[i for i in part if i != 0] for part in np.split(ids, pointers[1:-1])]

    before = listed()
    centres[0] = np.nan
    assert listed() == before


def at_address(value: Any, shift: int) -> Any:
    """The same argument with its arrays elsewhere, at another alignment."""
    if id(value) in MADE:
        _, name, arguments = MADE[id(value)]
        return kernel(name)(*(at_address(a, shift) for a in arguments))
    if not isinstance(value, np.ndarray):
        return value
    room = np.zeros(value.nbytes + 128, np.uint8)
    at = -room.ctypes.data % 64 + shift // value.itemsize * value.itemsize
    own = room[at : at + value.nbytes].view(value.dtype).reshape(value.shape)
    own[...] = value
    return own


def bits(result: Any) -> Any:
    """What can be compared: bytes of arrays, also in tuples, and of groups."""
    if isinstance(result, _native.Groups):
        return bits((result.members, result.counts))
    if isinstance(result, tuple):
        return [bits(part) for part in result]
    return result.tobytes() if isinstance(result, np.ndarray) else result


@pytest.mark.parametrize("name", METHODS + FUNCTIONS)
def test_bits_do_not_depend_on_addresses(name, instruction_set) -> None:
    results = []
    for shift in (0, 4, 12, 20):
        arguments = tuple(at_address(value, shift) for value in CALLS[name])
        returned = kernel(name)(*arguments)
        results.append((bits(returned), [bits(arguments[at]) for at in arrays_of(name)]))
    assert all(result == results[0] for result in results)


def test_instruction_sets_agree(instruction_set) -> None:
    """Up to rounding: fused products round once, others twice."""
    noisy = np.random.default_rng(0).random((40, 48)).cumsum(axis=0)
    for method in ("gsfw", "gsf", "bm3d", "nl_bayes", "nlm"):
        result = symsmooth.METHODS[method](noisy, 0.3, workers=1)
        _native.use_instruction_set("baseline")
        expected = symsmooth.METHODS[method](noisy, 0.3, workers=1)
        _native.use_instruction_set(instruction_set)
        assert np.sqrt(np.mean((result - expected) ** 2)) < 0.01


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_that_ends_while_a_thread_holds_a_value_says_nothing() -> None:
    code = """
import threading, numpy, symsmooth._native as native
def hold(value):
    started.set()
    threading.Event().wait()
started = threading.Event()
points = native.Points(numpy.zeros((1, 8, 8, 1), numpy.float32), (1, 3, 3), 2, 1.0)
threading.Thread(target=hold, args=(points,), daemon=True).start()
started.wait()
"""
    done = run(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_instruction_set_can_be_chosen() -> None:
    code = "from symsmooth import _native; print(_native.instruction_set())"
    for name in _native.instruction_sets():
        assert run(code, SYMSMOOTH_ISA=name).stdout.strip() == name
    assert run(code, SYMSMOOTH_ISA="").stdout.strip() == _native.instruction_sets()[0]


def test_one_that_is_not_here_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"vax is not available here; .* one of .*baseline"):
        _native.use_instruction_set("vax")
    done = run("import symsmooth; symsmooth.denoise_nlm", SYMSMOOTH_ISA="vax")
    assert done.returncode != 0
    assert "vax is not available here" in done.stderr.splitlines()[-1]

"""How GSF-W's stages follow the noise."""

from __future__ import annotations

import itertools

import pytest

from symsmooth import METHODS
from symsmooth.gsfw.presets import PRESETS, Ramp, adapt, calibration, for_noise, widen
from symsmooth.noise import grey_levels

NOISE = [2.0, 10.0, 18.0, 22.0, 30.0, 45.0, 80.0, 150.0]  # grey levels of a natural picture


def at(level: float) -> float:
    """Contrast of a natural picture with so many grey levels of noise."""
    return grey_levels(level)


def test_a_ramp_goes_from_its_start_to_its_end_and_stays_there() -> None:
    ramp = Ramp(10.0, 30.0, start=2.0, rise=-1.0)
    assert [ramp(value) for value in (-5, 10, 15, 20, 30, 99)] == [2.0, 2.0, 1.75, 1.5, 1.0, 1.0]
    assert Ramp(0.0, 4.0)(1.0) == 0.25


def test_contrast_and_grey_levels_are_each_others_inverse() -> None:
    assert grey_levels(grey_levels(25.0)) == pytest.approx(25.0)


def test_a_slower_preset_looks_at_more() -> None:
    """More stages, or stages of more clusters: users are told of them in the order of time."""

    def work(name: str) -> float:
        stages = adapt(PRESETS[name], at(25.0), 2).stages
        return sum(s.max_clusters * s.patch_size**2 / s.pixels_per_cluster for s in stages)

    costs = [work(name) for name in ("preview", "fast", "balanced", "best")]
    assert costs == sorted(costs)
    assert [len(PRESETS[name].stages) for name in ("preview", "fast", "balanced", "best")] == [
        1,
        2,
        3,
        3,
    ]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("n_dims", [2, 3])
def test_stages_change_smoothly_with_the_noise(name, n_dims) -> None:
    """One more per cent of noise changes nothing by more than three."""
    for level in range(2, 120):
        before, after = (adapt(PRESETS[name], at(level * step), n_dims) for step in (1.0, 1.01))
        assert abs(after.coarse - before.coarse) < 0.03
        for a, b in zip(before.stages, after.stages, strict=True):
            assert (a.patch_size, a.pixels_per_cluster) == (b.patch_size, b.pixels_per_cluster)
            for field in ("h_s", "temperature", "feedback", "strength", "reach"):
                assert getattr(b, field) == pytest.approx(getattr(a, field), rel=0.03)


@pytest.mark.parametrize("name", ["fast", "balanced", "best"])
def test_volumes_have_small_cubes_and_narrow_clusters(name) -> None:
    flat, deep = (adapt(PRESETS[name], at(25.0), n_dims) for n_dims in (2, 3))
    assert {pilot.patch_size for pilot in deep.pilots} == {3}
    assert deep.final.patch_size == 4
    for a, b in zip(flat.stages, deep.stages, strict=True):
        assert b.h_s < 0.5 * a.h_s
        assert b.strength <= a.strength


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("n_dims", [2, 3])
def test_clusters_end_within_their_halo(name, n_dims) -> None:
    """No pixel of a block, without its halo, misses a patch of its clusters."""
    halo = METHODS["gsfw"].halo(n_dims)
    for level in NOISE:
        for stage in adapt(PRESETS[name], at(level), n_dims).stages:
            assert stage.h_s <= halo / 3
            assert stage.h_s * stage.reach + stage.patch_size <= halo


@pytest.mark.parametrize("name", PRESETS)
def test_more_noise_never_means_narrower_pilots_or_more_feedback(name) -> None:
    fitted = [adapt(PRESETS[name], at(level), 2) for level in NOISE]
    for before, after in itertools.pairwise(fitted):
        for a, b in zip(before.pilots, after.pilots, strict=True):
            assert a.h_s <= b.h_s
            assert a.feedback >= b.feedback
            assert a.temperature <= b.temperature
        assert before.coarse <= after.coarse
        assert before.coarse_final <= after.coarse_final
        if before.final is not None:
            assert before.final.strength <= after.final.strength
    assert fitted[0].coarse == 0.0
    assert fitted[-1].coarse == 1.0


def test_smooth_gradients_begin_twice_as_wide_and_softer() -> None:
    plain, smooth = (adapt(PRESETS[name], at(5.0), 2).final for name in ("fast", "best"))
    assert smooth.h_s == 2 * PRESETS["best"].final.h_s
    assert plain.h_s < PRESETS["fast"].final.h_s
    assert smooth.temperature < plain.temperature == 0.5


@pytest.mark.parametrize("name", PRESETS)
def test_patches_fit_the_kernels(name) -> None:
    for n_dims in (2, 3):
        for stage in adapt(PRESETS[name], at(25.0), n_dims, 3).stages:
            assert stage.patch_size <= 8
            assert stage.patch_size**n_dims <= 64


@pytest.mark.parametrize("name", PRESETS)
def test_coarse_noise_has_no_closer_plan_than_white_noise(name) -> None:
    """One pilot, softer clusters, and no more of them: it is known less well."""
    white, coarse = for_noise(name, 0.0), for_noise(name, 0.9)
    assert white == PRESETS[name]
    assert len(coarse.pilots) == 1
    assert coarse.stages[-1].temperature <= white.stages[-1].temperature
    assert coarse.pilots[0].pixels_per_cluster >= white.pilots[0].pixels_per_cluster
    assert all(stage.iterations == 1 for stage in coarse.stages)


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_a_slower_plan_looks_at_more_for_any_noise(share: float) -> None:
    def work(name: str, n_channels: int) -> float:
        stages = adapt(for_noise(name, share), at(25.0), 2, n_channels).stages
        return sum(s.max_clusters * s.patch_size**2 / s.pixels_per_cluster for s in stages)

    for n_channels in (1, 3):
        costs = [work(name, n_channels) for name in ("preview", "fast", "balanced", "best")]
        assert costs == sorted(costs)


def test_colour_has_fewer_larger_clusters() -> None:
    grey, colour = (adapt(PRESETS["best"], at(25.0), 2, channels) for channels in (1, 3))
    assert colour.final.pixels_per_cluster > grey.final.pixels_per_cluster
    assert colour.final.patch_size < grey.final.patch_size
    for a, b in zip(grey.stages, colour.stages, strict=True):
        assert b.max_clusters < a.max_clusters


def test_repetition_widens_only_what_repeats() -> None:
    stage = PRESETS["best"].final
    assert widen(stage, 0.1) == stage
    assert widen(stage, 1.0).h_s == 40.0
    assert widen(stage, 1.0).reach == 1.5
    assert stage.h_s < widen(stage, 0.5).h_s < 40.0


def test_a_pilot_alone_claims_too_little() -> None:
    assert (
        calibration(PRESETS["preview"], at(100.0)) > calibration(PRESETS["preview"], at(5.0)) > 1.0
    )
    assert calibration(PRESETS["best"], 1.0) == calibration(PRESETS["best"], 9.0) < 1.0

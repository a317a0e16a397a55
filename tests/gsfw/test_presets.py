"""How GSF-W's stages follow the noise."""

from __future__ import annotations

import itertools

import pytest

from symsmooth.gsfw.presets import PRESETS, adapt, calibration, widen

NOISE = [2.0, 10.0, 18.0, 22.0, 30.0, 45.0, 80.0, 150.0]  # grey levels of a natural picture


def at(grey_levels: float) -> float:
    return 56.0 / grey_levels


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


def test_colour_has_fewer_larger_clusters() -> None:
    grey, colour = (adapt(PRESETS["best"], at(25.0), 2, channels).final for channels in (1, 3))
    assert colour.pixels_per_cluster > grey.pixels_per_cluster
    assert colour.patch_size < grey.patch_size


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

"""What repeats itself is told from what does not."""

import numpy as np
import pytest
from skimage import data

from symsmooth.gsfw.repetition import share_repeated
from symsmooth.noise import add_noise

SIGMA = 0.1
Y, X = np.indices((96, 128))


def pilot(clean: np.ndarray) -> np.ndarray:
    """What a first pilot may look like: a twentieth of the noise's variance is left."""
    return add_noise(clean, SIGMA / 20**0.5, 0).astype(np.float32)


@pytest.mark.parametrize("period", [4, 8, 10, 16])
def test_a_checkerboard_repeats_itself(period) -> None:
    board = (Y // (period // 2) + X // (period // 2)) % 2.0
    assert share_repeated(pilot(board), SIGMA) > 0.7


@pytest.mark.parametrize(
    "clean", [data.camera()[100:196, 150:278] / 255.0, X / 128.0, np.zeros((96, 128))]
)
def test_a_photograph_a_ramp_a_blank_page_do_not(clean) -> None:
    assert share_repeated(pilot(clean), SIGMA) < 0.25


def test_the_answer_has_no_units() -> None:
    board = pilot((Y // 4 + X // 4) % 2.0)
    assert share_repeated(1000 + 50 * board, 50 * SIGMA) == share_repeated(board, SIGMA)


def test_a_small_picture_and_a_volume_have_no_far_away() -> None:
    assert share_repeated(np.zeros((24, 200), np.float32), SIGMA) == 0.0
    assert share_repeated(np.zeros((40, 40, 40), np.float32), SIGMA) == 0.0

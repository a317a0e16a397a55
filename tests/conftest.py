"""A browser; pictures: scikit-image's own, and the paper's where SYMSMOOTH_IMAGES says they are."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

from symsmooth import _native

if TYPE_CHECKING:
    from symsmooth_repro.model import Reproduction

    from .barriers import Barrier

settings.register_profile("symsmooth", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("symsmooth")

# Who runs in the background, or under nohup, ignores Ctrl-C or that the terminal was closed, and so would
# all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

CLASSICS = [
    "baboon",
    "barbara",
    "boat",
    "bridge",
    "couple",
    "hill",
    "house",
    "lena",
    "man",
    "peppers",
]


FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(params=_native.instruction_sets(), scope="module")
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test once on each instruction set that was built and that this processor has."""
    used = _native.instruction_set()
    _native.use_instruction_set(request.param)
    yield request.param
    _native.use_instruction_set(used)


@pytest.fixture
def barrier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barrier]:
    """A place where another process waits until the test lets it go on."""
    from .barriers import Barrier

    made = Barrier(tmp_path_factory.mktemp("barrier"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def image_folder() -> Path:
    folder = os.environ.get("SYMSMOOTH_IMAGES")
    if not folder:
        pytest.skip("SYMSMOOTH_IMAGES is not set: the paper's pictures are not here")
    return Path(folder)


@pytest.fixture(scope="session")
def classics(image_folder: Path) -> dict[str, np.ndarray]:
    """The paper's ten pictures at 128 x 128, values in [0, 1]."""
    return {name: read_resized(image_folder / "classic" / f"{name}.png") for name in CLASSICS}


@pytest.fixture(scope="session")
def training(image_folder: Path) -> list[np.ndarray]:
    """40 pictures of the development set, values in [0, 1]."""
    files = sorted((image_folder / "train400").glob("*.png"))[::10][:40]
    return [np.asarray(Image.open(f).convert("L")) / 255.0 for f in files]


def read_resized(path: Path, side: int = 128) -> np.ndarray:
    picture = Image.open(path).convert("L").resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(picture) / 255.0


@pytest.fixture(scope="session")
def camera() -> np.ndarray:
    """A 64 x 64 piece of a real photograph, values in [0, 1]."""
    from skimage import data

    return data.camera()[80:144, 200:264] / 255.0


@pytest.fixture(scope="session")
def small_run() -> Reproduction:
    """Every experiment of the paper on a few pixels."""
    from .reduced import run_all

    return run_all()


@pytest.fixture(scope="session")
def small_report(small_run: Reproduction, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on it."""
    from symsmooth_repro.report import REPORT, write

    folder = tmp_path_factory.mktemp("report")
    write(small_run, folder)
    return folder / REPORT


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium; skipped only where there is none."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    found = os.environ.get("SYMSMOOTH_BROWSER", found)
    if found is None:
        pytest.skip("no Chromium or Chrome on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


class Opened:
    """A page in the browser, and all that it asked for and complained of."""

    def __init__(self, browser: Any, place: Path | str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", lambda answer: self._refused(answer))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(place.as_uri() if isinstance(place, Path) else place)
        if isinstance(place, Path):
            self.page.wait_for_load_state("networkidle")

    def _refused(self, answer: Any) -> None:
        if answer.status >= 400:
            self.complaints.append(f"{answer.status} {answer.url}")


def audit(page: Any) -> list[str]:
    """Return what axe-core finds serious or critical on a page and in its frames."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    script = next(Path(package.__file__).parent.rglob("axe.min.js")).read_text("utf-8")
    for frame in page.frames:
        frame.evaluate(script)
    found = page.evaluate("axe.run(document)")["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open a file; nothing may have been complained of, or asked of anybody, at the end."""
    visits: list[Opened] = []

    def visit_page(path: Path, **options: Any) -> Any:
        visits.append(Opened(browser, path, **options))
        return visits[-1].page

    yield visit_page
    for opened in visits:
        assert opened.complaints == []
        assert all(url.startswith(("file:", "data:")) for url in opened.requests)
        opened.context.close()

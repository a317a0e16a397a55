"""What a release is made of agrees with what the package is."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
import types
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symsmooth

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8"))
    wanted = {"python", *(name.lower().replace(" ", "") for name in PROJECT["dependencies"])}
    assert {str(line).lower().replace(" ", "") for line in recipe["requirements"]["run"]} == wanted
    assert recipe["build"]["python"]["entry_points"] == ["symsmooth = symsmooth.cli:main"]


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64", "win-64"])
def test_the_conda_recipe_is_one_for_every_platform(platform: str) -> None:
    """rattler-build, which conda-forge builds with, knows every field of it."""
    rattler = pytest.importorskip("rattler_build", reason="is in the group release")
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8")
    recipe = rattler.Stage0Recipe.from_yaml(text)
    places = dict.fromkeys(("build_platform", "host_platform", "target_platform"), platform)
    config = rattler.RenderConfig(platform=rattler.PlatformConfig(**places))
    (found,) = recipe.render(rattler.VariantConfig({"c_stdlib": ["sysroot"]}), config)
    assert str(found.recipe.package.name) == "symsmooth"
    with pytest.raises(Exception, match="unknown field"):
        rattler.Stage0Recipe.from_yaml(text.replace("homepage:", "home_page:"))


def test_versions_of_python_agree() -> None:
    """Classifiers, the wheels that are built, and the workflow's matrix name the same versions."""
    lowest = PROJECT["requires-python"].removeprefix(">=")
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert named[0] == lowest
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    (matrix,) = re.findall(r"^        python: \[(.*)\]$", workflow, re.MULTILINE)
    assert re.findall(r"3\.\d+", matrix) == named


def test_citation_and_changelog_name_the_same_release() -> None:
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    newest = re.search(r"^## (\d\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert cited is not None
    assert newest is not None
    assert cited[1] == newest[1]


def test_the_docker_image_has_extras_that_exist() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    (extras,) = re.findall(r"\$\{wheel\}\[([\w,]+)\]", text)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert re.search(r"^USER (?!root|0)", text, re.MULTILINE)
    assert "HEALTHCHECK" in text


class Siril:
    """Siril, as far as the script knows it."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels, self.told, self.undo = pixels, [], []

    def connect(self) -> None: ...

    def is_image_loaded(self) -> bool:
        return True

    @contextmanager
    def image_lock(self) -> Any:
        yield

    def get_image_pixeldata(self) -> np.ndarray:
        return self.pixels

    def set_image_pixeldata(self, pixels: np.ndarray) -> None:
        assert self.undo, "the state before is kept first"
        self.pixels = pixels

    def undo_save_state(self, text: str) -> None:
        self.undo.append(text)

    def update_progress(self, text: str, share: float) -> None: ...

    def reset_progress(self) -> None: ...

    def log(self, text: str) -> None:
        self.told.append(text)


@pytest.mark.parametrize("shape", [(48, 40), (3, 48, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
def test_the_siril_script_denoises_what_is_loaded(shape, dtype, monkeypatch) -> None:
    scale = 1.0 if dtype == np.float32 else 50000.0
    clean = np.broadcast_to(np.linspace(0.3, 0.6, shape[-1]), shape)
    noisy = clean + np.random.default_rng(0).normal(0, 0.03, shape)
    siril = Siril((noisy * scale).astype(dtype))
    fake = types.ModuleType("sirilpy")
    fake.SirilInterface = lambda: siril  # type: ignore[attr-defined]
    fake.ensure_installed = lambda name: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sirilpy", fake)
    path = ROOT / "packaging" / "siril" / "symsmooth.py"
    spec = importlib.util.spec_from_file_location("siril_script", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main()
    assert siril.pixels.dtype == dtype
    assert siril.pixels.shape == shape
    assert siril.pixels.flags["C_CONTIGUOUS"]
    assert np.abs(siril.pixels / scale - clean).mean() < 0.5 * np.abs(noisy - clean).mean()
    assert "noise" in siril.told[-1]


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert symsmooth.__version__ == version("symsmooth")
    with pytest.raises(AttributeError, match="nonsense"):
        symsmooth.nonsense  # noqa: B018

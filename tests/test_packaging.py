"""What a release is made of agrees with what the package is."""

from __future__ import annotations

import ast
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


FOLDERS = {
    "symsmooth": ROOT,
    "symsmooth_repro": ROOT / "packages" / "symsmooth-repro",
    "napari_symsmooth": ROOT / "packages" / "napari-symsmooth",
}
RECIPES = [name.replace("_", "-") for name in FOLDERS]


def recipe_text(name: str) -> str:
    return (ROOT / "packaging" / "conda" / name / "recipe.yaml").read_text("utf-8")


@pytest.mark.parametrize("package", FOLDERS)
def test_a_conda_recipe_needs_what_its_package_needs(package: str) -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(recipe_text(package.replace("_", "-")))
    project = tomllib.loads((FOLDERS[package] / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {line.lower().replace(" ", "") for line in project["dependencies"]}
    wanted = {
        line.replace("matplotlib>", "matplotlib-base>")
        for line in wanted
        if not line.startswith("symsmooth")
    }
    if package == "symsmooth":
        wanted |= {"python"}
        assert recipe["build"]["python"]["entry_points"] == ["symsmooth = symsmooth.cli:main"]
    else:  # one version of all
        wanted |= {"python>=${{python_min}}", "symsmooth==${{version}}"}
        assert recipe["build"]["noarch"] == "python"
        assert f">={recipe['context']['python_min']}" == project["requires-python"]
    assert {str(line).lower().replace(" ", "") for line in recipe["requirements"]["run"]} == wanted
    host = {str(line).partition(" ")[0] for line in recipe["requirements"]["host"]}
    build = tomllib.loads((FOLDERS[package] / "pyproject.toml").read_text("utf-8"))["build-system"]
    assert {re.split(r"[<>=]", line)[0] for line in build["requires"]} <= host


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64", "win-64"])
def test_a_conda_recipe_is_one_for_every_platform(name: str, platform: str) -> None:
    """rattler-build, which conda-forge builds with, knows every field of it."""
    rattler = pytest.importorskip("rattler_build", reason="is in the group release")
    text = recipe_text(name)
    recipe = rattler.Stage0Recipe.from_yaml(text)
    places = dict.fromkeys(("build_platform", "host_platform", "target_platform"), platform)
    config = rattler.RenderConfig(platform=rattler.PlatformConfig(**places))
    (found,) = recipe.render(rattler.VariantConfig({"c_stdlib": ["sysroot"]}), config)
    assert str(found.recipe.package.name) == name
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


@pytest.fixture
def set_version(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import set_version

    return set_version


def test_all_files_name_the_same_release(set_version: types.ModuleType) -> None:
    found = set_version.numbers()
    assert len(set(found.values())) == 1, found
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    heading = re.search(
        r"^## \S+ \((.*)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert heading is not None
    released = heading[1] != "unreleased"
    assert (f"\ndate-released: {heading[1]}\n" in cited) == released
    assert ("date-released" in cited) == released


def test_a_release_is_one_command(set_version: types.ModuleType, tmp_path: Path) -> None:
    for name, _, _ in set_version.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    set_version.write("7.8.9", "2031-02-03", tmp_path)
    assert set(set_version.numbers(tmp_path).values()) == {"7.8.9"}
    assert "## 7.8.9 (2031-02-03)\n" in (tmp_path / "CHANGELOG.md").read_text("utf-8")
    assert "\ndate-released: 2031-02-03\n" in (tmp_path / "CITATION.cff").read_text("utf-8")
    set_version.write("7.9.0", root=tmp_path)
    assert "## 7.9.0 (unreleased)\n" in (tmp_path / "CHANGELOG.md").read_text("utf-8")
    assert "date-released" not in (tmp_path / "CITATION.cff").read_text("utf-8")
    with pytest.raises(ValueError, match="three numbers"):
        set_version.write("7.9", root=tmp_path)


def test_the_docker_image_has_extras_that_exist() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    (extras,) = re.findall(r"\$\{wheel\}\[([\w,]+)\]", text)
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    for source in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE):
        assert all(f"!{name}" in ignored for name in source.split() if name != "."), source
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


# --- three packages ----------------------------------------------------------------------------

NAMES = {
    "PIL": "pillow",
    "skimage": "scikit-image",
    "cv2": "opencv-python-headless",
    "pywt": "pywavelets",
}
FROM_OTHERS = {"qtpy", "app-model", "numcodecs"}  # parts of napari and zarr
NOT_DECLARED = {"torch", "xarray"}  # images of these are taken, and they are not needed for it


def declared(project: dict[str, Any], extras: bool) -> set[str]:
    """The names of what a package needs, or may need."""
    lines = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values() if extras else ():
        lines += extra
    return {re.split(r"[\[<>=~]", line)[0].lower() for line in lines}


def imported(package: str) -> set[str]:
    """The names, as pip knows them, of what the modules of a package import of others."""
    found: set[str] = set()
    for path in (FOLDERS[package] / "src" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    others = found - set(sys.stdlib_module_names) - {package}
    return {NAMES.get(name, name.replace("_", "-")).lower() for name in others}


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_needs_what_it_imports_and_nothing_else(package: str) -> None:
    project = tomllib.loads((FOLDERS[package] / "pyproject.toml").read_text("utf-8"))["project"]
    needed, used = declared(project, extras=False), imported(package)
    assert used - FROM_OTHERS - NOT_DECLARED <= declared(project, extras=True)
    assert needed <= used


def test_the_packages_beside_it_agree_with_symsmooth() -> None:
    """One licence, one version, and no dependency within other limits."""
    limits = {re.split(r"[\[<>=~]", line)[0]: line for line in every_requirement(ROOT)}
    for folder in list(FOLDERS.values())[1:]:
        whole = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
        assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
        assert whole["project"]["requires-python"] == PROJECT["requires-python"]
        scm = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools_scm"]
        assert whole["tool"]["setuptools_scm"] == {"root": "../..", **scm}
        for line in every_requirement(folder):
            name = re.split(r"[\[<>=~]", line)[0]
            assert limits.get(name, line) == line or name == "symsmooth", line
        series = scm["fallback_version"].removesuffix(".dev0")
        assert any(line.endswith(f"~={series}.dev0") for line in whole["project"]["dependencies"])


def every_requirement(folder: Path) -> list[str]:
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return [*project["dependencies"], *(line for extra in extras for line in extra)]


def test_extras_that_are_named_exist() -> None:
    """In docstrings, messages and pages: ``the extra plots``, ``symsmooth[plots]``."""
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]
    for package, folder in FOLDERS.items():
        texts += (folder / "src" / package).rglob("*.py")
    for path in texts:
        if "_build" in path.parts:
            continue
        text = path.read_text("utf-8")
        named = re.findall(r"extra ``(\w+)``", text)
        named += [n for many in re.findall(r"symsmooth\[([\w,]+)\]", text) for n in many.split(",")]
        assert set(named) <= set(PROJECT["optional-dependencies"]), path

"""Every block of code in the README and the documentation runs.

Blocks of a page share their names and a folder of small files.
"""

from __future__ import annotations

import glob
import importlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import symsmooth
import symsmooth.io
import symsmooth.noise
from symsmooth import METHODS
from symsmooth.cli import main
from symsmooth.cli.arguments import parse_job
from symsmooth.mixture import em

from . import documents
from .conftest import Opened
from .documents import PLAIN, PYTHON, ROOT, SHELL, Block

PAGES = documents.pages()
BESIDE = ("packages/symsmooth-repro", "packages/napari-symsmooth")
FOLDERS = {  # what pip is told to install
    **dict.fromkeys((".", "symsmooth"), ROOT),
    **{name: ROOT / place for place in BESIDE for name in (place, Path(place).name)},
}
NOT_RUN = {  # commands whose options are checked, and that is all
    "reproduce": "measures for minutes",
    "benchmark": "measures for minutes",
    "demo": "is run by tests/test_cli.py",
    "serve": "does not end",
}
FOR_OTHER_MODULES = {  # of symsmooth.noise
    *("NATURAL_SPREAD", "Noise", "NoiseEstimator", "contrast", "grey_levels"),
    *("picture_sigma", "resolve", "resolve_sigma"),
}


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    documents.write_samples(folder)
    return folder


# --- blocks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if documents.blocks(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_code_of_a_page_runs(page, samples, tmp_path, monkeypatch, capsys) -> None:
    """What a block raises fails the test, and so does a command that ends badly or is unknown."""
    monkeypatch.chdir(shutil.copytree(samples, tmp_path / "here"))
    names: dict[str, object] = {"__name__": "__page__"}
    for block in documents.blocks(page):
        if block.language in PLAIN:
            continue
        if block.language in PYTHON:
            code = "\n" * (block.line - 1) + block.text  # so that tracebacks tell the page's lines
            exec(compile(code, str(page), "exec"), names)
        else:
            run_commands(block, monkeypatch)
    capsys.readouterr()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_nothing_else_is_code(page) -> None:
    """Blocks are in a language that is known here, and no other markup hides code."""
    known = {*SHELL, *PYTHON, *PLAIN}
    assert {block.language for block in documents.blocks(page)} <= known
    assert documents.directives(page) <= documents.DIRECTIVES
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"^\s*(\.\. code|~~~|>>> |<pre)", text, re.MULTILINE)
    assert not re.search(r"<!--(?! (table: [\w-]+|end) -->)", text)


def test_a_wrong_block_is_found(tmp_path, monkeypatch) -> None:
    """The reader of pages sees what is wrong with a page."""
    page = tmp_path / "page.md"
    page.write_text("a\n```python\n1 / 0\n```\ntext\n```\nsymsmooth nothing\n```\n")
    first, wrong = documents.blocks(page)
    assert (first.line, first.language, first.text) == (3, "python", "1 / 0\n")
    with pytest.raises(AssertionError, match="nothing"):
        run_commands(wrong, monkeypatch)
    for line in (
        "symsmooth noise --nonsense 3",
        "pip install '.[nonsense]'",
        "make nonsense",
        "ls",
    ):
        with pytest.raises((AssertionError, SystemExit, typer.BadParameter)):
            run_commands(Block(page, 1, "sh", line), monkeypatch)


def run_commands(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the lines of a shell block that are ours; check the rest for what they name."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = split(line)
        if words:
            assert words[0] in RUNNERS, f"{block.name}: nobody knows how to check {line!r}"
            RUNNERS[words[0]](words[1:], monkeypatch)


def split(line: str) -> list[str]:
    """Split a line as a shell does; patterns are expanded unless they are quoted."""
    words: list[str] = []
    for word in shlex.split(line, comments=True, posix=False):
        bare = word.strip("'\"")
        words += sorted(glob.glob(word)) if word == bare and "*" in word else [bare]
    return words[:-1] if words[-1:] == ["&"] else words


def run_symsmooth(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if words[0].startswith("-"):
        words = ["methods"]
    name, *rest = words
    assert name in documents.commands(), f"there is no command {name}"
    if name in NOT_RUN or "--scheduler" in rest:  # (there is no scheduler to ask)
        parse(name, rest)
        return
    for place in (rest[i + 1] for i, word in enumerate(rest[:-1]) if word in ("-o", "--out")):
        Path(place).parent.mkdir(exist_ok=True)
    monkeypatch.setattr(sys, "argv", ["symsmooth", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, f"symsmooth {shlex.join(words)}: exit code {ended.value.code}"


def parse(name: str, words: list[str]) -> None:
    """Check a command's options without running it."""
    context = documents.commands()[name].make_context(name, list(words))
    if name == "denoise":
        parse_job(context.params)


def check_pip(words: list[str], _: object) -> None:
    assert words[0] == "install"
    for word in words[1:]:
        found = re.fullmatch(r"([\w./-]+)(?:\[([\w,]+)\])?", word)
        assert found, word
        assert found[1] in FOLDERS, word
        project = tomllib.loads((FOLDERS[found[1]] / "pyproject.toml").read_text())["project"]
        named = set(filter(None, (found[2] or "").split(",")))
        assert named <= set(project["optional-dependencies"]), word


def check_make(words: list[str], _: object) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        assert re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE), f"make {word}"


def check_python(words: list[str], _: object) -> None:
    script = (ROOT / words[0]).read_text()
    assert all(word in script for word in words if word.startswith("--"))


def check_dask(words: list[str], _: object) -> None:
    from distributed.cli import dask_scheduler, dask_worker

    command: Any = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}[words[0]]
    command.make_context(words[0], list(words[1:]))


RUNNERS: dict[str, Callable[[list[str], Any], None]] = {
    "symsmooth": run_symsmooth,
    "pip": check_pip,
    "make": check_make,
    "python": check_python,
    "dask": check_dask,
}


# --- what the text says ------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_names_in_the_text_exist(page) -> None:
    text = page.read_text(encoding="utf-8")
    known_names = {*symsmooth.__all__, *em.__dict__}
    commands = documents.commands()
    for line in re.findall(r"`symsmooth ([a-z][^`]*)`", text):
        name, *words = shlex.split(line)
        assert name in commands, f"there is no command {name}"
        known = {flag for option in commands[name].params for flag in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, line
    for name in re.findall(r"`(denoise_\w+|fit_\w+|estimate_\w+)\b[^`]*`", text):
        assert name in known_names, name


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.suffix == ".md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_one_sentence_a_line(page, monkeypatch) -> None:
    """A change of one sentence is a change of one line (tools/sentences.py writes pages so)."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import sentences

    text = page.read_text(encoding="utf-8")
    assert sentences.tidy(text) == text


def test_sentences_are_told_apart(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import sentences

    assert sentences.split("It is 0.5 dB. Dabov et al. (2007) say `a. B`. See [x. Y](z.md). Done?") == [
        "It is 0.5 dB.", "Dabov et al. (2007) say `a. B`.", "See [x. Y](z.md).", "Done?",
    ]  # fmt: skip
    page = "# A. B\n\n- One. Two\n  three.\n\n```python\na. B\n```\n| a. B |\n"
    page += "$$\nx. Y\n$$ (label)\nEnd. New\n"
    made = sentences.tidy(page)
    assert "- One.\n  Two three.\n" in made
    assert "\nEnd.\nNew\n" in made
    assert all(kept in made for kept in ("# A. B\n", "a. B\n```\n| a. B |\n", "\nx. Y\n"))
    assert sentences.tidy(made) == made


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_and_pictures_are_there(name) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text()):
        assert (ROOT / target).exists(), target


def test_the_figures_of_the_front_page_are_those_of_its_pictures() -> None:
    from symsmooth.app.demo import pictures
    from symsmooth.core.metrics import psnr

    clean, _ = pictures()
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    strip = re.findall(r"images/(front/[\w-]+\.png)\n.*?, ([\d.]+) dB\n", text, re.DOTALL)
    assert len(strip) == 5
    for name, told in strip:
        pixels = symsmooth.io.read_image(ROOT / "docs" / "images" / name).pixels
        assert float(told) == pytest.approx(psnr(pixels, clean, 255), abs=0.006)


def test_the_command_line_reference_has_every_option(monkeypatch) -> None:
    """It is made of the commands when the pages are built."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    import command_line

    text = command_line.commands()
    for name, command in documents.commands().items():
        assert f"### {name}\n" in text
        for option in command.params:
            assert (
                option.name == "help"
                or option.param_type_name == "argument"
                or all(flag in text for flag in option.opts)
            ), option.opts
    listed = command_line.methods()
    for method in METHODS.values():
        assert all(f"`{option.key}`" in listed for option in method.options.values())


def test_the_reference_has_all_that_is_public() -> None:
    text = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.rst"))
    listed = set(re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", text, re.MULTILINE))
    assert set(symsmooth.__all__) <= listed
    assert set(symsmooth.io.__all__) - {"atomic_write"} <= listed
    assert set(symsmooth.noise.__all__) - FOR_OTHER_MODULES <= listed


def places() -> dict[str, list[Any]]:
    """The modules of the package by their last name, and the package's own names."""
    found: dict[str, list[Any]] = {}
    for path in (ROOT / "src" / "symsmooth").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        if path.parent.name in ("core", "filters", "mixture", "gsfw", "baselines"):
            found.setdefault(path.stem, []).append(importlib.import_module(name))
    return found


def exists(name: str, modules: dict[str, list[Any]]) -> bool:
    """Whether a dotted name, as in ``sinkhorn.balance``, is one of a module, or a name of any of them."""
    head, *rest = name.split(".")
    if head in ("filters", "mixture", "baselines", "core") and rest and rest[0] in modules:
        head, *rest = rest
    starts = modules.get(head, [])
    if not rest or not starts:
        starts, rest = [each for many in modules.values() for each in many], [head, *rest]
    for start in starts:
        value = start
        for part in rest:
            value = getattr(value, part, getattr(value, "__dataclass_fields__", {}).get(part))
        if value is not None:
            return True
    return False


def test_the_map_of_the_paper_names_what_there_is() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text("utf-8")
    modules, tests = places(), "".join(p.read_text("utf-8") for p in (ROOT / "tests").rglob("*.py"))
    for code in set(re.findall(r"`([^`]+)`", text)):
        name = re.split(r"[(=]", code)[0]
        if code.startswith("symsmooth"):
            continue  # a command: tested above
        if re.match(r"test_\w+$", code):
            assert f"def {code}(" in tests, code
        elif re.search(r"\.(py|cpp|npz)\b", code):
            path, _, inside = re.sub(r"::|: ", "|", code).partition("|")
            folders = (ROOT, ROOT / "src" / "symsmooth", ROOT / "src" / "symsmooth" / "baselines")
            (file, *_) = [folder / path for folder in folders if (folder / path).exists()] or [None]
            assert file is not None, code
            assert not inside or inside in file.read_text("utf-8"), code
        elif name != "sinkhorn_iters":
            assert exists(name, modules), code


# --- the pages that are built ------------------------------------------------------------------


def build(folder: Path, *options: str) -> Path:
    """Build the pages from a copy, every warning an error; return where they are."""
    pytest.importorskip("sphinx_gallery", reason="the extra docs is not installed")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    written = shutil.ignore_patterns("_build", "gallery", "generated", "backreferences")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=written)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", *options]
    done = subprocess.run(
        [*command, folder / "docs", folder / "html"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower()
    return folder / "html"


def outside(html: Path) -> list[str]:
    """What the pages would load from elsewhere: scripts, styles, fonts, pictures, frames."""
    found = []
    loads = re.compile(
        r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc(?:set)?=\"((?:https?:)?//[^\"]+)"
    )
    links = re.compile(
        r"<link\b(?![^>]*rel=\"(?:canonical|license)\")[^>]*href=\"((?:https?:)?//[^\"]+)"
    )
    urls = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)")
    for path in html.rglob("*"):
        patterns = {".html": (loads, links, urls), ".css": (urls,)}.get(path.suffix, ())
        text = path.read_text(encoding="utf-8") if patterns else ""
        found += [f"{path.name}: {url}" for pattern in patterns for url in pattern.findall(text)]
    return found


def test_what_is_loaded_from_outside_is_found(tmp_path) -> None:
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.x/a.js"></script><link rel="stylesheet" href="//fonts.x/b">'
        '<img src="c.png"><a href="https://x">x</a>'
    )
    (tmp_path / "a.css").write_text('@import "https://y/c.css"; a { src: url(d.woff) }')
    found = outside(tmp_path)
    assert sorted(found) == [
        "a.css: https://y/c.css",
        "a.html: //fonts.x/b",
        "a.html: https://cdn.x/a.js",
    ]


def test_the_pages_are_built_without_warnings(tmp_path) -> None:
    """All but the gallery, whose examples take a minute to run."""
    html = build(tmp_path, "-D", "plot_gallery=0")
    assert outside(html) == []
    assert (html / "api" / "generated" / "symsmooth.denoise.html").exists()


@pytest.mark.slow
def test_the_gallery_runs_and_pages_load_nothing(tmp_path, browser) -> None:
    html = build(tmp_path)
    assert outside(html) == []
    gallery = sorted((html / "gallery").glob("0*.html"))
    assert len(gallery) >= 8
    pages = [html / "index.html", html / "theory.html", html / "which.html", *gallery]
    for theme in ("light", "dark"):
        for path in pages:
            opened = Opened(browser, path, color_scheme=theme)
            page = opened.page
            assert all(text.startswith("[PST]") for text in opened.complaints), opened.complaints
            assert all(url.startswith(("file:", "data:")) for url in opened.requests)
            broken = "i => i.checkVisibility() && !i.naturalWidth"
            assert page.evaluate(f"[...document.images].filter({broken}).length") == 0, path
            assert page.evaluate("document.documentElement.dataset.theme") == theme
            figures = page.locator("img.sphx-glr-single-img:visible")
            assert all(f"only-{theme}" in figure.get_attribute("class") for figure in figures.all())
            assert figures.count() >= (path in gallery)
            if path.name == "theory.html":
                assert page.locator("math").count() > 20
                assert page.evaluate("document.fonts.check('16px \"STIX Two Math\"')")
            opened.context.close()

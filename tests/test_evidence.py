"""What the pages print is what was measured and kept."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .documents import ROOT

STORED = ROOT / "benchmarks" / "stored"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The scripts of ``benchmarks``, imported as they import each other."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import keep
    import origins
    import pages
    import stored
    import tables

    return {"keep": keep, "origins": origins, "pages": pages, "stored": stored, "tables": tables}


def test_pages_agree_with_what_is_kept(scripts) -> None:
    pages = scripts["pages"]
    marked = pages.pages()
    assert ROOT / "README.md" in marked
    assert ROOT / "docs" / "benchmarks.md" in marked
    for path in marked:
        text = path.read_text("utf-8")
        assert pages.made(text) == text, f"{path.name}: run python benchmarks/pages.py"


def test_every_table_is_somewhere(scripts) -> None:
    text = "".join(path.read_text("utf-8") for path in scripts["pages"].pages())
    assert set(re.findall(r"<!-- table: ([\w-]+) -->", text)) == set(scripts["tables"].TABLES)


def test_a_changed_figure_is_found(scripts, tmp_path, monkeypatch) -> None:
    pages = scripts["pages"]
    text = (ROOT / "README.md").read_text("utf-8")
    changed = re.sub(r"\| 32\.80 \|", "| 33.80 |", text, count=1)
    assert changed != text
    assert pages.made(changed) == text
    with pytest.raises(KeyError, match="there is no table nonsense"):
        pages.made("<!-- table: nonsense -->\n<!-- end -->")


def test_every_plan_was_measured_and_says_when_and_with_what(scripts) -> None:
    for name, plan in scripts["keep"].plans().items():
        kept = scripts["stored"].load(name)
        assert kept.label == plan["label"] == "development"
        assert re.match(r"\d{4}-\d\d-\d\d", kept.facts["Date"])
        assert "commit" in kept.facts["symsmooth"]
        assert all(
            word in kept.facts["Command"] for word in plan["options"].split() if "," not in word
        )
        assert kept.rows


def test_every_figure_says_where_it_comes_from(scripts) -> None:
    assert scripts["origins"].missing() == []


@pytest.mark.parametrize(
    ("file", "place", "field", "said"),
    [
        ("published", ("real", 0), "source", "real, SIDD validation MASH has no source"),
        ("published", ("real", 0), "protocol", "real, SIDD validation MASH has no protocol"),
        ("published", ("white", "rows", 1), "year", "white, WNNM has no year"),
        ("published", ("trained_on_sidd", 3), "source", "NAFNet has no source"),
        ("published", ("small_models", 0), "protocol", "LKSVD has no protocol"),
        ("heldout", ("measured", 0), "date", "figures without a date"),
        ("heldout", ("measured", 0), "commit", "without a commit"),
        ("heldout", ("sets", "CC15"), "tuned", "CC15 does not say what was tuned on what"),
        ("standard", (), "commit", "without a commit"),
        ("real", ("facts",), "Date", "figures without a date"),
        ("speed", ("facts",), "symsmooth", "figures without a commit"),
    ],
)
def test_a_figure_without_its_origin_is_found(scripts, tmp_path, file, place, field, said) -> None:
    for path in STORED.glob("*.json"):
        shutil.copy(path, tmp_path)
    told = json.loads((tmp_path / f"{file}.json").read_text("utf-8"))
    row = told
    for key in place:
        row = row[key]
    del row[field]
    (tmp_path / f"{file}.json").write_text(json.dumps(told), "utf-8")
    found = scripts["origins"].missing(tmp_path)
    assert len(found) == 1
    assert said in found[0]
    assert found[0].startswith(f"{file}.json: ")


def test_a_file_of_figures_that_nobody_checks_is_found(scripts, tmp_path) -> None:
    for path in STORED.glob("*.json"):
        shutil.copy(path, tmp_path)
    (tmp_path / "new.json").write_text("{}", "utf-8")
    (line,) = scripts["origins"].missing(tmp_path)
    assert line.startswith("new.json: benchmarks/origins.py does not know it")


def test_no_page_is_made_of_figures_without_origin(scripts, monkeypatch, capsys) -> None:
    """It is said in a line, before any page is looked at."""
    monkeypatch.setattr(
        scripts["origins"], "missing", lambda: ["speed.json: figures without a date"]
    )
    monkeypatch.setattr(sys, "argv", ["pages.py", "--check"])
    monkeypatch.setattr(scripts["pages"], "made", None)
    assert scripts["pages"].main() == 1
    assert capsys.readouterr().out == "speed.json: figures without a date\n"


def test_later_versions_get_columns_of_their_own(scripts, tmp_path, monkeypatch) -> None:
    kept = json.loads((STORED / "heldout.json").read_text("utf-8"))
    later = {"date": "2027-01-02", "commit": "abcdef0", "psnr": {}, "failures": "none known"}
    later["psnr"] = {name: {"balanced": 50.0, "fast": 49.0} for name in kept["sets"]}
    kept["measured"].append(later)
    files = {
        "heldout": kept,
        "published": json.loads((STORED / "published.json").read_text("utf-8")),
    }
    monkeypatch.setattr(scripts["tables"], "load_json", files.__getitem__)
    history = scripts["tables"].TABLES["heldout-history"]()
    assert "| ed440db, balanced | abcdef0, fast | abcdef0, balanced |" in history
    assert "| 37.26 | 49.00 | 50.00 |" in history
    front = scripts["tables"].TABLES["heldout"]()
    assert "abcdef0" in front
    assert "ed440db" not in front


def test_nothing_kept_names_a_place_or_a_machine() -> None:
    for path in filter(Path.is_file, STORED.rglob("*")):
        text = path.read_text("utf-8")
        assert not re.search(r"/(home|root|work|tmp|Users)/", text), path.name
        assert '"node"' not in text, path.name


def test_times_are_kept_of_quiet_machines_only(scripts, tmp_path) -> None:
    stored = scripts["stored"]
    row = {
        "set": "a", "picture": "b", "noise": "white, sigma 5", "method": "m", "known": True,
        "psnr": 30.1234, "ssim": 0.9, "seconds": 1.5, "noise_kind": "white", "noisy_psnr": 20.0,
    }  # fmt: skip
    exact = row | {"psnr": None, "ssim": None, "known": False}
    found = {"measurements": [row, exact], "label": "x", "facts": {"Date": "d", "symsmooth": "s"}}
    stored.keep("quiet", found, True, tmp_path)
    stored.keep("busy", found, False, tmp_path)
    assert stored.load("quiet", tmp_path).mean("seconds") == 1.5
    busy = stored.load("busy", tmp_path)
    assert math.isnan(busy.mean("seconds"))
    assert busy.mean("psnr") == 30.123
    assert busy.select(known=False)[0]["psnr"] is None
    assert "busy" in json.loads((tmp_path / "busy.json").read_text())["facts"]["Time"]


def test_the_check_ends_well(tmp_path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "pages.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_no_table_of_decibels_is_pasted() -> None:
    """In the README every table with figures is made."""
    text = (ROOT / "README.md").read_text("utf-8")
    bare = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.DOTALL)
    assert not re.search(r"^\|.*\d\d\.\d\d", bare, re.MULTILINE)


def test_scripts_are_where_plans_look_for_them(scripts, monkeypatch) -> None:
    monkeypatch.setenv("SYMSMOOTH_IMAGES", "pictures")
    named = scripts["keep"].scripts()
    assert set(named) == set(scripts["keep"].SCRIPTS)
    assert all(Path(words[0]).is_file() for words in named.values())

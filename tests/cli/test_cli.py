"""The command line: what it prints, how it exits, and that it never harms a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.app import demo
from symsmooth.app.messages import UsageError
from symsmooth.cli.arguments import parse_options
from symsmooth.core.metrics import psnr
from symsmooth.io import read_image, write_image
from symsmooth.methods import Method
from symsmooth.noise import NoiseEstimator, White

from ..barriers import Barrier, needs_pipes
from ..fakes import use_methods

Array = np.ndarray[Any, Any]
Run = Callable[..., Any]
rng = np.random.default_rng(0)


def fake_shift(
    image: Array,
    sigma: float | None = None,
    *,
    shift: int = 1,
    scale: float | None = None,
    kind: str = "plain",
    channel_axis: int | None = None,
    rng: int | None = None,
    progress: Any = None,
) -> Array:
    """Add a number to every pixel.

    Not a denoiser.
    """
    if shift < 0:
        raise ValueError(f"shift must be 0 or more, got {shift}")
    if progress is not None:
        progress(1.0, "shifting")
    CALLS.append(
        SimpleNamespace(
            sigma=sigma, shift=shift, scale=scale, kind=kind, channel_axis=channel_axis, rng=rng
        )
    )
    return np.asarray(image + np.asarray(shift, image.dtype))


def fake_gsf(
    image: Array, sigma: float | None = None, *, n_clusters: int | None = None, workers: int = 1
) -> Array:
    """Pretend to be the paper's filter."""
    raise AssertionError("fit_gsf is to be called instead")


CALLS: list[SimpleNamespace] = []


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in an empty folder with fake methods."""

    def fit_gsf(image: Array, sigma: float, *, workers: int | None = None, **given: Any) -> Any:
        k = given.get("n_clusters") or 17
        return SimpleNamespace(
            image=image, sigma=sigma, n_clusters=np.int64(k), fidelity=np.float32(0.5)
        )

    CALLS.clear()
    gsf = Method("gsf", fake_gsf, fit_gsf, reports=("n_clusters", "fidelity"))
    use_methods(monkeypatch, {"shift": fake_shift, "gsf": gsf, "denoise": fake_shift})
    monkeypatch.setattr(NoiseEstimator, "sigma", 12.5)
    monkeypatch.setattr(NoiseEstimator, "model", lambda self, name: White(12.5))
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.app, [str(a) for a in arguments])


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "in.png"
    write_image(path, rng.integers(0, 200, (6, 8), dtype=np.uint8))
    return path


# --- denoise ----------------------------------------------------------------------------------


def test_denoise_writes_the_result_and_says_so_on_one_line(run: Run, picture: Path) -> None:
    result = run("denoise", picture, "-o", "out.png", "--method", "shift")
    assert result.exit_code == 0
    assert result.stderr == ""
    (line,) = result.stdout.splitlines()
    for part in (
        "in.png",
        "8x6 uint8",
        "shift",
        "assumed white noise, about 12.5 of 255",
        " s -> out.png",
    ):
        assert part in line
    np.testing.assert_array_equal(
        read_image("out.png").pixels, read_image(picture).pixels + np.uint8(1)
    )


def test_json_is_one_object_a_file(run: Run, picture: Path) -> None:
    own = ("--method", "gsf:n-clusters=5")
    result = run("denoise", picture, "-o", "o.png", "--sigma", 3, *own, "--json")
    report = json.loads(result.stdout)
    seconds = report.pop("seconds")
    assert seconds >= 0
    assert report == {
        "input": str(picture),
        "output": "o.png",
        "method": "gsf",
        "noise": {"kind": "gaussian", "level": 3.0, "estimated": False},
        "shape": [6, 8],
        "dtype": "uint8",
        "parameters": {"n_clusters": 5, "fidelity": 0.5},
        "warnings": [],
        "warning_codes": [],
        "check": None,
        "channels": None,
    }


def test_the_default_method_is_denoise(run: Run, picture: Path) -> None:
    assert " denoise," in run("denoise", picture, "-o", "b.png").stdout


def test_what_a_fit_chose_is_told(run: Run, picture: Path) -> None:
    result = run("denoise", picture, "-o", "o.png", "--method", "gsf")
    assert "n_clusters 17, fidelity 0.5" in result.stdout


def test_options_reach_the_method(run: Run, picture: Path) -> None:
    result = run(
        *("denoise", "--method", "shift:shift=4:scale=-0.5:kind=x", picture, "-o", "o.png"),
        *("--seed", 7, "--sigma", 2),
    )
    assert result.exit_code == 0
    assert vars(CALLS[0]) == {
        **{"sigma": 2.0, "shift": 4, "scale": -0.5, "kind": "x"},
        **{"channel_axis": None, "rng": 7},
    }


def test_the_seed_is_0_unless_given(run: Run, picture: Path) -> None:
    run("denoise", picture, "-o", "o.png", "--method", "shift")
    assert CALLS[0].rng == 0


@pytest.mark.parametrize(("given", "axis"), [("auto", 2), ("0", 0), ("-1", 2), ("none", None)])
def test_channel_axis_is_the_files_unless_given(
    run: Run, tmp_path: Path, given: str, axis: int | None
) -> None:
    np.save(tmp_path / "c.npy", np.zeros((6, 8, 3), np.uint8))
    run("denoise", "c.npy", "-o", "o.npy", "--method", "shift", "--channel-axis", given)
    assert CALLS[0].channel_axis == axis


def test_several_files_go_into_a_folder_made_for_them(run: Run, tmp_path: Path) -> None:
    for name in ("a.png", "b.tif"):
        write_image(tmp_path / name, np.zeros((4, 4), np.uint8))
    result = run("denoise", "a.png", "b.tif", "-o", "new/", "--method", "shift")
    assert result.exit_code == 0
    assert sorted(os.listdir("new")) == ["a.png", "b.tif"]
    assert len(result.stdout.splitlines()) == 2


def test_quiet_prints_nothing(run: Run, picture: Path) -> None:
    result = run("denoise", picture, "-o", "o.png", "-q")
    assert (result.exit_code, result.output) == (0, "")


def test_alpha_survives_denoising(run: Run, tmp_path: Path) -> None:
    from PIL import Image

    stored = rng.integers(0, 200, (5, 6, 4), dtype=np.uint8)
    Image.fromarray(stored).save(tmp_path / "a.png")
    run("denoise", "a.png", "-o", "o.png", "--method", "shift")
    with Image.open("o.png") as opened:
        written = np.asarray(opened)
    np.testing.assert_array_equal(written[..., 3], stored[..., 3])
    np.testing.assert_array_equal(written[..., :3], stored[..., :3] + 1)


# --- nothing is harmed -------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["in.png", "./in.png", ".", "link.png"])
def test_the_input_is_never_overwritten_unless_told(run: Run, picture: Path, out: str) -> None:
    Path("link.png").symlink_to(picture)
    before = picture.read_bytes()
    result = run("denoise", picture, "-o", out, "--method", "shift")
    assert result.exit_code == 2
    assert "is the input itself" in result.stderr
    assert picture.read_bytes() == before
    assert CALLS == []

    assert run("denoise", picture, "-o", out, "--method", "shift", "--overwrite").exit_code == 0
    assert picture.read_bytes() != before


def test_no_existing_output_is_overwritten_unless_told(run: Run, picture: Path) -> None:
    Path("o.png").write_bytes(b"mine")
    result = run("denoise", picture, "-o", "o.png", "--method", "shift")
    assert (result.exit_code, CALLS) == (2, [])
    assert "o.png exists" in result.stderr
    assert Path("o.png").read_bytes() == b"mine"
    assert run("denoise", picture, "-o", "o.png", "--overwrite").exit_code == 0


def test_two_inputs_never_share_an_output(run: Run, picture: Path) -> None:
    Path("sub").mkdir()
    Path("sub/in.png").write_bytes(picture.read_bytes())
    result = run("denoise", picture, "sub/in.png", "-o", "out/")
    assert result.exit_code == 2
    assert "two inputs would be written to out/in.png" in result.stderr
    assert not Path("out").exists()


def test_floats_are_refused_for_an_8_bit_format_before_the_work(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.zeros((4, 4), np.float32))
    result = run("denoise", "f.npy", "-o", "f.jpg", "--method", "shift")
    assert (result.exit_code, CALLS) == (1, [])
    assert "write to .tif or .npy" in result.stderr
    assert os.listdir() == ["f.npy"]


def test_one_failed_file_does_not_stop_the_others(run: Run, picture: Path) -> None:
    Path("bad.png").write_bytes(picture.read_bytes()[:40])
    result = run("denoise", "bad.png", "none.png", picture, "-o", "out/", "--method", "shift")
    assert result.exit_code == 1
    assert os.listdir("out") == ["in.png"]
    assert len(result.stdout.splitlines()) == 1
    failures = result.stderr.splitlines()
    assert failures[0].startswith("symsmooth: error: bad.png: ")
    assert failures[1] == "symsmooth: error: none.png: no such file"
    assert len(failures) == 2


@pytest.mark.parametrize("error", [ValueError("two\nlines"), MemoryError(), KeyError("k")])
def test_a_failing_method_is_one_line_and_leaves_no_file(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    use_methods(monkeypatch, {"denoise": fail})
    result = run("denoise", picture, "-o", "o.png")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"symsmooth: error: {picture}: ")
    assert os.listdir() == ["in.png"]


def test_ctrl_c_in_the_work_stops_with_130_and_leaves_what_was_done(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_at_second(image: Array, sigma: float) -> Array:
        if Path("out/in.png").exists():
            raise KeyboardInterrupt
        return image + np.uint8(1)

    Path("z.png").write_bytes(picture.read_bytes())
    use_methods(monkeypatch, {"stop": stop_at_second})
    result = run("denoise", picture, "z.png", "-o", "out/", "--method", "stop")
    assert result.exit_code == 130
    assert result.stderr == "symsmooth: stopped; no half-written file was left behind\n"
    assert os.listdir("out") == ["in.png"]


def test_ctrl_c_in_the_write_leaves_the_old_file(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = picture.read_bytes()
    monkeypatch.setattr(os, "replace", stop)
    result = run("denoise", picture, "-o", picture, "--overwrite", "--method", "shift")
    assert result.exit_code == 130
    assert os.listdir() == ["in.png"]
    assert picture.read_bytes() == before


# --- wrong usage -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--method", "shift:foo=3"], "method shift has no option foo; it has shift, scale, kind"),
        (["--method", "shift:shift=x"], "shift must be a whole number, got 'x'"),
        (["--method", "shift:shift=none"], "shift must be a whole number, got 'none'"),
        (["--method", "shift:scale=x"], "scale must be a number or none, got 'x'"),
        (["--method", "shift:shift=1:shift=2"], "shift is given twice"),
        (["--method", "shift:fast"], "method shift has no quality, got shift:fast; use shift"),
        (["--quality", "fast"], "method shift has no option quality; it has shift, scale, kind"),
        (["--sigma", "-1"], "--sigma must be a number of 0 or more"),
        (["--sigma", "nan"], "--sigma must be a number of 0 or more"),
        (["--channel-axis", "x"], "--channel-axis must be a number, none or auto"),
        (["--method", "no"], "there is no method 'no'; use one of shift, gsf, denoise"),
        (["second.png"], "must be a folder"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_with_2(
    run: Run, picture: Path, arguments: list[str], says: str
) -> None:
    method = [] if "--method" in arguments else ["--method", "shift"]
    result = run("denoise", picture, "-o", "o.png", *method, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("symsmooth: error: ")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert (result.stdout, CALLS, os.listdir()) == ("", [], ["in.png"])


def test_no_input_is_wrong_usage(run: Run) -> None:
    result = run("denoise", "-o", "o.png", "--method", "shift")
    assert result.exit_code == 2
    assert "Missing argument" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["denoise", "a.png"], 2),
        (["denoise", "a.png", "-o", "o.png", "--sigma", "x"], 2),
        (["frobnicate"], 2),
        (["noise", "none.png"], 1),
        (["noise", "a\nb\x1b[31m.png"], 2),
    ],
)
def test_main_says_errors_on_one_line(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
) -> None:
    monkeypatch.setattr(sys, "argv", ["symsmooth", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("symsmooth: error: ")
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_main_turns_the_unexpected_into_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(cli.console, "app", fail)
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    assert capsys.readouterr().err == "symsmooth: error: RuntimeError: broken\n"


# --- options read off a signature -------------------------------------------------------------


def test_only_a_methods_own_options_are_options() -> None:
    options = Method("shift", fake_shift).options
    assert [option.key for option in options.values()] == ["shift", "scale", "kind"]
    assert options["shift"].default == 1


def test_values_are_read_by_annotation() -> None:
    def method(
        image: Any,
        *,
        whole: int = 1,
        maybe: int | None = None,
        real: float = 1.0,
        flag: bool = False,
        word: str = "",
        choice: Literal["fast", "best"] = "fast",
        mixed: int | str = 1,
        untold=None,  # type: ignore[no-untyped-def]
    ) -> None: ...

    given = {"whole": "3", "maybe": "None", "real": "1e-3", "flag": "yes", "word": "none"}
    given |= {"choice": "best", "mixed": "two", "untold": "x"}
    parsed = parse_options(Method("m", method), given)
    expected = {"whole": 3, "maybe": None, "real": 1e-3, "flag": True, "word": "none"}
    assert parsed == expected | {"choice": "best", "mixed": "two", "untold": "x"}
    assert isinstance(parsed["whole"], int)
    for name, text in (("choice", "worst"), ("flag", "perhaps"), ("whole", "1.5")):
        with pytest.raises(UsageError, match=f"{name} must be .*got '{text}'"):
            parse_options(Method("m", method), {name: text})


def test_every_option_of_every_real_method_can_be_given() -> None:
    for method in symsmooth.METHODS.values():
        for name, option in method.options.items():
            assert parse_options(method, {name: str(option.default)}) == {name: option.default}


# --- the other commands ------------------------------------------------------------------------


def test_noise_tells_the_level_in_units_and_percent(run: Run, picture: Path) -> None:
    result = run("noise", picture)
    assert "white noise, about 12.5 of 255 (4.9 %)" in result.stdout
    report = json.loads(run("noise", picture, "--json").stdout)
    assert report["noise"] == {"kind": "gaussian", "level": 12.5, "estimated": True}
    assert report["percent"] == pytest.approx(100 * 12.5 / 255)
    assert (report["shape"], report["dtype"]) == ([6, 8], "uint8")


@pytest.mark.skipif(os.name != "posix", reason="names that Windows does not allow")
def test_a_strange_name_stays_on_one_line(run: Run, picture: Path) -> None:
    strange = picture.rename(picture.parent / "a\n\a\x1b[31m.png")
    result = run("noise", strange)
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    assert r"a\n\x07\x1b[31m.png" in result.stdout


def test_noise_of_floats_is_told_in_percent_of_their_own_range(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.array([[0.0, 50.0], [np.nan, 25.0]]))
    assert json.loads(run("noise", "f.npy", "--json").stdout)["percent"] == 25.0


def test_methods_lists_names_summaries_and_options(run: Run) -> None:
    lines = [json.loads(line) for line in run("methods", "--json").stdout.splitlines()]
    assert lines[0] == {
        "name": "shift",
        "summary": "Add a number to every pixel.",
        "options": {"shift": 1, "scale": None, "kind": "plain"},
        "choices": {},
    }
    table = run("methods").stdout
    for part in ("shift", "Add a number", "scale=none", "denoise (default)"):
        assert part in table


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout == f"symsmooth {symsmooth.__version__}\n"
    assert run("--help").exit_code == 0
    assert run().exit_code == 2
    assert "denoise" in run().stdout


def test_demo_compares_and_writes_its_pictures(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = []

    def nlm(image: Array, sigma: float, **options: Any) -> Array:
        seen.append((sigma, options["h_s"], options["sinkhorn_iters"]))
        return image

    def nothing(image: Array, sigma: float, **_: Any) -> Array:
        return image

    fakes = {"nlm": nlm, "gsf": nothing, "denoise": nothing}
    use_methods(monkeypatch, fakes)
    result = run("demo", "-o", "d")
    assert result.exit_code == 0
    assert seen == [(25.0, 10.0, 0), (25.0, 10.0, 1)]
    assert sorted(os.listdir("d")) == sorted(demo.FILES)
    assert read_image("d/compare.png").pixels.shape[1] > 4 * 256
    for part in ("noisy", "NLM", "one-step", "GSF", "denoise", "dB", "compare.png"):
        assert part in result.stdout
    clean, noisy = demo.pictures()
    np.testing.assert_array_equal(read_image("d/noisy.png").pixels, noisy)
    assert psnr(noisy, clean, 255) == pytest.approx(20.7, abs=0.2)

    assert run("demo", "-o", "d").exit_code == 2  # somebody's folder: not without --overwrite
    assert run("demo", "-o", "d", "--overwrite").exit_code == 0


# --- the real thing, small ---------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gaussian", "bilateral", "nlm", "lark", "gsf"])
def test_real_methods_denoise_a_file(tmp_path: Path, method: str) -> None:
    ramp = np.add.outer(np.arange(32), np.arange(32)) * 3.0
    noisy = np.clip(ramp + np.random.default_rng(0).normal(0, 15, ramp.shape), 0, 255)
    write_image(tmp_path / "in.png", np.rint(noisy).astype(np.uint8))
    arguments = ["denoise", tmp_path / "in.png", "-o", tmp_path / "o.png", "--method", method]
    result = CliRunner().invoke(cli.app, [*map(str, arguments), "--sigma", "15", "--json"])
    assert result.exit_code == 0, result.output
    denoised = read_image(tmp_path / "o.png").pixels
    assert denoised.dtype == np.uint8
    assert np.mean((denoised - ramp) ** 2) < 0.6 * np.mean((noisy - ramp) ** 2)
    if method == "gsf":
        assert json.loads(result.stdout)["parameters"]["n_clusters"] >= 1


# --- a process of its own ----------------------------------------------------------------------


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    code = "from symsmooth.cli import main; main()"
    source = str(Path(symsmooth.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.Popen(
        [sys.executable, "-c", options.pop("before", "") + code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, symsmooth.cli as c\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(c.app, ['--help']).exit_code == 0\n"
        "print([m for m in ('numpy', 'scipy', 'PIL', 'tifffile') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}
    output = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert output.strip() == "[]"


STOPPED = "symsmooth: stopped; no half-written file was left behind\n"
# A method that never ends; who runs in the background ignores Ctrl-C, and so would its children.
WAITING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
def waiting(image, sigma):
    barrier()
from symsmooth import methods
methods.METHODS = {'waiting': methods.Method('waiting', waiting)}
"""


@needs_pipes
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_it_and_leaves_no_file(tmp_path: Path, barrier: Barrier, how: str) -> None:
    """Ctrl-C, a batch system, a closed terminal: also what came by standard input is gone."""
    (tmp_path / "temporary").mkdir()
    write_image(tmp_path / "in.png", np.zeros((8, 8), np.uint8))
    before = "import os; os.environ['TMPDIR'] = 'temporary'\n" + barrier.code + WAITING
    for names in (["in.png", "-o", "o.png"], ["-", "-o", "-"]):
        arguments = ["denoise", *names, "--method", "waiting", "--sigma", "1"]
        with open(tmp_path / "in.png", "rb") as given:
            process = start(*arguments, before=before, cwd=tmp_path, stdin=given)
        barrier.wait(process)
        assert bool(os.listdir(tmp_path / "temporary")) == ("-" in names)
        process.send_signal(signal.Signals[how])
        out, err = process.communicate()
        assert (out, err) == ("", STOPPED)
        assert process.returncode == 128 + signal.Signals[how]
        assert sorted(os.listdir(tmp_path)) == ["in.png", "temporary"]
        assert os.listdir(tmp_path / "temporary") == []


@needs_pipes
def test_what_nohup_ignores_stays_ignored(tmp_path: Path, barrier: Barrier) -> None:
    write_image(tmp_path / "in.png", np.zeros((8, 8), np.uint8))
    ignored = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    method = WAITING.replace("    barrier()\n", "    barrier()\n    return image\n")
    arguments = ["denoise", "in.png", "-o", "o.png", "--method", "waiting", "--sigma", "1"]
    process = start(*arguments, before=ignored + barrier.code + method, cwd=tmp_path)
    barrier.wait(process)
    process.send_signal(signal.SIGHUP)
    barrier.open()
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert (tmp_path / "o.png").exists()


def test_a_second_ctrl_c_does_not_disturb_the_cleaning_up() -> None:
    """It cut the waiting for threads off, and the process was aborted."""
    from symsmooth.core.parallel import ending_on_signals

    was = signal.getsignal(signal.SIGINT)
    put_away = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            put_away.append(True)

    with pytest.raises(KeyboardInterrupt), ending_on_signals():
        work()
    assert put_away
    assert signal.getsignal(signal.SIGINT) is was


@needs_pipes
def test_only_the_first_signal_counts() -> None:
    """Another one, while things are put away, does not disturb that; afterwards all is as before."""
    from symsmooth.core.parallel import EndedBySignal, ending_on_signals

    was = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    put_away = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
            put_away.append(True)

    with pytest.raises(EndedBySignal) as caught, ending_on_signals():
        work()
    assert put_away
    assert caught.value.number == signal.SIGTERM
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == was


def test_closed_streams_are_one_line(tmp_path: Path) -> None:
    write_image(tmp_path / "in.png", np.zeros((8, 8), np.uint8))
    closed = "import sys; sys.stdin = sys.stdout = None\n"
    for names, says in (
        (["in.png", "-o", "-"], "standard output is closed; give a file with -o"),
        (["-", "-o", "o.png"], "standard input is closed; give the name of a file"),
    ):
        process = start("denoise", *names, before=closed, cwd=tmp_path)
        _, err = process.communicate()
        assert (process.returncode, err) == (2, f"symsmooth: error: {says}\n")
    assert os.listdir(tmp_path) == ["in.png"]


def test_names_after_two_dashes_may_begin_with_one(tmp_path: Path) -> None:
    write_image(tmp_path / "-x.png", np.zeros((8, 8), np.uint8))
    before = ["denoise", "-o", "o.png", "--method", "gaussian", "--sigma", "1", "--quiet"]
    process = start(*before, "--", "-x.png", cwd=tmp_path)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert sorted(os.listdir(tmp_path)) == ["-x.png", "o.png"]


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_the_bar_is_on_stderr_only_and_only_on_a_terminal(tmp_path: Path) -> None:
    import pty

    write_image(tmp_path / "in.png", np.zeros((8, 8), np.uint8))
    fake = (
        "import symsmooth, time\n"
        "def fake(image, sigma, *, progress=None):\n"
        "    if progress is not None:\n"
        "        progress(0.5, 'smoothing')\n"
        "        time.sleep(0.3)\n"
        "    return image\n"
        "from symsmooth import methods; methods.METHODS = {'fake': methods.Method('fake', fake)}\n"
    )
    arguments = ["denoise", "in.png", "-o", "o.png", "--method", "fake", "--sigma", "1"]
    process = start(*arguments, before=fake, cwd=tmp_path)
    out, err = process.communicate(timeout=30)
    assert (err, out.count("\n")) == ("", 1)

    controller, terminal = pty.openpty()
    code = fake + "from symsmooth.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}
    environment["TERM"] = "xterm"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--overwrite"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        cwd=tmp_path,
        env=environment,
        timeout=30,
        check=True,
    )
    os.close(terminal)
    drawn = os.read(controller, 100_000).decode()
    os.close(controller)
    assert "in.png: smoothing" in drawn
    assert done.stdout.count(b"\n") == 1
    assert b"smoothing" not in done.stdout

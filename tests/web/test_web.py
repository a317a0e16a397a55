"""``symsmooth serve``: whose files are whose, what waits and stops, and the page in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import symsmooth
from symsmooth import cli
from symsmooth.core.parallel import Cancelled
from symsmooth.io import FileError, limit_decoded_size, read_image, read_images, write_image
from symsmooth.io.stacks import cut
from symsmooth.web.runs import Run, Runs
from symsmooth.web.sessions import SessionError, Sessions
from symsmooth.web.worker import Reporter

from ..conftest import Opened, audit
from ..serving import Server, wait_for

rng = np.random.default_rng(0)
OURS, THEIRS = {"symsmooth": "a" * 43}, {"symsmooth": "b" * 43}


# --- runs -------------------------------------------------------------------------------------


@pytest.fixture
def runs() -> Iterator[Runs]:
    made = Runs(1)
    yield made
    made.close()


def endless(run: Run) -> str:
    while True:
        run.progress("working", 1, 2)
        time.sleep(0.005)


def test_first_come_first_done_one_at_a_time(runs: Runs) -> None:
    first, second, third = (runs.submit(endless) for _ in range(3))
    wait_for(lambda: first.done)
    assert [runs.ahead(run) for run in (first, second, third)] == [0, 1, 2]
    assert second.seconds is None
    second.stop()  # who waits is gone at once
    assert second.finished
    assert runs.ahead(third) == 1
    with pytest.raises(Cancelled):
        second.outcome()
    first.stop()
    wait_for(lambda: third.done)
    with pytest.raises(Cancelled, match="stopped during working"):
        first.outcome()


def test_what_a_run_tells_and_what_it_raises(runs: Runs) -> None:
    def fails(run: Run) -> str:
        raise ValueError("no")

    good, bad = runs.submit(lambda run: "done"), runs.submit(fails)
    wait_for(lambda: bad.finished)
    assert good.outcome() == "done"
    with pytest.raises(ValueError, match="no"):
        bad.outcome()


def test_one_group_leaves_room_for_others() -> None:
    """Somebody with many files, each of which hangs, does not keep all others waiting."""
    made = Runs(2, 1)
    many = [made.submit(endless, "many") for _ in range(5)]
    wait_for(lambda: many[0].done)
    other = made.submit(lambda run: "done", "other")
    wait_for(lambda: other.finished)
    assert [run.seconds is None for run in many] == [False, True, True, True, True]
    many[0].stop()
    wait_for(lambda: many[1].done)  # the next of the group has its turn
    made.close()


def test_who_has_nothing_at_work_comes_first() -> None:
    made = Runs(2)
    first, second, third = (made.submit(endless, "many") for _ in range(3))
    wait_for(lambda: first.done and second.done)
    other = made.submit(endless, "other")
    first.stop()
    wait_for(lambda: other.done)
    assert third.seconds is None
    made.close()


def test_closing_stops_everything() -> None:
    made = Runs(2)
    started = [made.submit(endless) for _ in range(4)]
    made.close()
    assert all(run.finished for run in started)


# --- sessions -----------------------------------------------------------------------------------


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    (tmp_path / "sessions").mkdir()
    return Sessions(tmp_path / "sessions")


def test_a_visit_is_found_by_its_owner_alone(sessions: Sessions) -> None:
    session = sessions.of(OURS, "tab")
    assert sessions.of(OURS, "tab") is session
    assert sessions.find(session.token, OURS) is session
    assert sessions.find(session.token, THEIRS) is None
    assert sessions.find(session.token, {}) is None
    assert sessions.of(THEIRS, "tab") is not session  # a tab's name opens nothing
    assert sessions.of(OURS, "other tab").folder != session.folder
    with pytest.raises(SessionError, match="cookie"):
        sessions.of({}, "tab")


def test_files_go_with_their_visit(sessions: Sessions, runs: Runs) -> None:
    session = sessions.of(OURS, "tab")
    session.run = runs.submit(endless)
    page = session.new_folder("run") / "page.html"
    page.write_text("<p>")
    session.show(page)
    sessions.end(THEIRS, "tab")
    assert session.folder.exists()
    sessions.end(OURS, "tab")
    assert not session.folder.exists()
    wait_for(lambda: session.run is not None and session.run.finished)
    assert sessions.find(session.token, OURS) is None


@pytest.mark.parametrize("name", ["../../x.tif", "/etc/passwd", "..", "a\0<b>.tif", ".", "x" * 300])
def test_names_are_harmless(sessions: Sessions, name: str) -> None:
    session = sessions.of(OURS, "tab")
    place = session.place(name, "dropped")
    assert place.parent == session.folder / "dropped-1"
    assert re.fullmatch(r"[\w .+()-]{1,100}", place.name)
    place.write_text("fits")


# --- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["png", "tif", "fits", "npy", "webp"])
def test_what_unpacks_to_too_much_is_refused_before_it_is(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"zeros.{ending}"
    write_image(path, np.zeros((400, 500), np.uint8))
    with limit_decoded_size(200_000 if ending != "webp" else 600_000):
        read_images(path)
    with (
        limit_decoded_size(199_999),
        pytest.raises(FileError, match=r"more than the 0 MB of pixels"),
    ):
        read_images(path)
    read_images(path)


def test_the_part_that_is_looked_at() -> None:
    from symsmooth.web.tasks import part_seen

    assert part_seen("", (400, 400)) is None  # small: at once
    assert part_seen("1 0.5 0.5", (2000, 3000)) == (slice(776, 1224), slice(1276, 1724))
    assert part_seen("10 1 0", (2000, 3000)) == (slice(0, 200), slice(2700, 3000))
    for nonsense in ("nan 0 0", "1 2", "<b>", "0 -9 9", "1e9 5 5"):
        found = part_seen(nonsense, (2000, 3000))
        assert found is None or np.zeros((2000, 3000))[found].size > 0


# --- the command ------------------------------------------------------------------------------


def test_without_gradio_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(cli.app, ["serve"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "pip install 'symsmooth[web]'" in line


def test_nothing_imports_gradio_before_it_is_asked_for() -> None:
    code = (
        "import sys, symsmooth, symsmooth.cli, symsmooth.web.sessions, symsmooth.web.server; "
        "symsmooth.denoise; print([m for m in ('gradio', 'fastapi', 'uvicorn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the server -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("gradio", reason="gradio is not installed")
    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    told = started.end()
    assert "Traceback" not in told
    assert started.files("") == []  # nothing is left behind
    assert started.asked.read_text() == ""  # nobody outside was asked for anything


def test_what_is_not_for_this_page_is_not_answered(server: Server) -> None:
    assert server.ask("/")[0] == 200
    assert server.ask("/", Host="evil.example")[0] == 421
    assert server.ask("/config", Origin="http://evil.example")[0] == 403
    assert server.ask("/config", Origin=f"http://127.0.0.1:{server.port + 1}")[0] == 403
    assert server.ask("/config", Origin=server.address.rstrip("/"))[0] == 200
    large = {"content-length": str(10**9)}
    assert server.ask("/gradio_api/upload", "POST", **large)[0] == 413
    chunked = {"transfer-encoding": "chunked"}
    assert server.ask("/gradio_api/upload", "POST", **chunked)[0] == 411
    for path in (
        "/gradio_api/file=/etc/passwd", "/gradio_api/file/etc/passwd", "/docs", "/monitoring",
        "/gradio_api/file=http://127.0.0.1:1/", "/gradio_api/proxy=http://127.0.0.1:1/",
        "/gradio_api/run/drop", "/gradio_api/call/drop", "/session/x/view", "/session/x/../view",
    ):  # fmt: skip
        assert server.ask(path)[0] in (404, 422), path


def test_a_port_in_use_is_one_line(server: Server) -> None:
    result = CliRunner().invoke(cli.app, ["serve", "--no-browser", "--port", str(server.port)])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "cannot listen at" in line


# --- in a browser -----------------------------------------------------------------------------


class Visitor:
    """Somebody at the page."""

    def __init__(self, browser: Any, server: Server, shots: Path, **options: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 800}, **options}
        self.opened = Opened(browser, server.address, accept_downloads=True, **options)
        self.page, self.server, self.shots = self.opened.page, server, shots
        self.page.set_default_timeout(30_000)
        self.page.wait_for_selector("#start")

    def drop(self, path: Path, where: str = "#drop") -> None:
        self.page.locator(f"{where} input[type=file]").set_input_files(path)

    def dropped(self, path: Path) -> None:
        self.drop(path)
        self.page.wait_for_selector("iframe.viewer")
        self.page.locator("#status", has_text="Ready").wait_for()

    def choose(self, quality: str = "preview", method: str = "") -> None:
        self.page.locator("#quality").get_by_label(quality).check()
        if method:
            self.page.get_by_label("Method").select_option(method)

    def told(self, text: str) -> str:
        self.page.locator("#status", has_text=text).wait_for()
        return str(self.page.locator("#status").inner_text())

    def run(self, button: str = "#start", told: str = "Done in") -> None:
        self.page.locator(button).click()
        self.told(told)
        self.frame.locator(".strip").first.wait_for()

    @property
    def frame(self) -> Any:
        return self.page.frame_locator("iframe.viewer")

    @property
    def view(self) -> Any:
        return self.page.locator("iframe.viewer").element_handle().content_frame()

    def shot(self, name: str) -> None:
        self.page.wait_for_timeout(200)
        self.page.screenshot(path=self.shots / f"{name}.png", full_page=True)


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the main states are kept."""
    kept = os.environ.get("SYMSMOOTH_SHOTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def come(browser: Any, server: Server, shots: Path) -> Iterator[Callable[..., Visitor]]:
    """Session the page; nothing may be complained of, or asked of anybody else, in the end."""
    visitors: list[Visitor] = []

    def session(**options: Any) -> Visitor:
        visitors.append(Visitor(browser, server, shots, **options))
        return visitors[-1]

    yield session
    for visitor in visitors:
        # gradio warns so whenever an upload has ended
        assert set(visitor.opened.complaints) <= {"Method not implemented."}
        ours = (server.address, "data:", "blob:")
        assert all(url.startswith(ours) for url in visitor.opened.requests)
        visitor.opened.context.close()


@pytest.fixture(scope="module")
def tiff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 bits, deflated, with a description and a resolution."""
    import tifffile
    from skimage import data

    clean = data.camera()[80:176, 200:328] * 150.0
    noisy = np.clip(clean + rng.normal(0, 3000, clean.shape) + 9000, 0, 65535)
    path = tmp_path_factory.mktemp("in") / "a <b>${1+1} {{x}} & c.tif"
    more = {"description": "made of light", "resolution": (300, 300), "compression": "zlib"}
    tifffile.imwrite(path, noisy.astype(np.uint16), **more)
    return path


def test_drop_run_divide_and_take_home_a_16_bit_tiff(come: Any, tiff: Path, tmp_path: Path) -> None:
    visitor = come()
    page = visitor.page
    visitor.shot("empty")
    visitor.dropped(tiff)
    noisy = read_image(tiff)
    sigma = symsmooth.estimate_sigma(noisy.pixels)
    assert f"white noise, about {sigma:.3g} of 65535" in page.locator(".found").inner_text()
    visitor.shot("dropped")
    visitor.choose("preview")
    visitor.run()
    assert visitor.view.locator(".panels img").count() == 3  # noisy, denoised, method noise
    assert visitor.view.locator(".plot svg").count() == 2  # histogram and spectrum
    visitor.shot("done")

    lens = visitor.frame.locator(".overlay .lens")
    lens.scroll_into_view_if_needed()
    box = lens.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, middle, steps=4)
    page.mouse.up()
    split = "Number(document.querySelector('.overlay input').value)"
    assert visitor.view.evaluate(split) == pytest.approx(25, abs=1)

    with page.expect_download() as waiting:
        page.get_by_text("Download the result").click()
    taken = tmp_path / "taken.tif"
    waiting.value.save_as(taken)
    assert waiting.value.suggested_filename.endswith("-denoised.tif")
    again = read_image(taken)
    expected = symsmooth.denoise(noisy.pixels, quality="preview", rng=0)
    assert again.pixels.dtype == np.uint16
    np.testing.assert_array_equal(again.pixels, expected)
    import tifffile

    with tifffile.TiffFile(taken) as opened:
        tags = opened.pages[0].tags
        assert tags["ImageDescription"].value == "made of light"
        assert tags["XResolution"].value == (300, 1)
        assert opened.pages[0].compression == 8
    made = tmp_path / "cli.tif"
    CliRunner().invoke(cli.app, ["denoise", str(tiff), "-o", str(made), "--quality", "preview"])
    assert made.read_bytes() == taken.read_bytes()


def test_sliders_run_what_is_seen_first_and_keep_the_place(come: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    write_image(path, rng.integers(0, 255, (300, 420), np.uint8))
    visitor = come()
    visitor.dropped(path)
    visitor.choose("fast")
    visitor.run()
    lens = visitor.frame.locator(".overlay .lens")
    lens.focus()
    for _ in range(3):
        visitor.page.keyboard.press("+")
    visitor.page.keyboard.press("ArrowRight")
    looking = "[...document.querySelectorAll('[data-viewer]')].at(-1).dataset.looking"
    before = visitor.view.evaluate(looking)
    assert before.startswith("4.0960")
    del visitor.opened.requests[:]
    slider = visitor.page.locator("#strength input[type=range]")
    slider.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.locator("#status progress").wait_for()
    visitor.told("Done in")
    views = [url for url in visitor.opened.requests if "/view?" in url]
    assert [url.endswith("&part") for url in views] == [True, False]  # what one sees, then all
    visitor.frame.locator(".strip").first.wait_for()
    assert visitor.view.evaluate(looking) == before
    assert "strength 1.05" in visitor.view.locator("#numbers").inner_text()
    visitor.page.locator("#sigma input[type=range]").focus()
    visitor.page.keyboard.press("ArrowLeft")
    wait_for(lambda: not visitor.page.locator("#estimated input").is_checked())
    visitor.page.locator("#status progress").wait_for()
    visitor.told("Done in")


def test_cancel_really_stops(come: Any, server: Server, tmp_path: Path) -> None:
    path = tmp_path / "large.npy"
    np.save(path, np.clip(rng.normal(100, 20, (640, 640)), 0, 255).astype(np.uint8))
    visitor, other = come(), come()
    for each in (visitor, other):
        each.dropped(path)
    visitor.choose(method="epll")
    visitor.page.locator("#start").click()
    visitor.page.locator("#status progress[value]").wait_for()
    other.choose("preview")
    other.page.locator("#start").click()
    other.told("Waiting: 1 run before yours")
    other.shot("waiting")
    visitor.shot("running")
    assert not any("Done" in v.page.locator("#status").inner_text() for v in (visitor, other))
    start = time.monotonic()
    visitor.page.locator("#cancel").click()
    visitor.told("Stopped after")
    assert time.monotonic() - start < 2
    other.told("Done in")  # the next one has its turn
    worked, start = server.seconds_of_work(), time.monotonic()
    time.sleep(1)
    assert server.seconds_of_work() - worked < 0.5 * (time.monotonic() - start)
    assert visitor.page.locator("#cancel").is_disabled()


def test_files_that_are_too_large_or_broken(come: Any, tmp_path: Path) -> None:
    visitor = come()
    large, broken, bomb = (tmp_path / name for name in ("large.npy", "broken.png", "bomb.tif"))
    np.save(large, np.zeros((400, 400)))  # 1.28 MB
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    import tifffile

    tifffile.imwrite(bomb, np.zeros((2500, 2500), np.uint8), compression="zlib")
    assert bomb.stat().st_size < 1e5
    visitor.drop(large)
    toast = visitor.page.locator(".toast-wrap, #status", has_text="maximum allowed size").first
    toast.wait_for()
    visitor.shot("too-large")
    visitor.drop(broken)
    text = visitor.told("broken.png")
    assert "cannot be read" in text
    assert "/" not in text.replace("http://", "")  # no places on the server
    visitor.drop(bomb)
    visitor.told("unpacks to more than")
    visitor.shot("broken")
    visitor.page.locator("#start").click()
    visitor.told("Drop a picture first")


def test_visitors_cannot_fetch_each_others_files(come: Any, server: Server, tiff: Path) -> None:
    ours, theirs = come(), come()
    ours.dropped(tiff)
    ours.choose("preview")
    ours.run()
    addresses = [ours.page.locator("a.take").nth(n).get_attribute("href") for n in (0, 1)]
    addresses.append(ours.page.locator("iframe.viewer").get_attribute("src"))
    (secret,) = (c["value"] for c in ours.opened.context.cookies() if c["name"] == "symsmooth")
    for address in addresses:
        assert server.ask(address, Cookie=f"symsmooth={secret}")[0] == 200
        assert server.ask(address)[0] == 404
        assert theirs.opened.context.request.get(server.address.rstrip("/") + address).status == 404
    (dropped,) = server.files("sessions/*/dropped-*/*.tif")
    assert server.files("uploads/*") + server.files("gradio/*/*") == []  # no copy is kept
    for who in (ours, theirs):
        for route in ("file=", "file/"):
            url = f"{server.address}gradio_api/{route}{dropped}"
            assert who.opened.context.request.get(url).status == 404
    cookie = ours.opened.context.cookies()[0]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    folder = dropped.parents[1]
    ours.page.close()
    wait_for(lambda: not folder.exists(), 20)


def test_methods_side_by_side_with_a_reference(come: Any, shots: Path, tmp_path: Path) -> None:
    visitor = come()
    visitor.page.get_by_label("Or an example").select_option("Photograph, 8 bit")
    visitor.told("Ready")
    visitor.choose("preview")
    visitor.page.get_by_role("tab", name="Compare").click()
    group = visitor.page.locator("#methods")
    group.get_by_label("nlm", exact=True).uncheck()
    visitor.page.locator("#start-compare").click()
    visitor.told("Choose 2 to 4 methods; 1 are chosen.")
    group.get_by_label("bilateral").check()
    visitor.run("#start-compare", "Compared 2 methods")
    text = visitor.view.locator("#numbers").inner_text()
    assert "PSNR, dB" in text
    assert "SSIM" in text
    visitor.shot("compared")
    write_image(tmp_path / "small.png", np.zeros((9, 9), np.uint8))
    visitor.drop(tmp_path / "small.png", "#clean")
    visitor.page.get_by_text("Clean picture: small.png").wait_for()
    visitor.page.locator("#start-compare").click()
    assert "has shape" in visitor.told("small.png")
    assert audit(visitor.page) == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_any_screen_by_keyboard_and_for_everybody(
    come: Any, tiff: Path, width: int, scheme: str
) -> None:
    visitor = come(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = visitor.page
    assert audit(page) == []
    visitor.dropped(tiff)
    visitor.choose("preview")
    start = page.locator("#start")
    reached = "document.activeElement.id"
    page.locator("#drop button").first.focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate(reached) == "start":
            break
    assert page.evaluate(reached) == "start"
    assert start.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    visitor.told("Done in")
    visitor.frame.locator(".strip").first.wait_for()
    page.wait_for_timeout(300)
    assert audit(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert visitor.view.evaluate("document.documentElement.scrollWidth <= innerWidth")
    grounds = [
        each.evaluate("getComputedStyle(document.body).backgroundColor")
        for each in (page, visitor.view)
    ]
    assert grounds[0] == grounds[1]
    assert (grounds[0] == "rgb(16, 20, 26)") == (scheme == "dark")
    visitor.frame.locator(".overlay .lens").focus()
    page.keyboard.press("+")
    assert visitor.view.evaluate("document.querySelector('.strip').classList.contains('zoomed')")
    visitor.shot(f"{scheme}-{width}")


def test_the_middle_of_a_stack_is_shown_and_all_of_it_is_done(tmp_path: Path) -> None:
    """A stack goes through the same function as on the command line."""
    from symsmooth.web.tasks import RunRequest, denoise, look

    path = tmp_path / "stack.tif"
    write_image(path, rng.normal(100, 20, (3, 40, 40)).astype(np.float32))
    reporter = Reporter(1, lambda *news: None, set())
    picture, _ = look(path, 10**7, reporter)
    made = denoise(picture, RunRequest("denoise", "preview", None, 1.0), 1, tmp_path, reporter)
    assert made.message.startswith("Done")
    assert made.result is not None
    result = read_image(made.result)
    assert result.pixels.shape == (3, 40, 40)
    assert len(cut(result)) == 3

"""Somebody at the page, with a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..conftest import Opened
from ..serving import Server, wait_for


class Visitor:
    """Somebody at the page."""

    def __init__(self, browser: Any, server: Server, shots: Path, **options: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 800}, **options}
        self.opened = Opened(browser, server.address, accept_downloads=True, **options)
        self.page, self.server, self.shots = self.opened.page, server, shots
        self.page.set_default_timeout(60_000)
        self.page.wait_for_selector("[data-ready]")

    def drop(self, *paths: Path) -> None:
        self.page.locator("#picker").set_input_files([*paths])

    def dropped(self, path: Path) -> None:
        self.drop(path)
        self.reads("Ready")
        self.drawn()

    def choose(self, name: str, option: str) -> None:
        """Choose one of the buttons that look like one control."""
        self.page.locator(f"#{name} label", has_text=option).click()

    def reads(self, text: str) -> str:
        self.page.locator("#status", has_text=text).wait_for()
        return str(self.page.locator("#status").inner_text())

    def run(self, ending: str = "Done in") -> None:
        """Start, and wait until the result is drawn."""
        before = self.page.locator("#status").get_attribute("data-key")
        self.page.locator("#go").click()
        key = "document.querySelector('#status').dataset.key"
        wait_for(lambda: self.page.evaluate(key) != before, 20)
        self.reads(ending)
        self.drawn()

    def drawn(self) -> None:
        """Until all pictures are there."""
        images = "[...document.querySelectorAll('#lenses .base')]"
        self.until(f"{images}.length && {images}.every((i) => i.complete && i.naturalWidth)")

    def until(self, script: str) -> None:
        """Until something is so; the page's policy lets nobody evaluate strings in it."""
        wait_for(lambda: self.page.evaluate(script), 30)

    def labels(self) -> list[str]:
        return [str(each) for each in self.page.locator(".tag").all_inner_texts()]

    def shot(self, name: str) -> None:
        self.page.wait_for_timeout(150)
        self.page.screenshot(path=self.shots / f"{name}.png", full_page=True)

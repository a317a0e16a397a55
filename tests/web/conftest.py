"""A server, and people who come with and without a browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symsmooth.io import write_image

from ..serving import HOSTILE, Person, Server, wait_for
from .browsing import Visitor

pytest.importorskip("starlette", reason="the extra web is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on which files go wrong whose names say so; nothing is left of it at the end."""
    started = Server(tmp_path_factory.mktemp("server"), HOSTILE)
    yield started
    output = started.end()
    assert "Traceback" not in output
    assert started.files("") == []
    assert started.asked.read_text() == ""  # nobody outside was asked for anything


@pytest.fixture
def come(server: Server) -> Iterator[Callable[[], Person]]:
    people: list[Person] = []

    def person() -> Person:
        people.append(Person(server))
        return people[-1]

    yield person
    for each in people:
        each.leave()
    wait_for(lambda: not server.files("*"), 20)


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the main states are kept."""
    kept = os.environ.get("SYMSMOOTH_SHOTS")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def enter(browser: Any, server: Server, shots: Path) -> Iterator[Callable[..., Visitor]]:
    """Open the page; nothing may be complained of, or asked of anybody else, in the end."""
    visitors: list[Visitor] = []

    def visitor(**options: Any) -> Visitor:
        visitors.append(Visitor(browser, server, shots, **options))
        return visitors[-1]

    yield visitor
    for each in visitors:
        assert each.opened.complaints == []
        assert all(url.startswith((server.address, "blob:")) for url in each.opened.requests)
        each.opened.context.close()


@pytest.fixture(scope="module")
def photograph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("in") / "noise.png"
    write_image(
        path, np.clip(np.random.default_rng(0).normal(128, 20, (96, 128)), 0, 255).astype(np.uint8)
    )
    return path

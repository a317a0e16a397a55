"""A server, people who come without a browser, a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ..serving import HOSTILE, Person, Server, wait_for

pytest.importorskip("starlette", reason="the extra web is not installed")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on which files go wrong whose names say so; nothing is left of it at the end."""
    started = Server(tmp_path_factory.mktemp("server"), HOSTILE)
    yield started
    told = started.end()
    assert "Traceback" not in told
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
    wait_for(lambda: not server.files("sessions/*"), 20)

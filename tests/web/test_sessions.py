"""Sessions: whose files are whose, how they end, what a tab is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from symsmooth.web.guard import owner_in
from symsmooth.web.sessions import safe_name
from symsmooth.web.settings import PageError

from ..serving import HOSTILE, Person, Server, picture, wait_for


@pytest.mark.parametrize("cookies", [{}, {"symsmooth": "short"}, {"symsmooth": "ä" * 43}])
def test_a_cookie_is_a_long_secret(cookies: dict[str, str]) -> None:
    with pytest.raises(PageError, match="cookie"):
        owner_in(cookies)


@pytest.mark.parametrize(
    "name", ["../../x.tif", "/etc/passwd", "..", "a\0<b>.tif", ".", "x" * 300, "\\a\\b.c"]
)
def test_names_are_harmless(tmp_path: Path, name: str) -> None:
    plain = safe_name(name)
    assert re.fullmatch(r"[\w .+()-]{1,100}", plain)
    assert plain.strip(". ") == plain
    (tmp_path / plain).write_text("fits")


def test_invented_sessions_cost_nothing(come: Any, server: Server) -> None:
    nobody = Person(server)
    nobody.session = "0" * 32
    assert nobody.post(f"{nobody.here}/denoise", {"pictures": ["p1"], "settings": {}})[0] == 404
    assert nobody.ask(f"{nobody.here}/events")[0] == 404
    assert nobody.ask(f"{nobody.here}/p1/view")[0] == 404
    assert nobody.ask(nobody.here, "DELETE")[0] == 404
    assert server.files("*") == []


def test_no_other_browser_reaches_a_session(come: Any) -> None:
    """Another program, or another user of this machine, has another cookie."""
    ours, theirs = come(), come()
    id = ours.drop("a.npy", picture())["id"]
    ours.run()
    gets = ["state", "events", "results.zip", f"{id}/view?at=", f"{id}/result", f"{id}/report"]
    theirs.session = ours.session
    for name in gets:
        assert theirs.ask(f"{ours.here}/{name}")[0] == 404, name
        assert theirs.ask(f"{ours.here}/{name}", Cookie="")[0] == 404, name
    for name in ("denoise", "compare", "cancel"):
        assert theirs.post(f"{ours.here}/{name}")[0] == 404, name
    assert theirs.upload("b.npy", picture())[0] == 404
    assert theirs.ask(f"{ours.here}/{id}", "DELETE")[0] == 404
    assert theirs.ask(ours.here, "DELETE")[0] == 404
    theirs.session = ""
    for name in (f"{id}/view?at=", f"{id}/result", "results.zip"):
        assert ours.ask(f"{ours.here}/{name}")[0] == 200, name
    assert len(ours.state()["pictures"]) == 1


def test_each_tab_may_have_a_session_of_its_own(come: Any) -> None:
    person = come()
    person.drop("same.npy", picture())
    first, person.session = person.session, ""
    assert person.drop("same.npy", picture())["info"]
    second, person.session = person.session, first
    assert second != first
    assert len(person.state()["pictures"]) == 1
    person.leave()
    person.session = second


def test_ending_a_session_stops_its_work_and_deletes_its_files(come: Any, server: Server) -> None:
    person = come()
    person.drop("a.npy", picture(640))
    person.start("epll")
    wait_for(lambda: person.state()["progress"])
    assert person.ask(person.here, "DELETE")[0] == 200
    assert person.ask(f"{person.here}/state")[0] == 404
    wait_for(lambda: not server.files("*"))


def test_a_session_nobody_looks_at_makes_room_for_the_next(tmp_path: Path) -> None:
    server = Server(tmp_path, HOSTILE + "; controller._ABSENT = 1.0")
    absent, present, other = Person(server), Person(server), Person(server)
    absent.drop("a.npy", picture())
    present.drop("b.npy", picture())
    present.open_tab()

    def only_the_absent_has_ended() -> bool:
        other.leave()
        other.session = ""
        other.drop("c.npy", picture())
        assert present.state()["pictures"]
        return absent.ask(f"{absent.here}/state")[0] == 404 and len(server.files("*")) == 2

    # To ask for its state would be a sign of life.
    wait_for(lambda: len(server.files("*")) == 2)
    import time

    time.sleep(1.5)
    assert only_the_absent_has_ended()
    present.close_tabs()
    server.end()


def test_a_removed_picture_is_gone(come: Any, server: Server) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    person.upload("hangs.npy", picture())
    hanging = person.state()["pictures"][1]["id"]
    for each in (id, hanging):
        assert person.ask(f"{person.here}/{each}", "DELETE")[0] == 200
        assert person.ask(f"{person.here}/{each}/view")[0] == 404
    wait_for(lambda: not server.files("*/*"))
    assert person.drop("b.npy", picture())["info"]  # what hung is not waited for


def test_a_session_may_have_so_many_pictures(come: Any, server: Server) -> None:
    person = come()
    statuses = {person.upload(f"{n}.npy", picture(8))[0] for n in range(30)}
    assert statuses == {200}
    status, answer = person.upload("more.npy", picture(8))
    told = "There may be 30 pictures at a time; remove some of them."
    assert (status, answer["error"]) == (422, told)
    assert len(server.files("*/picture-*")) == 30


def test_a_tab_is_told_of_its_state_progress_and_end(come: Any) -> None:
    person = come()
    person.drop("a.npy", picture(320))
    tab = person.open_tab()
    tab.settimeout(20)
    person.start("denoise", quality="balanced")
    heard = b""
    while b'"kind": "denoise"' not in heard:
        heard += tab.recv(2**16)
    assert b"event: state" in heard
    fractions = [float(n) for n in re.findall(rb'"fraction": ([0-9.]+)', heard)]
    assert fractions == sorted(fractions)  # one bar that never goes back
    assert len(set(fractions)) > 1
    person.ask(person.here, "DELETE")
    while b"event: gone" not in heard:
        heard += tab.recv(2**16)

"""Visits: whose files are whose, how many there may be, how long they last."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from symsmooth.web.errors import SessionError
from symsmooth.web.pictures import Picture
from symsmooth.web.runs import Run, Runs
from symsmooth.web.sessions import Limits, Sessions, safe_name

from ..serving import Person, Server, picture, wait_for

OURS, THEIRS = {"symsmooth": "a" * 43}, {"symsmooth": "b" * 43}
US, THEM = "a" * 43, "b" * 43


def make_sessions(tmp_path: Path, clock: Any, **limits: Any) -> Sessions:
    (tmp_path / "sessions").mkdir()
    return Sessions(tmp_path / "sessions", Limits(**limits), clock)


def test_a_visit_is_found_by_its_owner_alone(tmp_path: Path, clock: Any) -> None:
    sessions = make_sessions(tmp_path, clock)
    session = sessions.begin(US)
    assert sessions.find(session.token, OURS) is session
    assert sessions.find(session.token, THEIRS) is None
    assert sessions.find(session.token, {}) is None
    assert sessions.find("", OURS) is None
    assert sessions.begin(US).folder != session.folder
    for cookies in ({}, {"symsmooth": "short"}, {"symsmooth": "ä" * 43}):
        with pytest.raises(SessionError, match="cookie"):
            Sessions.owner_in(cookies)


def test_files_and_work_go_with_their_visit(tmp_path: Path, clock: Any) -> None:
    def endless(run: Run) -> None:
        while True:
            run.progress(0.5, "working")

    runs = Runs(1)
    sessions = make_sessions(tmp_path, clock)
    session = sessions.begin(US)
    run = runs.submit(endless)
    session.pictures["p1"] = Picture("p1", "a.png", session.new_folder("picture"), run=run)
    sessions.end(session)
    assert not session.folder.exists()
    assert not session.is_open
    wait_for(lambda: run.finished)
    assert sessions.find(session.token, OURS) is None
    runs.close()


@pytest.mark.parametrize(
    "name", ["../../x.tif", "/etc/passwd", "..", "a\0<b>.tif", ".", "x" * 300, "\\a\\b.c"]
)
def test_names_are_harmless(tmp_path: Path, name: str) -> None:
    plain = safe_name(name)
    assert re.fullmatch(r"[\w .+()-]{1,100}", plain)
    assert plain.strip(". ") == plain
    (tmp_path / plain).write_text("fits")


def test_visits_end_when_nothing_is_asked(tmp_path: Path, clock: Any) -> None:
    sessions = make_sessions(tmp_path, clock, idle=100.0, absent=10.0)
    absent, present, hidden = (sessions.begin(US) for _ in range(3))
    with sessions.tab(present):
        clock.now += 9
        assert sessions.find(hidden.token, OURS, asks=False) is hidden  # a sign of life
        clock.now += 2
        sessions.sweep()
        assert not absent.folder.exists()
        assert not absent.is_open
        assert present.folder.exists()
        assert hidden.folder.exists()
        clock.now += 90  # a hidden tab that is alive lasts no longer than one that is seen
        sessions.find(hidden.token, OURS, asks=False)
        sessions.sweep()
        assert not hidden.folder.exists()
        assert not present.folder.exists()
    assert [*(tmp_path / "sessions").iterdir()] == []


def test_a_visit_outlives_its_tab_for_a_while(tmp_path: Path, clock: Any) -> None:
    sessions = make_sessions(tmp_path, clock, absent=10.0)
    session = sessions.begin(US)
    with sessions.tab(session):
        clock.now += 60
    clock.now += 9
    sessions.sweep()
    assert sessions.find(session.token, OURS) is session  # reloaded
    clock.now += 11
    sessions.sweep()
    assert sessions.find(session.token, OURS) is None


def test_visits_without_a_tab_make_room_and_others_do_not(tmp_path: Path, clock: Any) -> None:
    sessions = make_sessions(tmp_path, clock, sessions=3, of_owner=2, of_address=9)
    kept = sessions.begin(US)
    with sessions.tab(kept):
        first = sessions.begin(US)
        clock.now += 1
        second = sessions.begin(US)  # one too many of this owner
        assert not first.folder.exists()
        assert kept.folder.exists()
        theirs = sessions.begin(THEM)
        with (
            sessions.tab(theirs),
            sessions.tab(second),
            pytest.raises(SessionError, match="Too many people"),
        ):
            sessions.begin("c" * 43)


def test_one_address_cannot_take_all_places(tmp_path: Path, clock: Any) -> None:
    sessions = make_sessions(tmp_path, clock, of_address=2)
    both = [sessions.begin(letter * 43, "10.0.0.1") for letter in "ab"]
    with sessions.tab(both[0]), sessions.tab(both[1]):
        with pytest.raises(SessionError, match="Too many people"):
            sessions.begin("c" * 43, "10.0.0.1")
        sessions.begin("d" * 43, "10.0.0.2")


def test_a_visit_has_so_many_tabs(tmp_path: Path, clock: Any) -> None:
    sessions = make_sessions(tmp_path, clock, tabs=1)
    session = sessions.begin(US)
    more = sessions.tab(session)
    with sessions.tab(session), pytest.raises(SessionError, match="too many tabs"), more:
        pass
    assert session.tabs == 0


# --- through the server -----------------------------------------------------------------------


def test_invented_visits_cost_nothing(come: Any, server: Server) -> None:
    """Two hundred visits are invented, and each uses all controls; then somebody comes."""

    def invent(number: int) -> None:
        nobody = Person(server)
        nobody.visit = f"{number:032d}"
        assert nobody.post(f"{nobody.here}/denoise", {"pictures": ["p1"], "settings": {}})[0] == 404
        assert nobody.ask(f"{nobody.here}/events")[0] == 404
        assert nobody.ask(f"{nobody.here}/p1/view")[0] == 404
        assert nobody.ask(nobody.here, "DELETE")[0] == 404

    with ThreadPoolExecutor(100) as people:
        list(people.map(invent, range(200)))
    assert server.files("sessions/*") == []
    assert come().drop("a.npy", picture())["info"]


def test_nobody_reaches_anothers_visit(come: Any) -> None:
    ours, theirs = come(), come()
    id = ours.drop("a.npy", picture())["id"]
    ours.run()
    gets = ["state", "events", "results.zip", f"{id}/view?at=", f"{id}/result", f"{id}/report"]
    theirs.visit = ours.visit
    for name in gets:
        assert theirs.ask(f"{ours.here}/{name}")[0] == 404, name
        assert theirs.ask(f"{ours.here}/{name}", Cookie="")[0] == 404, name
    for name in ("denoise", "compare", "cancel", "alive"):
        assert theirs.post(f"{ours.here}/{name}")[0] == 404, name
    assert theirs.ask(f"{ours.here}/{id}", "DELETE")[0] == 404
    assert theirs.ask(ours.here, "DELETE")[0] == 404
    theirs.visit = ""
    for name in (f"{id}/view?at=", f"{id}/result", "results.zip"):
        assert ours.ask(f"{ours.here}/{name}")[0] == 200, name


def test_ending_a_visit_stops_its_work_and_deletes_its_files(come: Any, server: Server) -> None:
    person = come()
    person.drop("a.npy", picture(640))
    person.start("epll")
    wait_for(lambda: person.state()["progress"])
    assert person.ask(person.here, "DELETE")[0] == 200
    assert person.ask(f"{person.here}/state")[0] == 404
    wait_for(lambda: not server.files("sessions/*"))  # what was still written is swept


def test_a_removed_picture_is_gone(come: Any, server: Server) -> None:
    person = come()
    id = person.drop("a.npy", picture())["id"]
    person.upload("hangs.npy", picture())
    hanging = person.state()["pictures"][1]["id"]
    for each in (id, hanging):
        assert person.ask(f"{person.here}/{each}", "DELETE")[0] == 200
        assert person.ask(f"{person.here}/{each}/view")[0] == 404
    wait_for(lambda: not server.files("sessions/*/*"))
    assert person.drop("b.npy", picture())["info"]  # what hung is not waited for


def test_open_tabs_are_counted_while_they_are_open(come: Any) -> None:
    person = come()
    person.drop("a.npy", picture())
    tabs = [person.open_tab() for _ in range(8)]
    assert person.ask(f"{person.here}/events")[0] == 429
    for tab in tabs:
        tab.close()
    assert person.post(f"{person.here}/alive")[0] == 200

    def may_open() -> bool:
        try:
            person.open_tab()
        except AssertionError:  # not yet noticed that others are closed
            return False
        return True

    wait_for(may_open)


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

"""What the page tells, as HTML."""

from __future__ import annotations

from pathlib import Path

from ..reports import Html, element
from ..reports.markup import Child
from .runs import Run
from .sessions import Session, Upload


def viewer(session: Session) -> str:
    """Return the frame that shows the session's pictures; it remembers where one looks."""
    return element(
        "iframe",
        src=f"{session.link('view')}?n={session.shown}{'&part' if session.partly else ''}",
        title="Pictures: before and after, method noise, numbers",
        class_="viewer",
    )


def nothing_yet() -> str:
    """Return what is shown before a picture is there."""
    return element(
        "div",
        element("p", "Your picture appears here.", class_="large"),
        element("p", "Drop a PNG, JPEG, TIFF, FITS, WebP, BMP or .npy file, or take an example."),
        class_="empty",
    )


def noise_of(picture: Upload) -> str:
    """Return what was found in a picture."""
    percent = 100 * picture.found.level / picture.reach if picture.reach else 0.0
    rows = [("Picture", picture.description), ("Noise", f"{picture.found.words} ({percent:.3g} %)")]
    listed = [[element("dt", name), element("dd", text)] for name, text in rows]
    return element("dl", listed, class_="found")


def status(run: Run, ahead: int) -> str:
    """Return how far a run is."""
    if run.stopping:
        return _bar("Stopping", None)
    if run.seconds is None:
        return _bar(f"Waiting: {ahead} run{'s' if ahead > 1 else ''} before yours", None)
    share = run.done / run.total if run.total else None
    return _bar(f"{run.stage[:1].upper()}{run.stage[1:]}, {run.seconds:.0f} s", share)


def _bar(text: str, share: float | None) -> Html:
    value = None if share is None else f"{share:.3f}"
    return element(
        "div",
        element("span", text),
        element("progress", value=value, max="1", aria_label="Progress"),
        class_="status",
    )


def message(text: str, kind: str = "good") -> str:
    """Return a message: good, bad or plain."""
    role = "alert" if kind == "bad" else "status"
    return element("div", element("span", text), class_=f"status {kind}", role=role)


def reference(path: Path | None) -> str:
    """Return whether the picture without noise is known."""
    text = "No clean picture is known: no PSNR and SSIM."
    return message(text if path is None else f"Clean picture: {path.name}", "plain")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"


def downloads(session: Session) -> str:
    """Return links to what can be taken home."""
    links: list[Child] = []
    for name, words in (("result", "Download the result"), ("report", "Download this view")):
        path = session.files.get(name)
        if path is not None:
            about = f"{path.suffix.lstrip('.').upper()}, {_size(path.stat().st_size)}"
            links.append(
                element(
                    "a",
                    element("b", words),
                    element("span", about),
                    href=session.link(name),
                    download=True,
                    class_="take",
                )
            )
    return element("div", links, class_="downloads") if links else ""

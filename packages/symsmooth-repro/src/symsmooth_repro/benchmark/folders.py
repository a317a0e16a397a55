"""Which pictures a folder holds, and which of them belong together.

Two rules find pairs of noisy and clean pictures:

- files: ``X_real.jpg`` and ``X_mean.jpg``, or with ``noisy`` for ``real``, and ``gt`` or ``clean`` for
  ``mean``, anywhere in the name and in any case (``0001_NOISY_SRGB_010.PNG``);
- folders: ``noisy/`` or ``raw/`` beside ``gt/`` or ``clean/``, and ``avg2/``, ``avg4/`` for averages of
  several shots.  Files have the same name in both, or the clean one is alone in the folder of that name
  (``raw/3/shot-01.png`` and ``gt/3/mean.png``).

Everything else is a clean picture, to which noise is added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from symsmooth.io import FileError

ENDINGS = (".png", ".jpg", ".jpeg", ".jfif", ".jpe", ".bmp", ".webp", ".tif", ".tiff", ".npy")
_NOISY_FOLDER = re.compile(r"noisy|raw|avg\d+", re.IGNORECASE)
_CLEAN_FOLDERS = ("gt", "clean")
_NOISY_WORD = re.compile(r"(?<![a-z])(real|noisy)(?![a-z])", re.IGNORECASE)
_CLEAN_WORDS = ("mean", "gt", "clean")
_CLEAN_WORD = re.compile(rf"(?<![a-z])({'|'.join(_CLEAN_WORDS)})(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """A clean picture, and the noisy one if there is one."""

    name: str
    clean: Path
    noisy: Path | None = None


@dataclass(frozen=True)
class PictureSet:
    """Pictures that are averaged in one table."""

    name: str
    sources: tuple[Source, ...]
    left_out: tuple[str, ...] = ()  # noisy pictures whose clean one is missing, and the reverse

    @property
    def is_paired(self) -> bool:
        """Whether its noise is real."""
        return any(source.noisy is not None for source in self.sources)


def find_sets(folder: Path) -> list[PictureSet]:
    """Return the sets of pictures in a folder and below it, by name."""
    if not folder.is_dir():
        raise FileError(f"{folder}: no such folder; give a folder of pictures")
    root = folder.resolve()
    if _NOISY_FOLDER.fullmatch(root.name):
        raise FileError(f"{folder}: is named as noisy pictures are; give the folder above it")
    found = [each for each in _walk(root, root.parent) if each.sources]
    if not found:
        raise FileError(f"{folder}: holds no pictures ({', '.join(ENDINGS)})")
    return found


def _walk(place: Path, above: Path) -> Iterator[PictureSet]:
    below = sorted(p for p in place.iterdir() if p.is_dir() and not p.name.startswith("."))
    clean = next((p for p in below if p.name.lower() in _CLEAN_FOLDERS), None)
    noisy = [p for p in below if _NOISY_FOLDER.fullmatch(p.name)]
    name = place.relative_to(above).as_posix()
    if noisy and clean is None:
        raise FileError(f"{noisy[0]}: there is no folder gt or clean beside it")
    if noisy and clean is not None:
        for each in noisy:
            yield _pair_folders(name if len(noisy) == 1 else f"{name}/{each.name}", each, clean)
        below = [p for p in below if p not in (*noisy, clean)]
    yield _pair_files(name, _pictures(place))
    for each in below:
        yield from _walk(each, above)


def _pictures(place: Path, pattern: str = "*") -> list[Path]:
    return sorted(p for p in place.glob(pattern) if p.suffix.lower() in ENDINGS and p.is_file())


def _pair_files(name: str, files: list[Path]) -> PictureSet:
    """Pair the files of one folder by a word in their names; without any pair, all are clean."""
    by_stem = {path.stem.lower(): path for path in files}
    sources: list[Source] = []
    for path in files:
        for word in _CLEAN_WORDS:
            stem, changed = _NOISY_WORD.subn(word, path.stem.lower(), count=1)
            if changed and stem in by_stem:
                sources.append(Source(path.stem, by_stem[stem], path))
                break
    if not sources:
        lonely = [path for path in files if _NOISY_WORD.search(path.stem)]
        if lonely:
            raise FileError(f"{lonely[0]}: its clean picture (mean, gt or clean) is not there")
        return PictureSet(name, tuple(Source(path.stem, path) for path in files))
    used = {path for source in sources for path in (source.clean, source.noisy)}
    return PictureSet(name, tuple(sources), tuple(p.name for p in files if p not in used))


def _pair_folders(name: str, noisy: Path, clean: Path) -> PictureSet:
    """Pair the files of two folders by their names, or by the folders that they are in."""
    references = {path.relative_to(clean).with_suffix(""): path for path in _below(clean)}
    alone: dict[Path, list[Path]] = {}
    for key, path in references.items():
        alone.setdefault(key.parent, []).append(path)
    sources: list[Source] = []
    left_out: list[str] = []
    for path in _below(noisy):
        key = path.relative_to(noisy).with_suffix("")
        beside = alone.get(key.parent, []) if key.parent != Path() else []
        found = references.get(key) or (beside[0] if len(beside) == 1 else None)
        if found is None:
            left_out.append(key.as_posix())
        else:
            sources.append(Source(key.as_posix(), found, path))
    used = {source.clean for source in sources}
    left_out += [f"{clean.name}/{key}" for key, path in references.items() if path not in used]
    return PictureSet(name, tuple(sources), tuple(left_out))


def _below(place: Path) -> list[Path]:
    return _pictures(place, "**/*")

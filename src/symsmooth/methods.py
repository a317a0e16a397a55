"""METHODS, the only registry: command line, web page, dask, experiments and contract tests go through it.

A new method is one file with its function and one ``Method`` here.  Options, their choices and what a
method accepts are read off its signature, in this module alone.  Functions are imported when they are first
asked for: titles cost no NumPy.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from .core.image import Array
    from .noise import Noise

DEFAULT = "denoise"
# Of the default method, and what each is for; their stages are in gsfw.presets.
QUALITIES: Mapping[str, str] = MappingProxyType(
    {
        "preview": "A first look",
        "fast": "Seconds for a photograph",
        "balanced": "Best for its time",
        "best": "Last tenths of a decibel; slow",
    }
)

# Parameters that all methods share.
_SHARED = {"image", "sigma", "channel_axis", "time_axis", "mask", "rng", "workers", "progress"}
_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Option:
    """A keyword-only parameter that is a method's own."""

    name: str  # as in Python: n_clusters
    kinds: tuple[Any, ...]  # types its annotation allows, NoneType among them, or literal values
    default: object
    help: str = ""  # the first sentence about it in the documentation of its method

    @property
    def key(self) -> str:
        """Its name on the command line: n-clusters."""
        return self.name.replace("_", "-")

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it may be, if it has such."""
        return tuple(kind for kind in self.kinds if isinstance(kind, str))

    @property
    def expects(self) -> str:
        """What a value may be, in words."""
        words = [_WORDS[kind] for kind in self._readable if kind in _WORDS]
        others = [str(kind) for kind in self._readable if kind not in _WORDS and kind is not None]
        words += [f"one of {', '.join(others)}"] if len(others) > 1 else others
        return " or ".join(words + ["none"] * (type(None) in self.kinds))

    def parse(self, text: str) -> object:
        """Return the value that ``text`` stands for."""
        if text.lower() == "none" and type(None) in self.kinds:
            return None
        for kind in self._readable:
            try:
                return _parse_as(kind, text)
            except ValueError:
                continue
        raise ValueError(f"{self.key} must be {self.expects}, got {text!r}")

    @property
    def _readable(self) -> list[Any]:
        """The kinds that a word can stand for: not arrays or pairs; one of the choices if there are any."""
        known = {kind for kind in _WORDS if kind is not str or not self.choices}
        return [
            kind
            for kind in self.kinds
            if kind in known or not (isinstance(kind, type) or get_origin(kind))
        ]


Function = Callable[..., Any]


class _Loaded:
    """An attribute that is a function, or says where it is, ``module:name``: imported when asked for."""

    def __init__(self, default: str | None = None, *, required: bool = False) -> None:
        self._default, self._required = default, required

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, method: Any, owner: type) -> Any:
        if method is None:
            if self._required:
                raise AttributeError(self._name)  # so that a dataclass knows of no default
            return self._default
        value = method.__dict__[self._name]
        if isinstance(value, str):
            module, _, name = value.partition(":")
            value = getattr(importlib.import_module(f".{module}", __package__), name)
            method.__dict__[self._name] = value
        return value

    def __set__(self, method: Any, value: Function | str | None) -> None:
        method.__dict__[self._name] = value


@dataclass(frozen=True, eq=False)
class Method:
    """A method and all that is known of it; called, it is its function.

    Attributes
    ----------
    name : str
    function : callable
    fit : callable or None
        The same, but returns all that was found.
    title, about : str
        What it is called where people choose, and one sentence about it.
    offers : tuple of str
        Those of "quality", "noise", "strength", "time" that it has; else it is for white noise, and more
        strength assumes more of it.
    reports : tuple of str
        Attributes of what ``fit`` returns that are shown to users.
    reports_if_used : tuple of str
        The same, unless they are 0.
    removes_noise : bool
    halo : callable
        Of a block of a large image, in pixels: halo(n_dims, **options), with the method's own options.
    decide : callable or None
        What pieces of a large image must know of the whole: decide(sample, noise, options).
    takes_opened : bool
        Whether it takes a Picture that is open already.
    """

    name: str
    function: _Loaded = _Loaded(required=True)
    fit: _Loaded = _Loaded()
    title: str = ""
    about: str = ""
    offers: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    reports_if_used: tuple[str, ...] = ()
    removes_noise: bool = True
    halo: _Loaded = _Loaded("core.blocks:default_halo")
    decide: _Loaded = _Loaded()
    takes_opened: bool = False

    def __call__(self, image: Any, sigma: Any = None, **options: Any) -> Array:
        """Denoise an image."""
        return self.function(image, sigma, **options)

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @cached_property
    def accepts(self) -> frozenset[str]:
        """Names of all its parameters."""
        return frozenset(inspect.signature(self.function).parameters)

    @cached_property
    def takes_noise(self) -> bool:
        """Whether it knows of other noise than white noise of one level."""
        return "noise" in self.accepts

    def noise_arguments(self, noise: Noise | None) -> dict[str, Any]:
        """Return the noise to remove as keyword arguments: a model if it takes one, else a level."""
        if noise is None:
            return {}
        if self.takes_noise:
            return {"noise": noise}
        return {"sigma": noise.sigma}

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """The options that are its own, by name."""
        kinds = get_type_hints(inspect.unwrap(self.function))
        doc = inspect.getdoc(self.function) or ""

        def help_of(name: str) -> str:
            return _first_sentence(doc, name)

        return {
            name: Option(
                name, tuple(_kinds(kinds.get(name, str))), parameter.default, help_of(name)
            )
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and name not in _SHARED
        }


def _first_sentence(doc: str, name: str) -> str:
    """Return the first sentence that a numpydoc text says about a parameter, on one line."""
    found = re.search(
        rf"^(?:\w+, )*{name}(?:, \w+)* : [^\n]*\n((?:    [^\n]*\n?)+)", doc, re.MULTILINE
    )
    text = " ".join(found[1].split()) if found else ""
    return re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;")


def _kinds(annotation: Any) -> list[Any]:
    """Return the types, or literal values, that an annotation allows."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [kind for part in get_args(annotation) for kind in _kinds(part)]
    return list(get_args(annotation)) if get_origin(annotation) is Literal else [annotation]


def _parse_as(kind: Any, text: str) -> object:
    """Read a value as one type or literal; ValueError if it is none of that."""
    if kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
    elif kind in (int, float, str):
        return kind(text)
    elif str(kind) == text:
        return kind
    raise ValueError(text)


def _registry(*methods: Method) -> Mapping[str, Method]:
    return MappingProxyType({method.name: method for method in methods})


def _ours(name: str, home: str, title: str, about: str, **more: Any) -> Method:
    """Return a method of this package: its function is in ``home``."""
    return Method(
        name, f"{home}:denoise_{name}", title=title, about=about, takes_opened=True, **more
    )


METHODS: Mapping[str, Method] = _registry(
    Method(
        "denoise", "gsfw.denoise:denoise", "gsfw.denoise:fit_denoise", "Automatic",
        "Finds the noise, and removes it by our best method (GSF-W). Start here.",
        offers=("quality", "noise", "strength", "time"), reports_if_used=("tone", "n_specks"),
        decide="gsfw.removal:decide", takes_opened=True,
    ),
    _ours(
        "gaussian", "filters.filters", "Gaussian", "A plain blur, as a yardstick.",
        halo="filters.filters:gaussian_halo",
    ),
    _ours(
        "bilateral", "filters.filters", "Bilateral", "Averages of near pixels of near value. Fast.",
        halo="filters.filters:bilateral_halo",
    ),
    _ours(
        "nlm", "filters.filters", "Non-local means",
        "Averages of pixels whose neighbourhoods look alike.", halo="filters.filters:nlm_halo",
    ),
    _ours(
        "lark", "filters.filters", "LARK", "Kernels that follow the edges.",
        halo="filters.filters:lark_halo",
    ),
    _ours(
        "gsf", "mixture.gsf", "GSF", "Gaussian mixture of patches as a smoothing filter: the paper's.",
        fit="mixture.gsf:fit_gsf", reports=("n_clusters", "fidelity"), halo="mixture.gsf:block_halo",
    ),
    _ours(
        "gsfw", "gsfw.gsfw", "GSF-W", "Soft clusters of patches with learned covariances; white noise.",
        fit="gsfw.gsfw:fit_gsfw", offers=("quality",),
    ),
    _ours(
        "bm3d", "baselines.bm3d", "BM3D", "Similar blocks, filtered together. A strong classic."
    ),
    _ours(
        "nl_bayes", "baselines.nl_bayes", "NL-Bayes", "A Gaussian for each group of similar patches."
    ),
    _ours(
        "epll", "baselines.epll", "EPLL",
        "Patches made likely under a prior of natural images. Slow.",
    ),
    _ours(
        "ple", "baselines.ple", "PLE", "Piecewise linear estimates, learned from the picture."
    ),
    _ours("glide", "baselines.glide", "GLIDE", "One global filter, approximated in blocks."),
)  # fmt: skip


def identity(image: Any, sigma: float | None = None, *, channel_axis: int | None = None) -> Any:
    """Return a copy of the image: to see what reading and writing a file alone does to it."""
    import numpy as np

    return np.array(image)


HIDDEN_METHODS: Mapping[str, Method] = _registry(Method("identity", identity, removes_noise=False))
"""No denoisers: known by name, but not shown."""


def find_method(name: str) -> Method:
    """Return a method by its name, however that is spelled: ``nl_bayes``, ``NL-Bayes``."""
    key = name.strip().lower().replace("-", "_")
    for known in (METHODS, HIDDEN_METHODS):
        if key in known:
            return known[key]
    raise ValueError(f"there is no method {name!r}; use one of {', '.join(METHODS)}")


def method_of(function: Callable[..., Any]) -> Method:
    """Return the method that a public function is."""
    return next(method for method in METHODS.values() if method.function is function)

"""What the mixture learned -> one page; a sentence for each figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from symsmooth.core.image import Array
from symsmooth.core.plotting import require_matplotlib
from symsmooth.mixture.figures import sure_curve
from symsmooth.mixture.gsf import GSFResult
from symsmooth.reports.page import Child, Html, Row, Section, Table, element, page, prose
from symsmooth.reports.pictures import Panel, Range, display_range, strip, webp_uri

from ..plots import Plot, Series
from .learning import H_S, PATCH, WEAK, Learned, Neighbours

_RADIUS = 30  # pixels around a patch that are shown: 3 h_s, where the soft window ends
_SHOWN_NEIGHBOURS = 6
_CONTEXT = 4  # pixels shown on each side of a neighbour


def explain_page(name: str, learned: Learned, facts: Mapping[str, str]) -> str:
    """Return the page; needs matplotlib."""
    shown = display_range(learned.noisy)
    y, x = learned.part
    height, width = learned.noisy.shape[:2]
    facts = {
        **facts,
        "Part": f"{width}x{height} pixels from row {y.start}, column {x.start}: clusters are "
        "local, a part is as good as the whole",
        "Brightness": str(shown),
        "Neighbours": f"regulated NLM, patches {PATCH}x{PATCH}, h_s {H_S:g}, h_r = σ√d, as in the paper",
    }
    listed = [[element("dt", key), element("dd", prose(text))] for key, text in facts.items()]
    sections = [
        Section("result", "From noisy to denoised", _outcome(learned, shown)),
        Section("clusters", "Clusters of similar patches", _clusters(learned, shown)),
        Section("neighbours", "Good and weak neighbours", _all_neighbours(learned, shown)),
        Section("k", "How many clusters", _search(learned.result)),
        Section("lambda", "How much of the noisy picture", _sure(learned.result)),
        Section("run", "How it was made", element("dl", listed, class_="facts")),
    ]
    return page(f"What the mixture learned from {name}", _lead(learned), sections, foot=_foot())


def _lead(learned: Learned) -> Child:
    result = learned.result
    n = learned.noisy.shape[0] * learned.noisy.shape[1]
    return [
        element(
            "p",
            f"{n:,} patches in {result.refined_clusters:,} clusters: similar patches share what they know",
            class_="headline",
        ),
        element(
            "p",
            "How GSF, the method of the paper below, denoises this picture. A pixel is averaged with "
            "those whose surroundings, a patch, look alike: similar patches are gathered in clusters, "
            "and each pixel asks the clusters that its patch belongs to.",
        ),
    ]


def _clusters(learned: Learned, shown: Range) -> Child:
    log_pixels = np.log(np.maximum(learned.pixels_per_cluster, 1.0))
    effective = learned.effective_clusters
    panels = [
        Panel("noisy", webp_uri(shown(learned.noisy)), f"σ {learned.result.sigma:.3g}"),
        Panel("clusters", webp_uri(np.clip(learned.clusters, 0, 1)), "one hue each"),
        Panel("their means", webp_uri(shown(learned.appearance)), "what clusters look like"),
        Panel("clusters a pixel", webp_uri(_heat(effective)), f"{_span(effective)}, bright: many"),
        Panel("pixels a cluster", webp_uri(_heat(log_pixels)), _span(learned.pixels_per_cluster)),
        Panel(
            "popularity",
            webp_uri(_heat(learned.popularity)),
            f"{_span(learned.popularity)} of the mean",
        ),
    ]
    height, width = learned.noisy.shape[:2]
    return [
        element(
            "p",
            "A pixel has the mixed colours of its clusters: colours flow over plain ground, where many "
            "clusters share the work, and break where the picture does. Popularity, the column sum of "
            "W, is how much a patch is like others; normalisation divides by it.",
        ),
        strip("What was learned", panels, ratio=float(np.clip(width / height, 0.4, 3.0))),
    ]


def _all_neighbours(learned: Learned, shown: Range) -> Child:
    rows: list[Row] = [
        [
            each.what,
            f"{_effective(each.before):.0f} → {_effective(each.after):.0f}",
            f"{100 * each.weak_before:.0f} % → {100 * each.weak_after:.0f} %",
        ]
        for each in learned.neighbours
    ]
    table = Table(
        "Before → after normalisation",
        ["patch", "neighbours", "weak ones' share"],
        rows,
        note=f"Neighbours: exp of the entropy of the weights. Weak: similarity W below {WEAK:g}.",
    )
    most_changed = max(learned.neighbours, key=lambda each: each.weak_before - each.weak_after)
    lead = element(
        "p",
        "Why clusters help: an unusual patch has few good neighbours, but many popular patches are a "
        "little like it and together outvote the good ones. Normalisation, the first step of learning "
        "clusters, divides each vote by its popularity.",
        f" Most so here: {most_changed.what.lower()}, whose weak neighbours fall from "
        f"{100 * most_changed.weak_before:.0f} % of the vote to {100 * most_changed.weak_after:.0f} %."
        if most_changed.weak_before > most_changed.weak_after
        else None,
    )
    return [
        lead,
        table.to_html(),
        *(_neighbours(each, learned, is_open=each is most_changed) for each in learned.neighbours),
    ]


def _neighbours(each: Neighbours, learned: Learned, *, is_open: bool) -> Html:
    """Return the neighbourhood, the weights, the best and worst neighbours, the clusters of one patch."""
    where = _around(each.place, _RADIUS, learned.noisy.shape)
    shown = _contrast(learned.noisy[where])
    before, after = each.before[where], each.after[where]
    centre = (each.place[0] - where[0].start, each.place[1] - where[1].start)
    before, after = before.copy(), after.copy()
    self_before, self_after = float(before[centre]), float(after[centre])
    before[centre] = after[centre] = 0.0  # itself would outshine all others
    peak = max(float(before.max()), float(after.max())) or 1.0
    panels = [
        Panel(
            "noisy", webp_uri(_marked(shown(learned.noisy[where]), centre)), "the patch is framed"
        ),
        Panel("first pass", webp_uri(_marked(shown(learned.result.pilot[where]), centre)), ""),
        Panel(
            "votes before", webp_uri(_heat(before, 0, peak)), f"itself {100 * self_before:.1f} %"
        ),
        Panel("votes after", webp_uri(_heat(after, 0, peak)), f"itself {100 * self_after:.1f} %"),
        Panel("change", webp_uri(_change(after - before)), "orange lost, violet gained"),
    ]
    good, weak = _best_and_worst(each)
    body: list[Child] = [
        element(
            "summary",
            element("b", each.what),
            element("span", f" row {each.place[0]}, column {each.place[1]}"),
        ),
        strip("Who votes, and how much", panels),
        _thumbnails(
            "Good neighbours: the most weight after (before → after)",
            [_neighbour(place, each, learned, shown) for place in good],
        ),
        _thumbnails(
            "Weak neighbours: those who lost most",
            [_neighbour(place, each, learned, shown) for place in weak],
        )
        if weak
        else None,
        _thumbnails(
            "Its clusters: mean patches and their share in the answer",
            [
                Panel(f"{100 * share:.0f} %", webp_uri(shown(patch)), "")
                for share, patch in each.clusters
            ],
        ),
    ]
    return element("details", body, class_="item", open=is_open)


def _thumbnails(title: str, panels: Sequence[Panel]) -> Html:
    """Return a row of small pictures, enlarged pixel by pixel, labels below."""
    figures = [
        element(
            "figure",
            element("img", src=panel.uri, alt="", decoding="async"),
            element("figcaption", panel.label),
        )
        for panel in panels
    ]
    return element(
        "div",
        element("p", title, class_="strip-title"),
        element("div", figures, class_="thumbs", tabindex="0", role="region", aria_label=title),
        class_="thumbnails",
    )


def _best_and_worst(each: Neighbours) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    gain = each.after - each.before
    after = each.after.copy()
    gain[each.place] = after[each.place] = 0.0
    count = min(_SHOWN_NEIGHBOURS, after.size - 1)

    def first(scores: Array) -> list[tuple[int, int]]:
        order = np.argsort(-scores, axis=None)[:count]
        ys, xs = np.unravel_index(order, scores.shape)
        return [(int(y), int(x)) for y, x in zip(ys, xs, strict=True)]

    weak = first(np.where(each.similarity < WEAK, -gain, 0.0))
    return first(after), [place for place in weak if gain[place] < 0]


def _neighbour(place: tuple[int, int], each: Neighbours, learned: Learned, shown: Range) -> Panel:
    where = _around(place, _CONTEXT, learned.noisy.shape)
    weights = f"{100 * each.before[place]:.2g} → {100 * each.after[place]:.2g} %"
    return Panel(weights, webp_uri(shown(learned.result.pilot[where])), "")


def _search(result: GSFResult) -> Child:
    if result.search is None:
        return element("p", f"k = {result.n_clusters} was given.")
    steps = result.search.steps
    points = [
        Series(f"{n}: k = {k}", [k], [delta], "points")
        for n, (k, delta) in enumerate(steps, start=1)
    ]
    way = Series("", [k for k, _ in steps], [delta for _, delta in steps], "steps", 10)
    plot = Plot(
        "delta(k), in the order tried", "clusters k", "delta(k)", [way, *points], x_log=True,
        across=[(1.0, "wanted")], upright=[(result.n_clusters, "chosen")],
        x_ticks=_ticks([k for k, _ in steps]),
    )  # fmt: skip
    return [
        element(
            "p",
            "delta(k) is how far patches lie from the mean of their cluster, in units of what noise alone "
            "would do: above 1 there are too few clusters, below 1 too many. "
            f"Secants find 1 in {len(steps)} steps, at k = {result.n_clusters:,}.",
        ),
        element("div", plot.to_figure(), class_="plots"),
    ]


def _ticks(values: list[int]) -> list[float]:
    """Return round numbers on a logarithmic axis."""
    low, high = min(values) / 1.3, max(values) * 1.3
    round_ones = [m * 10.0**e for e in range(9) for m in (1, 1.5, 2, 3, 5, 7)]
    return [tick for tick in round_ones if low <= tick <= high] or [float(values[0])]


def _sure(result: GSFResult) -> Child:
    fidelities, errors = sure_curve(result.sure)
    used = result.fidelity
    inside = 0 < used < np.inf
    plot = Plot(
        "SURE against lambda", "λ, the weight of the noisy picture", "estimated error, in σ²",
        [Series("SURE", fidelities.tolist(), errors.tolist(), "faint")], x_log=True,
        upright=[(used, "λ*, least error")] if inside else [],
        across=[(1.0, "the noisy picture")],
        x_ticks=[10.0**e for e in range(-6, 9) if fidelities[0] <= 10.0**e <= fidelities[-1]],
    )  # fmt: skip
    lowest = result.sure(used) / result.sure.sigma**2 if np.isfinite(used) else 1.0
    words = (
        f"λ = {used:.3g}" if inside else "λ = 0: the average alone" if used == 0 else "all of it"
    )
    return [
        element(
            "p",
            "At last a little of the noisy picture may be blended in, λ of it. Stein's estimate (SURE) "
            f"tells the error without the clean picture: it is least at {words}, where "
            f"{100 * lowest:.1f} % of the noise's energy is left.",
        ),
        element("div", plot.to_figure(), class_="plots"),
    ]


def _outcome(learned: Learned, shown: Range) -> Child:
    result = learned.result
    noise = Range(-3 * result.sigma, 3 * result.sigma)
    removed = np.asarray(learned.noisy, np.float32) - np.asarray(result.image, np.float32)
    panels = [
        Panel("noisy", webp_uri(shown(learned.noisy)), f"σ {result.sigma:.3g}"),
        Panel("result", webp_uri(shown(result.image)), f"λ {result.fidelity:.3g}"),
        Panel("first pass", webp_uri(shown(result.pilot)), f"{result.n_clusters:,} clusters"),
        Panel(
            "second pass", webp_uri(shown(result.average)), f"{result.refined_clusters:,} clusters"
        ),
        Panel("removed", webp_uri(noise(removed)), "black and white are 3σ"),
    ]
    height, width = learned.noisy.shape[:2]
    return [
        element(
            "p",
            "The first pass learns clusters from the noisy picture, the second from what the first made "
            "of it, with more of them; both average noisy patches.",
        ),
        strip(
            "The part that was learned from",
            panels,
            ratio=float(np.clip(width / height, 0.4, 3.0)),
            large=True,
        ),
    ]


def _around(place: tuple[int, int], radius: int, shape: tuple[int, ...]) -> tuple[slice, slice]:
    y, x = (
        slice(max(p - radius, 0), min(p + radius + 1, size))
        for p, size in zip(place, shape[:2], strict=True)
    )
    return y, x


def _contrast(pixels: Array) -> Range:
    """Return a range for a small part: plain ground in the dark would be black."""
    low, high = np.nanquantile(np.asarray(pixels, np.float32), [0.005, 0.995])
    return Range(float(low), float(high))


def _marked(pixels: Array, centre: tuple[int, int]) -> Array:
    """Return the pixels in colour, with an orange frame around the patch in the middle."""
    colour = np.array(
        pixels if pixels.ndim == 3 else np.repeat(pixels[..., np.newaxis], 3, axis=-1)
    )
    reach = PATCH // 2 + 1
    y, x = _around(centre, reach, colour.shape)
    inner = colour[max(y.start, 0) : y.stop, max(x.start, 0) : x.stop][1:-1, 1:-1].copy()
    colour[y, x] = (1.0, 0.55, 0.1)
    colour[y.start + 1 : y.stop - 1, x.start + 1 : x.stop - 1] = inner
    return colour


def _heat(values: Array, low: float | None = None, high: float | None = None) -> Array:
    """Return values as colours, dark to bright; all but a hundredth in range if none is given."""
    require_matplotlib()
    from matplotlib import colormaps

    bottom, top = np.quantile(values, [0.01, 0.99]) if low is None or high is None else (low, high)
    scaled = np.clip((values - bottom) / ((top - bottom) or 1.0), 0.0, 1.0)
    return np.asarray(colormaps["magma"](scaled**0.4 if low is not None else scaled))[..., :3]


def _change(values: Array) -> Array:
    """Return gains and losses as colours, white where nothing changed."""
    require_matplotlib()
    from matplotlib import colormaps

    limit = float(np.quantile(np.abs(values), 0.995)) or 1.0
    return np.asarray(colormaps["PuOr_r"](0.5 - np.clip(values / limit, -1, 1) / 2))[..., :3]


def _span(values: Array) -> str:
    low, high = np.quantile(values, [0.01, 0.99])
    return f"{low:.2g} to {high:.2g}" if high < 100 else f"{low:.0f} to {high:.0f}"


def _effective(weights: Array) -> float:
    known = weights[weights > 0]
    return float(np.exp(-np.sum(known * np.log(known))))


def _foot() -> Child:
    return element(
        "p",
        "Chan, Zickler, Lu, Understanding symmetric smoothing filters: a Gaussian mixture model "
        "perspective, IEEE Trans. Image Processing 2017, doi:10.1109/TIP.2017.2731208. "
        "Keys on a picture: + and - zoom, arrows move, 0 shows all of it.",
    )

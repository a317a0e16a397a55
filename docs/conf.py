"""How the documentation is built: `make docs`, without network and without warnings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from jinja2 import Environment
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import command_line  # noqa: E402

import symsmooth  # noqa: E402

project = "symsmooth"
author = "the symsmooth developers"
copyright = "the symsmooth developers, BSD-3-Clause"
version = release = symsmooth.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "offline_math",
    "plain_docstrings",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "reproduction.md", "examples"]
nitpicky = True
highlight_language = "none"

# Markdown.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# The reference.
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say the types, with shapes and units
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
add_module_names = False

# The gallery runs in the build.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("themed_figures.scrape",),
    "reset_modules": ("themed_figures.reset",),
    "backreferences_dir": "api/backreferences",
    "doc_module": ("symsmooth",),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 60,
    "write_computation_times": False,
    "download_all_examples": False,
    "thumbnail_size": (800, 560),
    "plot_gallery": "True",
}

# The pages: all they load is beside them.
html_theme = "pydata_sphinx_theme"
html_title = "symsmooth"
html_static_path = ["_static"]
html_css_files = ["symsmooth.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "symsmooth"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "primary_sidebar_end": [],  # no place for advertisements
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "start": [], "which": []}
copybutton_exclude = ".linenos, .gp, .go, .c1, .c"

# Pages that depend on what there is: Jinja in these alone.
CONDITIONAL = ("api/index", "report", "commands")


def render(app: Sphinx, page: str, source: list[str]) -> None:
    """Fill in what depends on the package and on the files beside the pages."""
    if page in CONDITIONAL:
        known = {
            "measured": (HERE / "reproduction.md").exists(),
            "commands": command_line.commands(),
            "methods": command_line.methods(),
        }
        source[0] = Environment().from_string(source[0]).render(known)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect what is above."""
    app.connect("source-read", render)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

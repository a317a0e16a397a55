"""Building blocks of the HTML pages we write: each page is one file that needs no network.

- ``page``: elements as escaped strings; the shell: header, contents, sections, light and dark; tables;
- ``plots``: lines as SVG inside the page, in the page's colours;
- ``pictures``: what a screen can show of pictures; strips of them with linked zoom and a divider;
- ``compare``: methods side by side.

``style.css`` and ``viewer.js`` are put into every page.  Only ``compare`` knows of denoising.
"""

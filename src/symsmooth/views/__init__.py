"""Pages about one picture: methods compared on it, and what GSF learned from it.

- ``display``: numbers -> what a screen shows: ranges, sizes, bytes;
- ``compare``: results of several methods -> one page;
- ``explain``: one picture -> what the mixture learned; ``explain_page`` draws it.

They take arrays, (height, width) or (height, width, channels), and return HTML; files and methods are
the caller's.
"""

"""Read images with all their metadata, and write them back as they came.

``formats`` is the list of formats, a record each, and reads and writes files by it; a module each does it.
``regions`` reads and writes what does not fit into memory, box by box.

The public names are listed in ``__init__.pyi`` and imported when they are first used: the list of formats
can be asked without NumPy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

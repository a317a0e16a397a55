"""The napari plug-in: a widget that denoises a layer.

``napari.yaml`` says what there is.  napari, magicgui and Qt are imported by ``controls`` and ``widget``
alone, which napari asks for when the widget is opened; ``commands`` imports napari when it is called.
"""

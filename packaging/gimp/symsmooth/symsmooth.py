#!/usr/bin/env python3
"""Denoise the selected layer in GIMP 3, as a new layer above it.

Copy the folder of this file into GIMP's plug-ins folder (Preferences, Folders, Plug-ins) and make the file
executable.  It runs the program ``symsmooth``, which must be on the PATH.  Not tried with GIMP yet.
SPDX-License-Identifier: BSD-3-Clause
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import gi

gi.require_version("Gimp", "3.0")
from gi.repository import Gimp, Gio, GLib  # noqa: E402

NAME = "symsmooth-denoise"


def denoise(procedure, run_mode, image, drawables, config, data):
    """Save the layer as a TIFF, run the program, load what came back."""
    layer = drawables[0]
    with tempfile.TemporaryDirectory() as folder:
        noisy, clean = Path(folder) / "noisy.tif", Path(folder) / "clean.tif"
        alone = Gimp.Image.new_with_precision(
            layer.get_width(), layer.get_height(), image.get_base_type(), image.get_precision()
        )
        alone.insert_layer(Gimp.Layer.new_from_drawable(layer, alone), None, 0)
        quiet = Gimp.RunMode.NONINTERACTIVE
        Gimp.file_save(quiet, alone, Gio.File.new_for_path(str(noisy)), None)
        alone.delete()
        command = ["symsmooth", "denoise", str(noisy), "-o", str(clean), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            error = GLib.Error.new_literal(Gimp.PlugIn.error_quark(), done.stderr.strip(), 0)
            return procedure.new_return_values(Gimp.PDBStatusType.EXECUTION_ERROR, error)
        made = Gimp.file_load_layer(quiet, image, Gio.File.new_for_path(str(clean)))
    image.undo_group_start()
    made.set_name(f"{layer.get_name()}, denoised")
    image.insert_layer(made, layer.get_parent(), image.get_item_position(layer))
    _, x, y = layer.get_offsets()
    made.set_offsets(x, y)
    image.undo_group_end()
    Gimp.displays_flush()
    return procedure.new_return_values(Gimp.PDBStatusType.SUCCESS, GLib.Error())


class Symsmooth(Gimp.PlugIn):
    """What GIMP asks a plug-in."""

    def do_query_procedures(self):
        """Return the names of what it can do."""
        return [NAME]

    def do_create_procedure(self, name):
        """Describe it."""
        procedure = Gimp.ImageProcedure.new(self, name, Gimp.PDBProcType.PLUGIN, denoise, None)
        procedure.set_image_types("RGB*, GRAY*")
        procedure.set_sensitivity_mask(Gimp.ProcedureSensitivityMask.DRAWABLE)
        procedure.set_menu_label("Denoise (symsmooth)")
        procedure.add_menu_path("<Image>/Filters/Enhance/")
        procedure.set_documentation("Denoise the layer", "Finds the noise and removes it", name)
        procedure.set_attribution("the symsmooth developers", "BSD-3-Clause", "2026")
        return procedure


Gimp.main(Symsmooth.__gtype__, sys.argv)

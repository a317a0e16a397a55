"""Denoise the image that is loaded in Siril (1.4 or newer), with undo.

Copy this file into one of Siril's script folders.  For linear data, before stretching.
SPDX-License-Identifier: BSD-3-Clause
"""

import numpy as np
import sirilpy

STRENGTH = (
    0.8  # 1 removes all that is taken for noise; below 1 is the careful choice for faint stars
)
QUALITY = "balanced"  # preview, fast, balanced, best


def main() -> None:
    """Take the pixels, denoise them, put them back."""
    sirilpy.ensure_installed("symsmooth")
    import symsmooth

    siril = sirilpy.SirilInterface()
    siril.connect()
    if not siril.is_image_loaded():
        siril.log("symsmooth: no image is loaded")
        return
    with siril.image_lock():
        pixels = siril.get_image_pixeldata()  # (y, x) or (channels, y, x)
        kind = pixels.dtype
        channel_axis = 0 if pixels.ndim == 3 else None
        siril.update_progress("symsmooth: denoising", -1)
        found = symsmooth.fit_denoise(
            pixels.astype(np.float32),
            quality=QUALITY,
            strength=STRENGTH,
            tone="linear",
            channel_axis=channel_axis,
        )
        denoised = found.image
        if kind.kind in "ui":
            limits = np.iinfo(kind)
            denoised = np.clip(np.rint(denoised), limits.min, limits.max)
        siril.undo_save_state(f"symsmooth {QUALITY}, strength {STRENGTH:g}")
        siril.set_image_pixeldata(np.ascontiguousarray(denoised.astype(kind)))
    siril.reset_progress()
    siril.log(f"symsmooth: {found.noise}")


if __name__ == "__main__":
    main()

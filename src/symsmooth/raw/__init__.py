"""Raw mosaics: one colour a pixel, as a sensor sees them, denoised before they are developed."""

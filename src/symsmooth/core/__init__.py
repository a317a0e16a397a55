"""What everything stands on: images, patches, blocks, threads.  Knows nothing of denoising methods."""

"""What GSF's mixture learns from a picture, on a page: ``learning`` finds it, ``page`` shows it."""

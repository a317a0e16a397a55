"""What people ask for: a file, a folder, a file larger than memory, a comparison.

The command line and the web page parse, show progress and print; what is done is here: ``run`` takes a
job and returns what came of it.  At the top nothing but the standard library is imported, so that
``symsmooth --help`` is instant.
"""

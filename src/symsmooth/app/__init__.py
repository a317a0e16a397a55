"""What people ask for: a file, a folder, a file larger than memory, a comparison.

The command line and the web page parse, show progress and print; what is done is here: ``run`` takes a
job and returns what came of it.  ``messages``, what is said, loads nothing else, for what must start at
once: help, completion, the server of the page.
"""

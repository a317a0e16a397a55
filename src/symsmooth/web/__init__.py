"""``symsmooth serve``: a page on this machine where pictures are dropped, denoised and looked at.

- ``server``: the address: who may ask for what, upload limits, files of visits; runs until Ctrl-C;
- ``app``: what the page shows (gradio); ``desk``: what its controls do;
- ``visits``: the files of one visitor, and nobody else's;
- ``runs``: work that waits for its turn, tells how far it is, and can be stopped;
- ``tasks``: what is done to a visitor's picture, through the same functions as the command line;
- ``examples``: pictures for those who have none at hand;
- ``words``: what is told, as HTML.

Nothing here is imported before ``symsmooth serve`` asks for it.
"""

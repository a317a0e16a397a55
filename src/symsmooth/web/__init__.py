"""``symsmooth serve``: a page on this machine where pictures are dropped, denoised and looked at.

- ``server``: puts all together at an address, until Ctrl-C or SIGTERM;
- ``guard``: who may ask for what; ``uploads``: what visitors send, and how much;
- ``sessions``: the files of one visitor, and nobody else's; how many there may be, how long they last;
- ``app``: what the page shows; ``handlers``: what its controls do.  These two alone know gradio;
- ``crew``: work that waits for its turn (``runs``) and is done in processes (``workers``, ``worker``);
- ``tasks``: what is done to a visitor's picture, through the same jobs as the command line;
- ``examples``: pictures for those who have none at hand;
- ``html``: messages and frames, as HTML.

Nothing here is imported before ``symsmooth serve`` asks for it.
"""

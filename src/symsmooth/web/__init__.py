"""``symsmooth serve``: a page on this machine where one person drops, denoises and looks at pictures.

- ``server``: puts all together at an address, until Ctrl-C or SIGTERM;
- ``guard``: which requests are for the page; ``handlers``: what is asked at each address, and sent there;
- ``sessions``: pictures, results and how far they are; ``settings``: what can be chosen, and what the
  controls say; ``controller``: what they do;
- ``pool``: work that waits for its turn and is done in processes, ``worker`` their body;
- ``tasks``: what these can do, with ``pictures`` (files as arrays, arrays as they are shown) and
  ``bridge``: jobs, noise and warnings of the application in words of the page;
- ``static``: the page itself, without a build step.

The server itself loads no NumPy: it starts at once and stays small.
"""

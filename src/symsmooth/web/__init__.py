"""``symsmooth serve``: a page on this machine where one person drops, denoises and looks at pictures.

- ``server``: puts all together at an address, until Ctrl-C or SIGTERM;
- ``guard``: which requests are for the page; ``handlers``: what is asked at each address; ``answers``:
  what is sent there; ``errors``: what cannot be done;
- ``sessions``: pictures, results and how far they are; ``settings``: what the controls say; ``catalogue``:
  what they offer; ``controller``: what they do;
- ``pool``: work that waits for its turn and is done in processes, ``worker`` their body;
- ``tasks``: what these can do: ``inspecting``, ``denoising``, ``comparing``, with ``arrays`` (files as they
  are shown), ``drawing``, ``examples``, and ``bridge``: all that is known of the application;
- ``static``: the page itself, without a build step.

The server itself loads no NumPy: it starts at once and stays small.
"""

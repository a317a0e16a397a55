"""``symsmooth serve``: a page on this machine where pictures are dropped, denoised and looked at.

- ``server``: puts all together at an address, until Ctrl-C or SIGTERM;
- ``guard``: who may ask, from where, and how much; ``handlers``: what is answered at each address;
- ``events``: what an open page receives; ``views``: which part of a picture an address means;
- ``sessions``: visits, how many there may be, how long they last; ``pictures``: what belongs to one;
- ``uploads``: what visitors send; ``noise_files``: noise models among it; ``settings``: what the controls
  say; ``catalogue``: what they offer;
- ``controller``: what is done for visitors; ``process_queue``: work that waits for its turn (``runs``) and
  is done in processes (``workers``, ``worker``);
- ``tasks``: what these processes can do: ``inspecting``, ``denoising``, ``first_look`` (at the part
  on the screen), ``mosaics`` (both for raw files), ``series`` (both for videos and joined pictures),
  ``blending``, ``comparing``, with ``drawing`` (how a picture is shown), ``examples``, and ``bridge``:
  the jobs, noise and progress of the command line;
- ``static``: the page itself, without a build step.

The server itself loads no NumPy: it starts at once and stays small.
"""

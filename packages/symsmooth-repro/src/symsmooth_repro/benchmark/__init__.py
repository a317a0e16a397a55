"""``symsmooth benchmark``: any folder of pictures, our methods and the peers that are installed.

- ``folders``: which pictures a folder holds, and which of them are pairs of noisy and clean;
- ``trials``: one noisy picture with what it should be and the noise it has;
- ``peers``: other people's denoisers, where they are installed;
- ``contestants``: one call of a denoiser, ours or a peer, with its time;
- ``measuring``: one measurement, alone in a process of its own;
- ``model``: what is asked, what was found; ``run``: plans, resumes, collects;
- ``tables``: Markdown, CSV and JSON.
"""

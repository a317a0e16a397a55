"""NL-Bayes: a Gaussian model for each group of similar patches, learned twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._kernels.bayes import bayes_tile
from ..channels import decorrelate, mix
from ..image import Array, Float, open_image
from ..noise import contrast, resolve_sigma
from ..tiles import Pool, Progress
from .groups import Search, filter_groups, from_planes, to_planes, whole_patches
P = dict(side1=5, step1=2, r1=17, n1=90, bias=1.0, flat=1.05, boost=True, side2=5,step2=2,r2=17,n2=60,m2=180,tau2=.1,trust=1.0, flat2=1.05)

def denoise_nl_bayes(image, sigma=None, *, channel_axis=None, mask=None, rng=None, workers=None, progress=None, **kw):
    p = {**P, **kw}
    picture = open_image(image, channel_axis, mask)
    sigma = resolve_sigma(picture, sigma)
    if sigma == 0.0:
        return picture.restore(picture.noisy)
    ratio = contrast(picture.noisy, sigma)
    transform = decorrelate(picture.noisy, sigma)
    least = max(p['side1'], p['side2'])
    noisy = to_planes(mix(picture.noisy, transform), least)/np.float32(sigma)
    s1 = Search(p['side1'], p['step1'], p['r1'], p['n1'], p['n1'], boost=p['boost'])
    s2 = Search(p['side2'], p['step2'], p['r2'], p['m2'], p['n2'], (p['tau2']*ratio)**2, boost=p['boost'])
    with Pool(workers, progress) as pool:
        whole = whole_patches(picture, p['side1'], least)
        none = np.empty((0,0), np.float32)
        def k1(planes, *g):
            bayes_tile(planes, none, *g[:3], 1, np.float32(p['flat']), np.float32(p['bias']), np.float32(1), *g[3:])
        pilot = filter_groups([noisy], noisy[:1], whole, s1, k1, np.ones(p['side1'], np.float32), pool, 'step 1')
        if p.get('only1'): return picture.restore(mix(from_planes(pilot*np.float32(sigma), picture.spatial), transform.T))
        def k2(planes, pilot, *g):
            bayes_tile(planes, pilot, *g[:3], planes.shape[0], np.float32(p['flat2']), np.float32(p['bias']), np.float32(p['trust']), *g[3:])
        whole = whole_patches(picture, p['side2'], least)
        final = filter_groups([noisy, pilot], pilot, whole, s2, k2, np.ones(p['side2'], np.float32), pool, 'step 2')
    return picture.restore(mix(from_planes(final*np.float32(sigma), picture.spatial), transform.T))

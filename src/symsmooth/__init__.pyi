from .baselines.bm3d import denoise_bm3d
from .baselines.epll import denoise_epll
from .baselines.glide import denoise_glide
from .baselines.nl_bayes import denoise_nl_bayes
from .baselines.ple import denoise_ple
from .core.parallel import Cancelled, stop_when
from .dask import denoise_blocks
from .filters.filters import denoise_bilateral, denoise_gaussian, denoise_lark, denoise_nlm
from .gsfw.denoise import DenoiseResult, denoise, denoise_frames, fit_denoise
from .gsfw.gsfw import GSFWResult, denoise_gsfw, fit_gsfw
from .io.noise_files import load_noise, save_noise
from .methods import METHODS
from .mixture.gsf import GSFResult, denoise_gsf, fit_gsf
from .noise import calibrate_noise, estimate_noise, estimate_sigma
from .raw.denoise import RawResult, denoise_raw, estimate_raw_noise, fit_denoise_raw

__version__: str

__all__ = [
    "METHODS",
    "Cancelled",
    "DenoiseResult",
    "GSFResult",
    "GSFWResult",
    "RawResult",
    "__version__",
    "calibrate_noise",
    "denoise",
    "denoise_bilateral",
    "denoise_blocks",
    "denoise_bm3d",
    "denoise_epll",
    "denoise_frames",
    "denoise_gaussian",
    "denoise_glide",
    "denoise_gsf",
    "denoise_gsfw",
    "denoise_lark",
    "denoise_nl_bayes",
    "denoise_nlm",
    "denoise_ple",
    "denoise_raw",
    "estimate_noise",
    "estimate_raw_noise",
    "estimate_sigma",
    "fit_denoise",
    "fit_denoise_raw",
    "fit_gsf",
    "fit_gsfw",
    "load_noise",
    "save_noise",
    "stop_when",
]

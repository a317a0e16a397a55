#!/bin/sh
# Build with AddressSanitizer and UndefinedBehaviorSanitizer; run the tests of kernels and contracts with it.
#
# The package goes to an environment of its own; what it needs is taken from the one given.
set -eu
python=${1:?the Python of an environment with all that tests need}
there=build/sanitized
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
[ -x "$there/bin/python" ] || "$python" -m venv "$there"
PYTHONPATH=$site PATH=$(dirname "$python"):$PATH "$there/bin/python" -m pip install --quiet --no-deps --no-build-isolation \
  --force-reinstall -Ccmake.define.SYMSMOOTH_SANITIZE=ON -Cbuild-dir=build/sanitize .
preload="$(${CXX:-c++} -print-file-name=libasan.so) $(${CXX:-c++} -print-file-name=libstdc++.so)"
# Python itself leaks on purpose; --capture=sys leaves the sanitizers' own words alone.
ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$preload PYTHONPATH=$site "$there/bin/python" -m pytest -q --capture=sys \
  -p no:cacheprovider tests/native tests/mixture/test_em.py tests/gsfw/test_estimators.py \
  tests/filters/test_weights.py tests/baselines/test_groups.py tests/baselines/test_bm3d.py \
  tests/baselines/test_nl_bayes.py tests/baselines/test_patch_gmm.py tests/core/test_multiscale.py \
  tests/core/test_mixed.py \
  tests/noise/test_spectrum.py tests/noise/test_tone.py tests/test_contract.py

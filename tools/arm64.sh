#!/bin/sh
# Cross-compile for 64-bit ARM and run the tests of kernels there, under qemu (Debian or Ubuntu; some minutes).
#
# ARM's Python comes from the distribution and is unpacked under build/arm64, not installed; ARM's NumPy, SciPy,
# Pillow and hypothesis are the wheels of PyPI; all that is pure Python is taken from the environment given.
set -eu
python=$(realpath "${1:?the Python of an environment with all that tests need}" --no-symlinks)
here=$(pwd)/build/arm64
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$here/apt/lists/partial" "$here/apt/cache/archives/partial" "$here/root" "$here/wheels" "$here/pure"

missing=""
command -v aarch64-linux-gnu-g++ >/dev/null || missing="g++-aarch64-linux-gnu"
command -v qemu-aarch64 >/dev/null || missing="$missing qemu-user"
if [ -n "$missing" ]; then
  [ "$(id -u)" = 0 ] || { echo "make arm64 needs: sudo apt-get install $missing" >&2; exit 1; }
  apt-get install -y -q --no-install-recommends $missing >/dev/null
fi

if [ ! -x "$here/root/usr/bin/python$version" ]; then
  : >"$here/apt/status"
  arm="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists=$here/apt/lists
    -o Dir::Cache=$here/apt/cache -o Dir::State::status=$here/apt/status -o APT::Sandbox::User=root"
  apt-get $arm -q update >/dev/null 2>&1 || true # sources that know nothing of ARM
  apt-get $arm -q -y --no-install-recommends --download-only install \
    "python$version" "libpython$version-dev" libstdc++6 >/dev/null
  for package in "$here"/apt/cache/archives/*.deb; do dpkg -x "$package" "$here/root"; done
fi
[ -d "$here/site" ] || {
  "$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version "$version" --dest "$here/wheels" \
    --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 numpy scipy pillow hypothesis
  for wheel in "$here"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$here/site"; done
}
for name in pytest _pytest py.py pluggy iniconfig packaging pygments threadpoolctl.py sortedcontainers lazy_loader; do
  ln -sfn "$site/$name" "$here/pure/$name"
done

PATH=$(dirname "$python"):$PATH
cmake -S . -B "$here/build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CXX_FLAGS="-isystem $here/root/usr/include" \
  -DPython_EXECUTABLE="$python" -DPython_INCLUDE_DIR="$here/root/usr/include/python$version" >/dev/null
cmake --build "$here/build" >/dev/null
rm -rf "$here/package" && mkdir "$here/package" && cp -r src/symsmooth "$here/package"
cp "$here"/build/_native*.so "$here/package/symsmooth/_native.so"

# Tests that start Python anew cannot: there is no such processor here.
PYTHONPATH="$here/package:$here/site:$here/pure" PYTHONDONTWRITEBYTECODE=1 qemu-aarch64 -L "$here/root" \
  "$here/root/usr/bin/python$version" -m pytest -q -p no:cacheprovider \
  -k "not chosen and not not_here and not published and not skipping" \
  tests/native tests/mixture/test_em.py tests/gsfw/test_estimators.py tests/filters/test_weights.py \
  tests/baselines/test_groups.py tests/baselines/test_nl_bayes.py tests/baselines/test_patch_gmm.py::test_kernels_equal_their_twins

#!/bin/sh
# Check the compiled core: its layout, that it compiles without a warning, and that _native.pyi is its stub.
#
# With --write the stub is written instead of compared.  It is made by nanobind, of which the Makefile says the version.
set -eu
python=${1:?the Python of an environment with all that builds and tests need}
native=src/symsmooth/native stub=src/symsmooth/_native.pyi there=build/check
PATH=$(dirname "$python"):$PATH
cmake -S . -B "$there" -G Ninja -DPython_EXECUTABLE="$python" -DSYMSMOOTH_WERROR=ON >/dev/null
cmake --build "$there" -- --quiet
{
  echo '# Made by `make stub`: do not edit.'
  "$python" -m nanobind.stubgen -q -i "$there" -m _native -O "$there" && cat "$there/_native.pyi"
} >"$there/stub.pyi"
if [ "${2:-}" = --write ]; then
  cp "$there/stub.pyi" "$stub"
else
  diff -u "$stub" "$there/stub.pyi" || { echo "$stub is out of date: run make stub" >&2; exit 1; }
  clang-format --dry-run --Werror "$native"/*.?pp || { echo "the layout of $native is not clang-format's: run make format" >&2; exit 1; }
fi

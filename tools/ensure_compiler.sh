#!/bin/sh
# Make sure that there is a C++ compiler: install one if that is allowed, else say in one line how.
for compiler in "${CXX:-c++}" g++ clang++; do
  command -v "$compiler" >/dev/null 2>&1 && exit 0
done
if command -v apt-get >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ]; then
    echo "no C++ compiler found: installing g++"
    { apt-get update -q && apt-get install -y -q --no-install-recommends g++ libc6-dev; } >/dev/null 2>&1 && exit 0
  fi
  how="sudo apt-get install g++"
elif command -v dnf >/dev/null 2>&1; then how="sudo dnf install gcc-c++"
elif command -v pacman >/dev/null 2>&1; then how="sudo pacman -S gcc"
elif command -v apk >/dev/null 2>&1; then how="apk add g++"
elif [ "$(uname)" = Darwin ]; then how="xcode-select --install"
else echo "symsmooth is built from C++ and there is no compiler here; install GCC or Clang" >&2; exit 1
fi
echo "symsmooth is built from C++ and there is no compiler here; run: $how" >&2
exit 1

#!/bin/sh
# Install each file of dist/ into a fresh environment and try it there; a wheel that is for another Python is
# left out, and said so.  Packages that need symsmooth take that of dist/.  Usage: try_dist.sh [PYTHON ...]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root/tools/smoke.py" "$work"
for python in "${@:-python3}"; do
  for file in "$root"/dist/*; do
    rm -rf "$work/env"
    "$python" -m venv "$work/env"
    case "$file" in *.whl) kind=--wheel ;; *) kind= ;; esac
    echo "$("$python" --version), $(basename "$file")"
    if [ -n "$kind" ] && ! "$work/env/bin/pip" install --quiet --dry-run --no-deps "$file" >/dev/null 2>&1; then
      echo "  is for another Python"
      continue
    fi
    "$work/env/bin/pip" install --quiet --disable-pip-version-check --find-links "$root/dist" "$file"
    (cd "$work" && "$work/env/bin/python" smoke.py $kind)
  done
done

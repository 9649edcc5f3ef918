#!/bin/sh
# Install the service into a new virtual environment: deploy/install.sh FOLDER, in a checkout.
# Every downloaded package is a wheel whose hash is known; `make requirements` writes the hashes.
set -eu
target=$1
build=$(mktemp -d)
trap 'rm -r "$build"' EXIT
hashed="--quiet --no-deps --only-binary :all: --require-hashes"
export PIP_DISABLE_PIP_VERSION_CHECK=1

python3 -m venv "$build/venv"
"$build/venv/bin/python" -m pip install $hashed --requirement deploy/build-requirements.txt
"$build/venv/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$build" .

python3 -m venv "$target"
"$target/bin/python" -m pip install $hashed --requirement deploy/requirements.txt
"$target/bin/python" -m pip install --quiet --no-deps --no-index "$build"/multiplay-*.whl
"$target/bin/python" -m pip check

#!/bin/sh
# build_archive.sh PYTHON WHEEL: writes dist/kubectl-placement_OS_ARCH.tar.gz for the platform of this machine. The archive
# has a program for `kubectl placement` and all that it needs, Python included.
set -eu
python=$1 wheel=$2
environment=build/krew-env
output=build/krew
"$python" -m venv --clear "$environment"
pip="$environment/bin/python -m pip --disable-pip-version-check --quiet"
$pip install --require-hashes --requirement requirements.lock
$pip install --require-hashes --requirement requirements-krew.lock
$pip install --no-deps --no-index "$wheel"
rm -rf "$output"
mkdir -p "$output"
printf 'from extender.cli.live.kubectl_plugin import main\nmain()\n' >"$output/program.py"
# Modules that are imported on demand, and the files of the pages, are not found by themselves.
"$environment/bin/python" -m PyInstaller --noconfirm --log-level ERROR --name kubectl-placement \
    --collect-submodules extender --collect-data extender --copy-metadata kube-scheduler-extender \
    --distpath "$output" --workpath "$output/work" --specpath "$output" "$output/program.py"
cp LICENSE "$output/kubectl-placement/LICENSE"
system=$(uname -s | tr '[:upper:]' '[:lower:]')
case $(uname -m) in x86_64) machine=amd64 ;; aarch64 | arm64) machine=arm64 ;; *) machine=$(uname -m) ;; esac
archive=dist/kubectl-placement_${system}_${machine}.tar.gz
tar -C "$output" -czf "$archive" kubectl-placement
echo "$archive"

#!/bin/sh
# try.sh PYTHON LOCK FILE...: installs each FILE, a wheel or an sdist, into a new environment with exactly what LOCK
# names (and, to build an sdist, the builder that requirements-image.lock names), and uses what was installed, from a
# folder that has nothing of the tree.
set -eu
python=$1 lock=$PWD/$2
shift 2
tree=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
want="extender $("$python" -c 'import extender; print(extender.__version__)')"
for file; do
    rm -rf "$scratch/env"
    "$python" -m venv "$scratch/env"
    pip="$scratch/env/bin/python -m pip --disable-pip-version-check --quiet"
    $pip install --require-hashes --requirement "$lock"
    case $file in *.tar.gz) $pip install --require-hashes --requirement "$tree/requirements-image.lock" ;; esac
    $pip install --no-deps --no-index --no-build-isolation "$tree/$file"
    cd "$scratch"
    got=$(env/bin/extender --version)
    [ "$got" = "$want" ] || { echo "$file: it says \"$got\", want \"$want\"" >&2; exit 1; }
    env/bin/extender explain -f "$tree/docs/examples/demo/cluster.yaml" shop/api-7f4b-g3ypl | grep -q "general-a3 is best"
    env/bin/extender ui -f "$tree/docs/examples/demo/cluster.yaml" --port 0 --no-browser >ui.log &
    ui=$!
    url=$(env/bin/python -c 'import sys, time; [time.sleep(0.2) for _ in range(150) if not open("ui.log").read()]; print(open("ui.log").read().split()[-1])')
    env/bin/python -c 'import sys, urllib.request as r; [r.urlopen(sys.argv[1] + p).read() for p in ("", "waiting", "static/cluster.js", "static/style.css")]' "$url"
    kill "$ui"
    env/bin/extender demo --speed 20 --pods 5 | grep -q "Summary"
    [ -f "$(env/bin/python -c 'import extender; print(extender.__path__[0])')/py.typed" ]
    env/bin/python -m pip check >/dev/null
    cd "$tree"
    echo "$file: installs, explains, shows pages, demonstrates"
done

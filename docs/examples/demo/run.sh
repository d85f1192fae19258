#!/bin/sh
# Demonstrates explain, simulate and serve on an example cluster. Needs `extender` on the PATH (`make demo` sets it);
# removes its temporary files.
set -eu

cd "$(dirname "$0")"
scratch=$(mktemp -d)
server=
stop() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 130' INT TERM

title() { printf '\n\n# %s\n' "$1"; }
show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

# fetch PATH [FILE]: GET, or POST with the JSON of the file; uses curl if it is installed.
fetch() {
    if command -v curl >/dev/null 2>&1; then
        set -- "$1" ${2+--header "Content-Type: application/json" --data "@$2"}
        path=$1
        shift
        curl --silent --show-error --fail --noproxy '*' "$@" "$address$path"
    else
        python -c 'import sys, urllib.request as r
r.install_opener(r.build_opener(r.ProxyHandler({})))
body = open(sys.argv[2], "rb").read() if len(sys.argv) > 2 else None
print(r.urlopen(r.Request(sys.argv[1], body, {"Content-Type": "application/json"})).read().decode())' "$address$1" ${2+"$2"}
    fi
}

title "Explain a pod that fits: the best node and its scores"
show extender explain -f cluster.yaml shop/api-7f4b-g3ypl

title "Explain a pod that does not fit: the plugins that reject it, and what would help"
show extender explain -f cluster.yaml shop/frontend-5d8c-k7wzd

title "Simulate the scheduling of all pending pods on a copy of the cluster"
show extender simulate -f cluster.yaml --seed 1

title "The extender verbs over HTTP, as kube-scheduler calls them"
port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
address=http://127.0.0.1:$port
printf '\n$ extender serve -f cluster.yaml --port %s &\n' "$port"
extender serve -f cluster.yaml --port "$port" >"$scratch/log" 2>&1 &
server=$!

tries=0
until fetch /readyz >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 150 ] || ! kill -0 "$server" 2>/dev/null; then
        echo "extender serve did not become ready; its log:" >&2
        cat "$scratch/log" >&2
        exit 1
    fi
    sleep 0.2
done

show cat body.json
for verb in filter prioritize; do
    printf '\n$ curl --json @body.json %s/%s\n' "$address" "$verb"
    fetch "/$verb" body.json
    echo
done

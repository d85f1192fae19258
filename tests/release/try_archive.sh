#!/bin/sh
# try_archive.sh ARCHIVE: unpacks the archive of the kubectl plugin, and uses it without any Python of this machine.
set -eu
archive=$PWD/$1
tree=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -C "$scratch" -xzf "$archive"
cd "$scratch"
# krew runs the program by a link.
ln -s "$scratch/kubectl-placement/kubectl-placement" plugin
run="env -i PATH=/usr/bin:/bin HOME=$scratch $scratch/plugin"
$run --help | grep -q "kubectl placement why"
$run why -f "$tree/docs/examples/demo/cluster.yaml" shop/api-7f4b-g3ypl | grep -q "general-a3 is best"
$run what-if -f "$tree/docs/examples/demo/cluster.yaml" --drain general-a1 2>/dev/null | grep -q "are left without a node"
$run rebalance -f "$tree/docs/examples/demo/cluster.yaml" --empty 2>/dev/null | grep -q "can be emptied"
echo "$(basename "$archive"): explains, answers what-if and plans moves without an installed Python"

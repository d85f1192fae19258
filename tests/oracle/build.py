"""Builds the oracle for all Kubernetes minors: `make oracle`. Takes a minute or two per minor the first time."""

from tests.go_build import main
from tests.oracle.programs import MODULES

if __name__ == "__main__":
    for module in MODULES.values():
        print(f"Kubernetes {module.version()}", flush=True)
        main(module, {})

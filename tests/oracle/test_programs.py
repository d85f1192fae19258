"""The oracle's Go module: one version per minor, and a new build after each change of its code."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.oracle.programs import MODULES


def test_each_minor_pins_its_kubernetes_and_builds_into_its_own_folder() -> None:
    assert {minor: module.version() for minor, module in MODULES.items()} == {"1.36": "v1.36.3", "1.37": "v1.37.2"}
    assert len({module.cache_folder() for module in MODULES.values()}) == 2


@pytest.mark.parametrize("changed", ["kubernetes-1.37.mod", "kubernetes-1.37.sum", "evaluate.go"])
def test_a_change_of_the_pins_or_of_the_code_needs_a_new_build(tmp_path: Path, changed: str) -> None:
    folder = tmp_path / "program"
    shutil.copytree(MODULES["1.37"].folder, folder)
    module = replace(MODULES["1.37"], folder=folder)
    before = module.fingerprint()
    assert before == MODULES["1.37"].fingerprint()

    with (folder / changed).open("a") as file:
        file.write("\n")
    assert module.fingerprint() != before


def test_the_pins_of_another_minor_need_no_new_build(tmp_path: Path) -> None:
    folder = tmp_path / "program"
    shutil.copytree(MODULES["1.37"].folder, folder)
    with (folder / "go.mod").open("a") as file:
        file.write("\n")
    assert replace(MODULES["1.37"], folder=folder).fingerprint() == MODULES["1.37"].fingerprint()

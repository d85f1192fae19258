"""The Kubernetes versions of the control plane; these tests start no program."""

import pytest

from tests.controlplane.programs import select_module


def test_the_default_is_the_newest_version() -> None:
    assert select_module("").version() == "v1.37.2"
    assert select_module("").mod_file == "kubernetes-1.37.mod"


def test_a_version_selects_its_pins_and_its_folder() -> None:
    module = select_module("1.36.3")
    assert (module.version(), module.mod_file) == ("v1.36.3", "go.mod")
    assert module.cache_folder().name == "v1.36.3"


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^KUBERNETES=1\.35\.0: want one of 1\.36\.3, 1\.37\.2$"):
        select_module("1.35.0")

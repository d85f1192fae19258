"""The lock files: everything pyproject.toml asks for is pinned with hashes, at or above the floors we rely on."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = PYPROJECT["project"]["dependencies"]
DEVELOPMENT = PYPROJECT["dependency-groups"]["dev"]
GROUPS = ("image", "docs", "scan")
LOCKS = ("requirements.lock", "requirements-dev.lock", *(f"requirements-{group}.lock" for group in GROUPS))

# Older ones have published vulnerabilities in what we use them for; those that are not locked (yet) are passed over.
FLOORS = {"starlette": "1.3.1", "h11": "0.16", "urllib3": "2.6.3", "aiohttp": "3.13.5"}
# The machines the locks are for; on others they may work, but nothing checks it.
ENVIRONMENTS = [
    {"python_version": version, "python_full_version": f"{version}.0", "sys_platform": platform}
    for version in ("3.11", "3.12", "3.13")
    for platform in ("linux", "darwin")
]


@dataclass(frozen=True, slots=True)
class Pin:
    """One entry of a lock file."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def version(self) -> Version:
        """The one version the entry allows."""
        (specifier,) = self.requirement.specifier
        assert specifier.operator == "=="
        return Version(specifier.version)

    def applies(self, environment: dict[str, str]) -> bool:
        """Whether the entry is installed on such a machine."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate({"platform_python_implementation": "CPython", **environment})


def pins(lock: str) -> list[Pin]:
    """The entries of a lock file, comments left out, continued lines joined."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / lock).read_text())
    entries = text.replace("\\\n", " ").splitlines()
    found = []
    for entry in filter(str.strip, entries):
        requirement, *hashes = re.split(r"\s--hash=", entry)
        found.append(Pin(Requirement(requirement.strip()), tuple(word.strip() for word in hashes)))
    return found


def pinned(lock: str, name: str, environment: dict[str, str]) -> list[Pin]:
    """The entries for one distribution that apply on such a machine."""
    wanted = canonicalize_name(name)
    return [pin for pin in pins(lock) if canonicalize_name(pin.requirement.name) == wanted and pin.applies(environment)]


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", RUNTIME),
        ("requirements-dev.lock", RUNTIME + DEVELOPMENT),
        *((f"requirements-{group}.lock", PYPROJECT["dependency-groups"][group]) for group in GROUPS),
    ],
    ids=[
        "the runtime lock has the runtime dependencies",
        "the development lock has both",
        *(f"the {group} lock has its tools" for group in GROUPS),
    ],
)
def test_every_dependency_is_pinned_once_for_every_python_and_system(lock: str, wanted: list[str]) -> None:
    wrong = []
    for environment in ENVIRONMENTS:
        for requirement in map(Requirement, wanted):
            found = pinned(lock, requirement.name, environment)
            if len(found) != 1 or found[0].version not in requirement.specifier:
                wrong.append(f"{requirement} on {environment}: {[str(pin.requirement) for pin in found]}")
    assert wrong == [], "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_sha256_hashes(lock: str) -> None:
    entries = pins(lock)
    assert len(entries) >= len(RUNTIME)
    bad = [
        str(pin.requirement)
        for pin in entries
        if not pin.hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in pin.hashes)
    ]
    assert bad == []


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("name", FLOORS)
def test_a_locked_version_is_not_below_its_floor(lock: str, name: str) -> None:
    below = [str(pin.requirement) for pin in pins(lock) if canonicalize_name(pin.requirement.name) == name
             and pin.version < Version(FLOORS[name])]  # fmt: skip
    assert below == []


@pytest.mark.parametrize("name", ["starlette", "h11", "urllib3", "aiohttp"])
def test_the_floors_speak_of_what_is_locked(name: str) -> None:
    assert name in {canonicalize_name(pin.requirement.name) for pin in pins("requirements.lock")}


def test_both_locks_agree_on_versions() -> None:
    runtime = {str(pin.requirement) for pin in pins("requirements.lock")}
    assert runtime - {str(pin.requirement) for pin in pins("requirements-dev.lock")} == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_index_no_host_and_no_path(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert re.findall(r"(?m)^--.*|https?:|file:|\S*@\S*|(?<![\w.])/\w\S*", text) == []

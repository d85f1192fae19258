"""The lock files pin all dependencies of pyproject.toml with hashes, at or above the minimum versions."""

import importlib.metadata
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
GROUPS = ("image", "docs", "scan", "krew")
LOCKS = ("requirements.lock", "requirements-dev.lock", *(f"requirements-{group}.lock" for group in GROUPS))

# Older versions have published vulnerabilities that concern us. Packages that are not locked are ignored.
MINIMUM_VERSIONS = {"starlette": "1.3.1", "h11": "0.16", "urllib3": "2.6.3", "aiohttp": "3.13.5"}
# The supported environments of the lock files.
ENVIRONMENTS = [
    {"python_version": version, "python_full_version": f"{version}.0", "sys_platform": platform}
    for version in ("3.11", "3.12", "3.13", "3.14")
    for platform in ("linux", "darwin")
]


@dataclass(frozen=True, slots=True)
class Pin:
    """An entry of a lock file."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def version(self) -> Version:
        """The pinned version."""
        (specifier,) = self.requirement.specifier
        assert specifier.operator == "=="
        return Version(specifier.version)

    def applies(self, environment: dict[str, str]) -> bool:
        """Return whether the entry is installed in an environment."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate({"platform_python_implementation": "CPython", **environment})


def read_pins(lock: str) -> list[Pin]:
    """Return the entries of a lock file."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / lock).read_text())
    entries = text.replace("\\\n", " ").splitlines()
    pins = []
    for entry in filter(str.strip, entries):
        requirement, *hashes = re.split(r"\s--hash=", entry)
        pins.append(Pin(Requirement(requirement.strip()), tuple(word.strip() for word in hashes)))
    return pins


def find_pins(lock: str, name: str, environment: dict[str, str]) -> list[Pin]:
    """Return the entries of a distribution that apply to an environment."""
    canonical = canonicalize_name(name)
    return [
        pin
        for pin in read_pins(lock)
        if canonicalize_name(pin.requirement.name) == canonical and pin.applies(environment)
    ]


@pytest.mark.parametrize(
    ("lock", "requirements"),
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
def test_every_dependency_is_pinned_once_for_every_python_and_system(lock: str, requirements: list[str]) -> None:
    errors = []
    for environment in ENVIRONMENTS:
        for requirement in map(Requirement, requirements):
            pins = find_pins(lock, requirement.name, environment)
            if len(pins) != 1 or pins[0].version not in requirement.specifier:
                errors.append(f"{requirement} on {environment}: {[str(pin.requirement) for pin in pins]}")
    assert errors == [], "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_sha256_hashes(lock: str) -> None:
    entries = read_pins(lock)
    assert entries
    unhashed = [
        str(pin.requirement)
        for pin in entries
        if not pin.hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in pin.hashes)
    ]
    assert unhashed == []


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("name", MINIMUM_VERSIONS)
def test_a_locked_version_is_not_below_its_minimum(lock: str, name: str) -> None:
    outdated = [str(pin.requirement) for pin in read_pins(lock) if canonicalize_name(pin.requirement.name) == name
             and pin.version < Version(MINIMUM_VERSIONS[name])]  # fmt: skip
    assert outdated == []


@pytest.mark.parametrize("name", ["starlette", "h11", "urllib3", "aiohttp"])
def test_every_minimum_version_is_of_a_locked_package(name: str) -> None:
    assert name in {canonicalize_name(pin.requirement.name) for pin in read_pins("requirements.lock")}


def test_both_locks_agree_on_versions() -> None:
    runtime = {str(pin.requirement) for pin in read_pins("requirements.lock")}
    assert runtime - {str(pin.requirement) for pin in read_pins("requirements-dev.lock")} == set()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_contains_no_index_url_or_path(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert re.findall(r"(?m)^--.*|https?:|file:|\S*@\S*|(?<![\w.])/\w\S*", text) == []


def test_a_pin_names_the_extras_that_installed_packages_require() -> None:
    """Otherwise pip takes the newest version for the requirement with extras, and has no hash for it."""
    extras = {
        canonicalize_name(pin.requirement.name): pin.requirement.extras for pin in read_pins("requirements-dev.lock")
    }
    missing = [
        f"{distribution.name} requires {requirement}"
        for distribution in importlib.metadata.distributions()
        for requirement in map(Requirement, distribution.requires or ())
        if canonicalize_name(distribution.name) in extras
        and (requirement.marker is None or requirement.marker.evaluate({"extra": ""}))
        and not requirement.extras <= extras.get(canonicalize_name(requirement.name), set())
    ]
    assert missing == []

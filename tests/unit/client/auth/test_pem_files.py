"""The private files of certificates and keys: bounded, removed, and written again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from extender.client.auth.pem_files import write_pem_file


def test_the_same_certificate_has_one_private_file() -> None:
    file = Path(write_pem_file(b"one"))
    assert write_pem_file(b"one") == str(file)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"one", 0o600)


def test_a_file_that_was_removed_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some systems remove files from /tmp that nobody changed for ten days."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    Path(write_pem_file(b"two")).unlink()
    assert Path(write_pem_file(b"two")).read_bytes() == b"two"


def test_the_64_files_that_were_used_last_stay() -> None:
    """An exec plugin may return a new key each hour."""
    first = Path(write_pem_file(b"first"))
    second = Path(write_pem_file(b"second"))
    for number in range(62):
        write_pem_file(b"key %d" % number)
    write_pem_file(b"first")
    write_pem_file(b"newest")
    assert (first.exists(), second.exists()) == (True, False)


def test_no_file_stays_when_the_process_ends() -> None:
    code = """
import os
vars(os).pop("memfd_create", None)
from extender.client.auth.pem_files import write_pem_file
print(write_pem_file(b"key"))
"""
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not Path(process.stdout.strip()).exists()

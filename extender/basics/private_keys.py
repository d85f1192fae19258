"""Certificates and private keys as files without a name, because the ssl module reads them only from files."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate with its chain, and its key, both in PEM, into *context*.

    Raises:
        OSError: they are not a pair, or the key is encrypted. ssl.SSLError is an OSError.
    """
    with open_private_file(certificate) as certificate_file, open_private_file(key) as key_file:
        context.load_cert_chain(certificate_file, key_file, refuse_passphrase)


@contextmanager
def open_private_file(data: bytes) -> Iterator[str]:
    """Yield the path of a file with *data* that only this user can read, and that exists only in the `with` block.

    The file is in memory if the system supports it, so a read-only file system suffices and SIGKILL leaves no file.

    Raises:
        OSError: the file cannot be written.
    """
    if not hasattr(os, "memfd_create"):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "pem"
            path.touch(0o600)
            path.write_bytes(data)
            yield str(path)
        return
    with os.fdopen(os.memfd_create("pem"), "wb") as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(data)
        stream.flush()
        yield f"/proc/self/fd/{stream.fileno()}"


def refuse_passphrase() -> str:
    """Refuse to decrypt a key; the argument `password` of `ssl.SSLContext.load_cert_chain`.

    Without that argument, OpenSSL asks on the terminal, or reads standard input, and the process waits.

    Raises:
        OSError: always.
    """
    raise OSError("the private key is encrypted; want one without a passphrase")

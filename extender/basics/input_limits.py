"""The limits of files and documents that a user names, and a reader that enforces the limits of files.

A reader stops at its limit, so the memory and the time do not depend on the input. A pipe is accepted, because a shell
passes `<(command)` as one. A device is not.
"""

import errno
import io
import os
import select
import stat
from collections.abc import Callable, Iterator
from typing import Final

MAX_RECORDING_BYTES: Final = 2 * 1024**3
"""The maximum size of a recorded cluster, plain or decompressed. 150,000 pods as JSON take about 1 GiB."""

MAX_YAML_BYTES: Final = 256 * 1024**2
"""The maximum size of a recorded cluster in YAML, which is parsed a hundred times slower than JSON."""

MAX_YAML_EVENTS: Final = 30_000_000
"""The maximum number of events of the parser for a recorded cluster in YAML: one for a text, two for a list or object.

256 MiB of `kubectl get -o yaml` have fewer, and take two minutes. 256 MiB of `{},` would take six, and 8 GB of memory.
"""

MAX_CONFIG_BYTES: Final = 1024**2
"""The maximum size of a configuration or Policy. A ConfigMap has the same maximum size.

Source: staging/src/k8s.io/api/core/v1/types.go, MaxSecretSize; pkg/apis/core/validation, ValidateConfigMap (1.36).
"""

MAX_KUBECONFIG_BYTES: Final = 16 * 1024**2
"""The maximum size of a kubeconfig file."""

MAX_CREDENTIAL_BYTES: Final = 1024**2
"""The maximum size of a token file, and of the output of an exec plugin."""

MAX_CERTIFICATE_BYTES: Final = 16 * 1024**2
"""The maximum size of a file with certificates or with a key."""

MAX_DOCUMENTS: Final = 500_000
"""The maximum number of documents in a recorded cluster."""

MAX_WORKLOAD_PODS: Final = 500_000
"""The maximum number of pods of all workloads in a recorded cluster and its manifests."""

MAX_RECORDING_DEPTH: Final = 500
"""The maximum number of nested objects and lists in a recorded cluster in YAML."""

MAX_CONFIG_DEPTH: Final = 100
"""The maximum number of nested objects and lists in a configuration, a Policy or a kubeconfig."""

MAX_CONFIG_VALUES: Final = 200_000
"""The maximum number of values in a configuration, a Policy or a kubeconfig; an alias counts as its values."""

MAX_DIGITS: Final = 4000
"""The maximum number of digits of an integer. Python does not convert longer integers."""

MAX_MESSAGE_LENGTH: Final = 1000
"""The maximum number of characters of a part of an error message. A longer part is cut, and its length is added."""

PIPE_WRITER_TIMEOUT_SECONDS: Final = 10.0
"""The maximum wait for a writer of a named pipe, in seconds."""

PIPE_DATA_TIMEOUT_SECONDS: Final = 300.0
"""The maximum wait for the next data of a pipe, in seconds."""

_CHUNK_BYTES: Final = 1024**2


class InputLimitError(Exception):
    """A file exceeds a limit, is a device, or sends no data. The message omits its subject, which is the file."""


def read_limited_file(file: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Read a file or a pipe.

    Raises:
        InputLimitError: the file is a device, has more than *max_bytes* bytes, or sends no data.
        OSError, ValueError: as in `open`.
    """
    return collect_limited(iterate_file(file), max_bytes)


def iterate_file(file: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the content of a file or a pipe in chunks.

    Raises:
        InputLimitError: the file is a device, or it sends no data.
        OSError, ValueError: as in `open`.
    """
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        is_pipe = stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and os.isatty(descriptor))
        if not is_pipe and not stat.S_ISREG(mode):
            raise InputLimitError("is a device; name a file with text")
        yield from _iterate_pipe(descriptor) if is_pipe else _iterate_regular_file(descriptor)
    finally:
        os.close(descriptor)


def collect_limited(
    chunks: Iterator[bytes], max_bytes: int, is_invalid: Callable[[bytes], bool] = lambda _: False
) -> bytes:
    """Concatenate *chunks*, up to the first chunk for which *is_invalid* is true.

    Raises:
        InputLimitError: the chunks have more than *max_bytes* bytes.
    """
    buffer = io.BytesIO()  # unlike a join, its getvalue makes no copy
    for chunk in chunks:
        if buffer.tell() + len(chunk) > max_bytes:
            raise InputLimitError(f"has more than {format_size(max_bytes)}")
        buffer.write(chunk)
        if is_invalid(chunk):
            break
    return buffer.getvalue()


def format_size(size: int) -> str:
    """Format a number of bytes that is a multiple of a binary unit."""
    for unit, bytes_per_unit in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if size >= bytes_per_unit and size % bytes_per_unit == 0:
            return f"{size // bytes_per_unit} {unit}"
    return f"{size} bytes"


def shorten(text: str, max_length: int = MAX_MESSAGE_LENGTH) -> str:
    """Return *text*. A text longer than *max_length* is cut, and its length is added."""
    return text if len(text) <= max_length else f"{text[:max_length]}... ({len(text)} characters)"


def _iterate_regular_file(descriptor: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            yield chunk
    except BlockingIOError as error:  # a file of the kernel, such as /proc/kmsg
        raise InputLimitError("sends no data and has no end; name a file with text") from error


def _iterate_pipe(descriptor: int) -> Iterator[bytes]:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    has_data = False
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            if not poll.poll(PIPE_DATA_TIMEOUT_SECONDS * 1000):
                message = f"is a pipe whose writer sent nothing for {PIPE_DATA_TIMEOUT_SECONDS:g} s; check the command"
                raise InputLimitError(message) from None
            continue
        if chunk:
            has_data = True
            yield chunk
            continue
        # Without a writer, a read returns nothing.
        events = [] if has_data else poll.poll(PIPE_WRITER_TIMEOUT_SECONDS * 1000)
        if not has_data and not events:
            raise InputLimitError("is a pipe without a writer; start the command that writes to it")
        if has_data or not events[0][1] & select.POLLIN:
            return

"""The formats and the text of zpages."""

import pytest

from extender.serving.zpages import PageFormat, ProcessInfo, format_status, negotiate_format

TYPED = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", PageFormat()),
        ("*/*", PageFormat()),
        ("text/plain;q=0.5", PageFormat()),
        (TYPED, PageFormat("application/json", "v1beta1")),
        ("application/yaml; v=v1alpha1; g=config.k8s.io; as=Statusz", PageFormat("application/yaml", "v1alpha1")),
        ("application/json, text/plain", PageFormat()),
        ("application/json", None),
        ("application/json;v=v1;g=config.k8s.io;as=Statusz", None),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None),
    ],
)
def test_the_format_is_negotiated_by_the_accept_header(accept: str, form: PageFormat | None) -> None:
    assert negotiate_format(accept, "Statusz") == form


def test_statusz_has_start_time_uptime_and_versions() -> None:
    text = format_status(
        ProcessInfo(1795231915.0, "python3.11.9", "1.0", "1.36"), ["/livez", "/readyz"], 1795231915.0 + 3723
    )
    assert text.splitlines()[4:] == [
        "Started: Sat Nov 21 03:31:55 UTC 2026",
        "Up: 1 hr 02 min 03 sec",
        "Runtime version: python3.11.9",
        "Binary version: 1.0",
        "Emulation version: 1.36",
        "Paths: /livez /readyz",
    ]

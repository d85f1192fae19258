"""Proxies from the environment, with Go's rules."""

import pytest

from extender.client import proxies


@pytest.mark.parametrize(
    ("server", "none_for", "direct"),
    [
        ("https://api.example.org:6443", "", False),
        ("https://api.example.org:6443", "*", True),
        ("https://api.example.org:6443", "example.org", True),
        ("https://api.example.org:6443", ".example.org", True),
        ("https://example.org", ".example.org", False),
        ("https://api.example.org:6443", "ple.org", False),
        ("https://api.example.org:6443", "other, API.example.org:6443", True),
        ("https://api.example.org:6443", "api.example.org:443", False),
        ("https://10.96.0.1", "10.96.0.0/12", True),
        ("https://10.96.0.1", "10.0.0.0/16", False),
        ("https://10.96.0.1", "10.96.0.1", True),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost:6443", "", True),
    ],
    ids=[
        "no exception",
        "all",
        "a domain",
        "a domain with a dot",
        "a dot wants a subdomain",
        "half a word",
        "with its port",
        "with another port",
        "a network",
        "another network",
        "an address",
        "a network of version 6",
        "this machine",
        "localhost",
    ],
)
def test_no_proxy_has_go_s_rules(server: str, none_for: str, direct: bool) -> None:
    environ = {"https_proxy": "proxy:3128", "no_proxy": none_for}
    assert proxies.find_proxy(server, environ) == ("" if direct else "http://proxy:3128")

"""URLs in expressions: what is one, and its parts. The results are those of kube-scheduler 1.37.2."""

import pytest

from extender.dra.cel.urls import Url, get_hostname, get_port, parse_query, split_url

VALID = {
    "HTTPS://A.b:99999/p?x=1": Url("https", "A.b:99999", "/p", "x=1"),
    "/p%20q?x": Url("", "", "/p%20q", "x"),
    "mailto:a@b": Url("mailto", "", "", ""),
    "http://u:p@a": Url("http", "a", "", ""),
    "//a/b": Url("", "a", "/b", ""),
    "///a": Url("", "", "///a", ""),
    "/a#b?c": Url("", "", "/a", ""),
    "*": Url("", "", "*", ""),
    "http://[::1]:80/x": Url("http", "[::1]:80", "/x", ""),
    "http://\u00e9/": Url("http", "\u00e9", "/", ""),
}


@pytest.mark.parametrize("text", VALID)
def test_an_absolute_url_or_path_has_these_parts(text: str) -> None:
    assert split_url(text) == VALID[text]


@pytest.mark.parametrize(
    "text",
    [
        "", "a/b", "1http://a", "http://a b", "http:// ", "http://a:b", "http://a:80:90", "http://a#b", "http://a#b?c",
        "http://[::1", "http://[::1]x", "http://[a]", "/a%zz", "http://u%zz@a", "http://u s@a/", "/a\n", "/\x7f",
        "http://a%20b/",
    ],
)  # fmt: skip
def test_another_text_is_no_url(text: str) -> None:
    with pytest.raises(ValueError, match="want an absolute URL or an absolute path"):
        split_url(text)


@pytest.mark.parametrize(
    ("text", "hostname", "port"),
    [
        ("http://a:80/", "a", "80"),
        ("http://a:/", "a", ""),
        ("http://[::1]:80", "::1", "80"),
        ("http://[::1]", "::1", ""),
    ],
)
def test_the_host_has_a_name_and_a_port(text: str, hostname: str, port: str) -> None:
    assert (get_hostname(text), get_port(text)) == (hostname, port)


def test_invalid_parts_of_a_query_are_ignored() -> None:
    assert parse_query("x=1&x=a+b&y&z;w=1&v=%zz&&=k") == {"x": ["1", "a b"], "y": [""], "": ["k"]}

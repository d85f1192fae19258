"""Text and the progress bar at a terminal, and in a pipe."""

import io

import pytest

from extender.cli.terminal import ProgressBar, write_error, write_text


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_shows_the_percentage_and_is_erased_at_the_end() -> None:
    terminal = _Terminal()
    progress_bar = ProgressBar("pods", terminal)
    progress_bar.show(1, 4)
    assert terminal.getvalue() == "\r[#######.......................]  25% 1 of 4 pods"
    progress_bar.show(4, 4)
    assert terminal.getvalue().endswith("\r\033[K")


def test_the_bar_of_a_narrow_terminal_stays_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = _Terminal()
    ProgressBar("pods", terminal).show(1, 4)
    assert terminal.getvalue() == "\r[#######.......................]  25% 1"


def test_the_bar_is_drawn_only_if_the_percentage_changes() -> None:
    terminal = _Terminal()
    progress_bar = ProgressBar("pods", terminal)
    progress_bar.show(100, 1000)
    drawn = terminal.getvalue()
    progress_bar.show(101, 1000)
    assert terminal.getvalue() == drawn


def test_a_pipe_gets_a_line_every_half_minute() -> None:
    pipe, times = io.StringIO(), iter([100.0, 129.0, 130.0, 159.9, 190.0, 500.0])
    progress_bar = ProgressBar("pods", pipe, lambda: next(times))
    progress_bar.show(1, 9)
    assert pipe.getvalue() == ""
    for done in (2, 3, 4, 9):
        progress_bar.show(done, 9)
        progress_bar.erase()
    assert pipe.getvalue() == "extender: 2 of 9 pods\nextender: 4 of 9 pods\n"


def test_a_fraction_of_a_run_is_in_the_percentage() -> None:
    terminal, pipe, times = _Terminal(), io.StringIO(), iter([0.0, 30.0])
    ProgressBar("runs", terminal).show(1.5, 2)
    assert terminal.getvalue() == "\r[######################........]  75% 1 of 2 runs"
    ProgressBar("runs", pipe, lambda: next(times)).show(0.254, 1)
    assert pipe.getvalue() == "extender: 0 of 1 runs (25%)\n"


def test_an_erased_bar_is_drawn_again() -> None:
    terminal = _Terminal()
    progress_bar = ProgressBar("pods", terminal)
    progress_bar.erase()
    assert terminal.getvalue() == ""
    progress_bar.show(1, 4)
    progress_bar.erase()
    progress_bar.show(1, 4)
    assert terminal.getvalue().count("25%") == 2


REPORT = """\
Pod shop/web
  fits on none of 12 nodes: 8 nodes have too little cpu, 3 nodes have taints
  NODES  REASON
      3  node(s) had untolerated taint(s), and another long reason
"""


def write_at_terminal(monkeypatch: pytest.MonkeyPatch, text: str, width: int, no_colour: str = "") -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", no_colour)
    terminal = _Terminal()
    write_text(text, terminal)
    return terminal.getvalue()


def test_a_pipe_gets_the_text_unchanged() -> None:
    pipe = io.StringIO()
    write_text(REPORT, pipe)
    assert pipe.getvalue() == REPORT


def test_a_terminal_shows_titles_in_bold_and_results_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = write_at_terminal(monkeypatch, "Pod shop/web\n  fits on 3 of 12 nodes\n  a is best\n", 80)
    assert text == "\033[1mPod shop/web\033[0m\n\033[32m  fits on 3 of 12 nodes\033[0m\n  a is best\n"
    assert write_at_terminal(monkeypatch, "  fits on none\n", 80) == "\033[31m  fits on none\033[0m\n"


def test_only_the_title_of_a_table_is_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of `extender fits` has no indent."""
    monkeypatch.setenv("TERM", "xterm")
    text = write_at_terminal(monkeypatch, "POD  FITS\na       1\n\nTotals\nb       2\n", 80)
    assert text == "\033[1mPOD  FITS\033[0m\na       1\n\n\033[1mTotals\033[0m\nb       2\n"


def test_the_line_of_a_brief_result_is_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = write_at_terminal(monkeypatch, "shop/a: fits on 6 of 12 nodes\n", 80)
    assert text == "\033[32mshop/a: fits on 6 of 12 nodes\033[0m\n"
    text = write_at_terminal(monkeypatch, "shop/b: fits on none of 12 nodes: x\n", 80)
    assert text == "\033[31mshop/b: fits on none of 12 nodes: x\033[0m\n"


def test_long_lines_are_wrapped_below_their_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        write_at_terminal(monkeypatch, REPORT, 60, no_colour="1")
        == """\
Pod shop/web
  fits on none of 12 nodes: 8 nodes have too little cpu, 3
  nodes have taints
  NODES  REASON
      3  node(s) had untolerated taint(s), and another long
         reason
"""
    )


def test_lines_are_wrapped_at_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = write_at_terminal(monkeypatch, REPORT, 40, no_colour="1")
    assert text.splitlines()[1:3] == [
        "  fits on none of 12 nodes: 8 nodes have",
        "  too little cpu, 3 nodes have taints",
    ]


def test_a_terminal_without_capabilities_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert write_at_terminal(monkeypatch, "Pod shop/web\n", 80) == "Pod shop/web\n"


def test_a_last_column_without_room_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"{'a' * 50}  {'word ' * 10}end\n"
    assert write_at_terminal(monkeypatch, line, 60, no_colour="1") == line


def test_a_terminal_does_not_get_escape_sequences_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """U+009B starts an escape sequence too, and U+202E reverses the text after it."""
    text = "  taint \x1b]0;title\x07 \x1b[2J \u009b31m \u202e a\tb\n"
    want = "  taint \\x1b]0;title\\x07 \\x1b[2J \\x9b31m \\u202e a\tb\n"
    assert write_at_terminal(monkeypatch, text, 80, no_colour="1") == want


def test_a_pipe_to_a_pager_gets_no_escape_sequences_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    write_text("taint \x1b[2J \u202e\n")
    assert capsys.readouterr().out == "taint \\x1b[2J \\u202e\n"


def test_an_error_has_no_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    write_error('waits for scheduler "\x1b[31m"')
    assert capsys.readouterr().err == 'extender: waits for scheduler "\\x1b[31m"\n'


def test_a_name_with_a_line_break_does_not_forge_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The API server accepts any text as a pod's `schedulerName`."""
    write_error('1 pod is pending for scheduler "x\nextender: every pod fits"')
    assert capsys.readouterr().err == 'extender: 1 pod is pending for scheduler "x\\nextender: every pod fits"\n'

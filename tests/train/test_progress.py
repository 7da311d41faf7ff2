"""El progreso: en un terminal corriente se ve lo importante, y uno que no sabe borrar recibe líneas."""

import io
import sys

import pytest

from enlace.train.progress import ProgressDisplay

RECORD = {
    "step": 1234,
    "loss": 2.5,
    "bits_per_byte": 1.25,
    "skipped": None,
    "validation": "nan",
    "timing": {"seconds": 0.5, "tokens_per_second": 12345.0, "mfu": 0.25},
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(terminal: io.StringIO, kind: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", kind)
    display = ProgressDisplay(steps=100_000, first_step=0)
    display.show(dict(RECORD))
    display.close()
    return terminal.getvalue()


@pytest.mark.parametrize(("terminal", "kind"), [(Terminal(), "xterm"), (Terminal(), "dumb"), (io.StringIO(), "xterm")])
def test_eighty_columns_show_the_step_the_loss_and_the_time_left(
    terminal: io.StringIO, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = shown(terminal, kind, monkeypatch)
    for text in ("paso 1234/100000", "faltan 13 h 43 min", "pérdida 2,500", "1,250 bits/byte"):
        assert text in output


def test_a_pipe_gets_plain_lines_and_a_terminal_a_live_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    line = shown(io.StringIO(), "xterm", monkeypatch)
    assert "\x1b" not in line and "validación nan" in line
    assert "\x1b" in shown(Terminal(), "xterm", monkeypatch)

"""La orden de buscar: construye la cadena, busca y lo cuenta, para una persona o en JSON."""

import json
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from enlace.agent.tools.search.build import DegradedChain, build_backend
from enlace.agent.tools.search.chain import Chain, Dropped
from enlace.agent.tools.search.outcome import ANSWERED, Answer, Attempt, Outcome, Result
from enlace.config import load_agent, schema
from enlace.errors import EnlaceError, warn
from enlace.errors.numerals import thousands

GUIDE = "mira en docs/guias/busqueda.md qué hacer con cada final"


def open_chain(house: str, changes: Sequence[str]) -> Chain:
    """La cadena de esa casa; lo que haya quedado fuera se avisa por stderr."""
    agent = load_agent(house, changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DegradedChain)
        chain = build_backend(agent)
    for each in caught:
        warn(str(each.message))
    return chain


def search(
    text: str,
    *,
    house: str,
    changes: Sequence[str],
    time_range: schema.TimeRange | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Busca y escribe la respuesta. EnlaceError con todos los intentos si no ha contestado ninguno."""
    with open_chain(house, changes) as chain:
        answer = chain.search(text, time_range=time_range)
    if as_json:
        dropped = [{"backend": each.backend, "reason": each.reason} for each in chain.dropped]
        print(json.dumps({**answer_json(answer), "dropped": dropped}, ensure_ascii=False, indent=2))
    elif answer.outcome in ANSWERED:
        _print_answer(answer, chain.dropped if verbose else (), verbose)
    if answer.outcome not in ANSWERED:
        raise EnlaceError(
            "no ha contestado ningún buscador", where="enlace search", why=attempt_lines(answer.attempts), fix=GUIDE
        )


def answer_json(answer: Answer) -> dict[str, Any]:
    """La respuesta, para programas. Los textos son de internet: pueden mentir o dar órdenes."""
    return {
        "query": answer.query,
        "outcome": answer.outcome,
        "cached": answer.cached,
        "results": [_result_json(result) for result in answer.results],
        "intentos": [attempt_json(attempt) for attempt in answer.attempts],
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """Un intento, para programas."""
    return {
        "backend": attempt.backend,
        "outcome": attempt.outcome,
        "milliseconds": attempt.milliseconds,
        "reason": attempt.reason,
    }


def attempt_lines(attempts: Iterable[Attempt]) -> str:
    """Una línea por intento."""
    return "\n".join(_attempt_line(attempt) for attempt in attempts)


def dropped_line(dropped: Dropped) -> str:
    """Una línea por suplente que ha quedado fuera."""
    return f"✗ {dropped.backend}: fuera de la cadena: {dropped.reason}"


def _attempt_line(attempt: Attempt) -> str:
    reason = f": {attempt.reason}" if attempt.reason else ""
    return f"{attempt.backend} · {attempt.outcome} · {thousands(attempt.milliseconds)} ms{reason}"


def _result_json(result: Result) -> dict[str, Any]:
    return {
        "position": result.position,
        "title": result.title.text,
        "url": result.url,
        "snippet": result.snippet.text,
        "source": result.source,
    }


def _print_answer(answer: Answer, dropped: Iterable[Dropped], verbose: bool) -> None:
    # Sin interpretar marcas ni colores: lo que se escribe es de internet.
    console = Console(highlight=False, markup=False, emoji=False)
    for result in answer.results:
        console.print(Text(f"{result.position}. {result.title.text}", style="bold"))
        console.print(Padding(Text(result.url, style="cyan", overflow="fold"), (0, 0, 0, 3)))
        if result.snippet.text:
            console.print(Padding(Text(result.snippet.text), (0, 0, 0, 3)))
        console.print()
    if answer.outcome is Outcome.NO_RESULTS:
        console.print(f"Nada sobre «{answer.query}».")
    shown = attempt_lines(answer.attempts if verbose else answer.attempts[-1:])
    console.print(Text(shown + (" (respuesta guardada)" if answer.cached else ""), style="dim"))
    for each in dropped:
        console.print(Text(dropped_line(each), style="dim"))

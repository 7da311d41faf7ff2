"""El informe de una corrida, en HTML de un solo fichero y en Markdown, a partir de lo que quedó en disco."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import fmean, harmonic_mean
from typing import Any

from enlace.durable import sweep, write_file
from enlace.errors.numerals import decimal, duration, percent, thousands
from enlace.train.estimate import Estimate
from enlace.train.plot import Series, line_chart
from enlace.train.records import Log, read_events

RECENT_STEPS = 20


@dataclass(frozen=True)
class Table:
    """Filas de (etiqueta, valor)."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figure:
    """Un gráfico; file es su nombre junto al informe en Markdown."""

    file: str
    alt: str
    svg: str


@dataclass(frozen=True)
class Text:
    """Texto literal: órdenes, muestras."""

    body: str


@dataclass(frozen=True)
class Section:
    """Un apartado del informe."""

    title: str
    blocks: Sequence[Table | Figure | Text]


@dataclass(frozen=True)
class Results:
    """Las cifras finales de una corrida. bits por byte; None donde no se midió."""

    train_bits_per_byte: float | None
    validation_bits_per_byte: float | None
    best: dict[str, Any] | None
    tokens_per_second: float
    seconds: float
    estimated_seconds: float | None

    @property
    def estimate_error(self) -> float | None:
        """Error relativo de la estimación de tiempo (0,1 = se tardó un 10 % más de lo previsto)."""
        return self.seconds / self.estimated_seconds - 1 if self.estimated_seconds else None


def summarize(log: Log, *, seconds: float, plan: Estimate, best: dict[str, Any] | None) -> Results:
    """Cifras finales: entrenamiento, la media de los últimos pasos con pérdida finita; validación, la última finita."""
    finite = [record["bits_per_byte"] for record in log if isinstance(record["bits_per_byte"], float)][-RECENT_STEPS:]
    validations = [record["validation"] for record in log if isinstance(record.get("validation"), float)]
    return Results(
        train_bits_per_byte=fmean(finite) if finite else None,
        validation_bits_per_byte=validations[-1] if validations else None,
        best=best,
        tokens_per_second=harmonic_mean([record["timing"]["tokens_per_second"] for record in log]) if log else 0.0,
        seconds=seconds,
        estimated_seconds=plan.seconds,
    )


def write_report(
    run_dir: Path, name: str, log: Log, results: Results, facts: Sequence[tuple[str, str]], sample: str, command: str
) -> None:
    """Escribe informe.html (un solo fichero) e informe.md (con los gráficos al lado) en la carpeta de la corrida."""
    sections = [
        Section("Resultado", [Table(_result_rows(results)), Text(sample)]),
        Section("Curvas", _figures(log)),
        Section("Corrida", [Table(facts)]),
        Section("Incidencias", [Table(_incidents(run_dir, log))]),
        Section("Repetirla", [Text(command)]),
        Section("Configuración", [Text((run_dir / "config.yaml").read_text(encoding="utf-8"))]),
    ]
    title = f"Informe de {name}"
    figures = [block for section in sections for block in section.blocks if isinstance(block, Figure)]
    sweep(run_dir / "graficos")
    for figure in figures:
        write_file(run_dir / figure.file, figure.svg.encode())
    write_file(run_dir / "informe.md", render_markdown(title, sections).encode())
    write_file(run_dir / "informe.html", render_html(title, sections).encode())


def _result_rows(results: Results) -> list[tuple[str, str]]:
    rows = [
        ("entrenamiento", f"{bits(results.train_bits_per_byte)} (media de los últimos {RECENT_STEPS} pasos)"),
        ("validación", bits(results.validation_bits_per_byte)),
        ("velocidad", f"{thousands(round(results.tokens_per_second))} tokens/s"),
        ("tiempo", duration(results.seconds)),
    ]
    if results.best:
        best, step = bits(results.best["bits_per_byte"]), results.best["step"]
        rows.insert(2, ("mejor validación", f"{best}, en el paso {step}"))
    if results.estimate_error is not None:
        estimated = f"{duration(results.estimated_seconds)}; se desvió un {percent(results.estimate_error, sign=True)}"
        rows.append(("tiempo estimado", estimated))
    return rows


def bits(value: float | None) -> str:
    """1.2345 → «1,2345 bits por byte»."""
    return "sin medir" if value is None else f"{decimal(value, 4)} bits por byte"


def _figures(log: Log) -> list[Figure]:
    def points(key: str) -> list[tuple[float, float]]:
        return [(r["step"], r[key]) for r in log if isinstance(r.get(key), float | int)]

    speed = [(r["step"], r["timing"]["tokens_per_second"]) for r in log]
    charts = (
        (
            "bits",
            "Bits por byte",
            [Series("entrenamiento", points("bits_per_byte")), Series("validación", points("validation"))],
        ),
        ("tasa", "Tasa de aprendizaje", [Series("tasa", points("learning_rate"))]),
        ("gradiente", "Norma del gradiente", [Series("norma", points("grad_norm"))]),
        ("velocidad", "Tokens por segundo", [Series("tokens/s", speed)]),
    )
    return [Figure(f"graficos/{name}.svg", title, line_chart(title, series)) for name, title, series in charts]


def _incidents(run_dir: Path, log: Log) -> list[tuple[str, str]]:
    events = [(e["time"], f"paso {e['step']}: {e['event']}") for e in read_events(run_dir)]
    skipped = [(f"paso {r['step']}", f"saltado: {r['skipped']}") for r in log if r["skipped"]]
    return events + skipped


def render_markdown(title: str, sections: Sequence[Section]) -> str:
    """El informe en Markdown; los gráficos son ficheros al lado."""
    parts = [f"# {title}", ""]
    for section in sections:
        parts += [f"## {section.title}", ""]
        for block in section.blocks:
            parts += [_markdown_block(block), ""]
    return "\n".join(parts)


def _markdown_block(block: Table | Figure | Text) -> str:
    if isinstance(block, Figure):
        return f"![{block.alt}]({block.file})"
    if isinstance(block, Text):
        return f"~~~text\n{block.body.rstrip()}\n~~~"
    cells = [f"| {label} | {value.replace('|', '¦')} |" for label, value in block.rows]
    return "\n".join(["| | |", "|---|---|", *cells])


def render_html(title: str, sections: Sequence[Section]) -> str:
    """El informe en un solo fichero HTML, con los gráficos dentro."""
    body = "\n".join(
        f"<section><h2>{escape(section.title)}</h2>{''.join(_html_block(b) for b in section.blocks)}</section>"
        for section in sections
    )
    return (
        f'<!doctype html><html lang="es"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _html_block(block: Table | Figure | Text) -> str:
    if isinstance(block, Figure):
        return f"<figure>{block.svg}</figure>"
    if isinstance(block, Text):
        return f"<pre>{escape(block.body)}</pre>"
    rows = "".join(
        f"<tr><th scope='row'>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in block.rows
    )
    return f"<table>{rows}</table>"


STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #94a3b855;vertical-align:top}"
    "th{font-weight:600}td{overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap;background:#94a3b822;padding:1rem;border-radius:.5rem;overflow-x:auto}"
    "figure{margin:1rem 0}svg{width:100%;height:auto}"
)

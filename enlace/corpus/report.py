"""El informe de un corpus: cuánto entra, qué cae y por qué, con ejemplos, y de qué está hecho lo que queda."""

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from enlace.config import schema
from enlace.durable import write_file
from enlace.errors.numerals import decimal, duration, percent, thousands

_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 200
_STYLE = "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto}td,th{padding:.2rem .6rem;text-align:left}"
_PAGE = '<!DOCTYPE html><html lang="es"><meta charset="utf-8"><title>Corpus</title><style>{}</style>{}</html>\n'


def write_report(output: Path, config: schema.Corpus, stats: Mapping[str, Any], seconds: Mapping[str, float]) -> None:
    """Escribe informe.md e informe.html en la carpeta del corpus."""
    blocks = list(_blocks(config, stats, seconds))
    write_file(output / "informe.md", "\n\n".join(_markdown(block) for block in blocks).encode() + b"\n")
    page = _PAGE.format(_STYLE, "\n".join(_html(block) for block in blocks))
    write_file(output / "informe.html", page.encode())


def render_stats(stats: Mapping[str, Any]) -> str:
    """Lo principal, para la terminal."""
    lines = []
    for name, source in stats["sources"].items():
        counts = source["counts"]
        kept = counts.get("final.train.textos", 0) + counts.get("final.validation.textos", 0)
        size = counts.get("final.train.bytes", 0) + counts.get("final.validation.bytes", 0)
        lines.append(
            f"{name}: entran {thousands(counts.get('entra.textos', 0))} textos y quedan {thousands(kept)} ({_mb(size)})"
        )
        lines += [f"  {rule}: {thousands(count)}" for rule, count in dropped(counts)]
    return "\n".join(lines)


def render_rejected(stats: Mapping[str, Any], rule: str) -> str:
    """Los ejemplos guardados de lo que tira una regla."""
    rows = [row for source in stats["sources"].values() for row in source["samples"].get(rule, [])]
    return "\n\n".join(f"— {identifier}\n{text}" for _, identifier, text in rows)


def dropped(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """(regla, textos) de lo que cae, de más a menos."""
    rules = {
        key.removeprefix("cae.").removesuffix(".textos"): count
        for key, count in counts.items()
        if key.startswith("cae.") and key.endswith(".textos")
    }
    return sorted(rules.items(), key=lambda item: (-item[1], item[0]))


Block = tuple[str, Sequence[Sequence[str]]]


def _blocks(config: schema.Corpus, stats: Mapping[str, Any], seconds: Mapping[str, float]) -> Iterator[Block]:
    total: Counter[str] = Counter()
    for source in stats["sources"].values():
        total.update(source["counts"])
    yield "Corpus", [["carpeta", config.output], *_summary(total)]
    yield "Fuentes", [["fuente", "entran", "quedan", "MB", "validación"], *_source_rows(stats)]
    mixed = [[name, *_mixture_row(row)] for name, row in stats["mixture"].items()]
    yield "Mezcla", [["fuente", "parte pedida", "MB", "veces", "parte final"], *mixed]
    yield "Licencias", [["licencia", "textos", "MB"], *_licence_rows(total)]
    yield "Lo que cae", [["regla", "textos", "MB", "ejemplos"], *_drop_rows(total, stats)]
    hidden = [[key.partition(".")[2], thousands(n)] for key, n in sorted(total.items()) if key.startswith("escondido.")]
    yield "Datos personales escondidos", [["clase", "veces"], *hidden]
    sizes = [(int(key[-2:]), n) for key, n in sorted(total.items()) if key.startswith("palabras.")]
    most = max((n for _, n in sizes), default=1)
    bars = [[f"menos de {thousands(2**bits)}", thousands(n), "█" * max(1, 30 * n // most)] for bits, n in sizes]
    yield "Palabras por texto", [["palabras", "textos", ""], *bars]
    yield "Tiempo", [["etapa", "tiempo"], *([stage, duration(spent)] for stage, spent in seconds.items())]


def _summary(total: Mapping[str, int]) -> list[list[str]]:
    kept = total.get("final.train.textos", 0) + total.get("final.validation.textos", 0)
    size = total.get("final.train.bytes", 0) + total.get("final.validation.bytes", 0)
    return [
        ["entran", f"{thousands(total.get('entra.textos', 0))} textos, {_mb(total.get('entra.bytes', 0))}"],
        ["quedan", f"{thousands(kept)} textos, {_mb(size)}"],
        ["reparados", thousands(total.get("reparados", 0))],
        ["renglones quitados", thousands(total.get("renglones_quitados", 0))],
        ["ficheros que no se leen", thousands(total.get("ficheros_que_no_se_leen", 0))],
    ]


def _source_rows(stats: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, source in stats["sources"].items():
        counts = source["counts"]
        kept, apart = counts.get("final.train.textos", 0), counts.get("final.validation.textos", 0)
        size = counts.get("final.train.bytes", 0) + counts.get("final.validation.bytes", 0)
        yield [name, thousands(counts.get("entra.textos", 0)), thousands(kept + apart), _mb(size), thousands(apart)]


def _mixture_row(row: Mapping[str, float]) -> list[str]:
    shares = percent(row["asked_share"]), _mb(int(row["bytes"])), decimal(row["epochs"], 2), percent(row["final_share"])
    return list(shares)


def _licence_rows(total: Mapping[str, int]) -> Iterator[list[str]]:
    for key, count in sorted(total.items()):
        if key.startswith("licencia.") and key.endswith(".textos"):
            name = key.removeprefix("licencia.").removesuffix(".textos")
            yield [name, thousands(count), _mb(total[f"licencia.{name}.bytes"])]


def _drop_rows(total: Mapping[str, int], stats: Mapping[str, Any]) -> Iterator[list[str]]:
    for rule, count in dropped(total):
        rows = [row for source in stats["sources"].values() for row in source["samples"].get(rule, [])]
        examples = " · ".join(f"«{' '.join(text.split())[:_EXAMPLE_CHARACTERS]}»" for _, _, text in rows[:_EXAMPLES])
        yield [rule, thousands(count), _mb(total[f"cae.{rule}.bytes"]), examples]


def _mb(size: int) -> str:
    return f"{decimal(size / 1e6, 2)} MB"


def _markdown(block: Block) -> str:
    title, rows = block
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    head, *rest = cells
    table = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rest)]
    return f"## {title}\n\n" + "\n".join(table)


def _html(block: Block) -> str:
    title, (head, *rest) = block
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rest)
    return f"<h2>{html.escape(title)}</h2><table><tr>{top}</tr>{body}</table>"

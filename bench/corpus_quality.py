"""Qué hace la limpieza con textos etiquetados: de cada defecto, cuántos caen y por qué; y los aciertos en el idioma.

    python bench/corpus_quality.py TEXTOS.jsonl.zst ETIQUETAS.jsonl

TEXTOS: documentos con «id» y «text». ETIQUETAS: por renglón, «id» y «defecto»; «limpio» si no tiene ninguno.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from enlace.config import load_corpus
from enlace.corpus.clean.language import keep_spanish
from enlace.corpus.clean.privacy import hide
from enlace.corpus.clean.quality import broken_rule, measure
from enlace.corpus.clean.repair import repair
from enlace.corpus.read import RawText, read_file
from enlace.errors import guard
from enlace.errors.numerals import percent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench/corpus_quality.py", description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("labels", type=Path)
    options = parser.parse_args()
    config = load_corpus("es")
    labels = {row["id"]: row["defecto"] for row in map(json.loads, options.labels.read_text().splitlines())}
    found: dict[str, Counter[str]] = defaultdict(Counter)
    language: Counter[tuple[bool, bool]] = Counter()
    for raw in read_file(options.texts, options.texts.name, config.limits):
        if not isinstance(raw, RawText) or raw.place not in labels:
            continue
        label = labels[raw.place]
        text = repair(raw.text)
        spanish = keep_spanish(text, config.language)
        if label in ("limpio", "otro_idioma"):
            language[label == "limpio", spanish.verdict == "es"] += 1
        rule = {"es": None, "otro": "idioma", "no se sabe": "idioma_dudoso"}[spanish.verdict]
        rule = rule or broken_rule(measure(spanish.text), config.quality["prosa"])
        hidden = hide(spanish.text, config.privacy)[1]
        found[label][rule or ("queda, con datos escondidos" if hidden else "queda")] += 1
    for label, rules in sorted(found.items()):
        total = rules.total()
        kept = sum(count for rule, count in rules.items() if rule.startswith("queda"))
        print(f"{label} ({total}): caen {percent(1 - kept / total)}: {dict(rules.most_common())}")
    right, wrong, missed = language[True, True], language[False, True], language[True, False]
    print(f"español: precisión {percent(right / (right + wrong))}, cobertura {percent(right / (right + missed))}")


if __name__ == "__main__":
    sys.exit(guard(main))

"""Lo que tarda cada etapa de limpiar un corpus, en un núcleo.

    python bench/corpus_speed.py FICHERO [--megabytes N]     MB/s de cada etapa sobre los textos de ese fichero

FICHERO es cualquiera de los que lee `enlace corpus build`. Se cuenta el tiempo de CPU del proceso.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from enlace.config import load_corpus
from enlace.config.schema import PrivacyKind
from enlace.corpus.clean.language import keep_spanish
from enlace.corpus.clean.privacy import hide
from enlace.corpus.clean.quality import broken_rule, measure
from enlace.corpus.clean.repair import repair
from enlace.corpus.clean.words import word_ids, words_of
from enlace.corpus.near import signature
from enlace.corpus.read import RawText, read_file
from enlace.errors import guard


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench/corpus_speed.py", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--megabytes", type=float, default=10.0)
    options = parser.parse_args()
    config = load_corpus("es")
    texts: list[str] = []
    for found in read_file(options.file, options.file.name, config.limits):
        if isinstance(found, RawText):
            texts.append(found.text)
        if sum(map(len, texts)) > 1e6 * options.megabytes:
            break
    size = sum(len(text.encode()) for text in texts)
    ids = [word_ids(words_of(text)) for text in texts]
    keep_spanish(texts[0], config.language)  # carga el modelo
    stages: dict[str, Callable[[int], object]] = {
        "reparar": lambda n: repair(texts[n]),
        "idioma": lambda n: keep_spanish(texts[n], config.language),
        "palabras y calidad": lambda n: broken_rule(measure(texts[n]), config.quality["prosa"]),
        "datos personales": lambda n: hide(texts[n], get_args(PrivacyKind)),
        "firma MinHash": lambda n: signature(ids[n], config.duplicates),
    }
    total = 0.0
    for name, stage in stages.items():
        start = time.process_time()
        for number in range(len(texts)):
            stage(number)
        seconds = time.process_time() - start
        total += seconds
        print(f"{name:<20} {size / seconds / 1e6:7.2f} MB/s {len(texts) / seconds:9.0f} textos/s")
    print(f"{'todo':<20} {size / total / 1e6:7.2f} MB/s {len(texts) / total:9.0f} textos/s")


if __name__ == "__main__":
    sys.exit(guard(main))

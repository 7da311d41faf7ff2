"""Lo mismo que bench/corpus_speed.py, con datatrove: se lanza con el Python de un entorno aparte que lo tenga.

python3 -m venv ENTORNO
ENTORNO/bin/pip install datatrove spacy regex nltk tokenizers zstandard fasttext-numpy2 "xxhash<4"
ENTORNO/bin/python bench/corpus_peer.py FICHERO.jsonl.zst [--megabytes N]
"""

import argparse
import io
import json
import tempfile
import time
from collections.abc import Callable

import zstandard
from datatrove.data import Document
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
from datatrove.pipeline.filters import FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.typeshelper import Languages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--megabytes", type=float, default=0.4)
    options = parser.parse_args()
    texts: list[str] = []
    with open(options.file, "rb") as stream:  # noqa: PTH123
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(stream)):
            texts.append(json.loads(line)["text"])
            if sum(map(len, texts)) > 1e6 * options.megabytes:
                break
    language = Languages.spanish
    shape = MinhashConfig(hash_config=HashConfig(precision=64), n_grams=5, num_buckets=14, hashes_per_bucket=8)
    signer = MinhashDedupSignature(output_folder=tempfile.gettempdir(), config=shape, language=language)
    filters = [each(language=language) for each in (GopherRepetitionFilter, GopherQualityFilter, FineWebQualityFilter)]
    stages: dict[str, Callable[[str], object]] = {
        "calidad": lambda text: [each.filter(Document(text=text, id="x")) for each in filters],
        "firma MinHash": lambda text: signer.get_signature(signer.get_shingles(text)),
    }
    size = sum(len(text.encode()) for text in texts)
    for name, stage in stages.items():
        stage(texts[0])  # carga lo que tenga que cargar
        start = time.process_time()
        for text in texts:
            stage(text)
        seconds = time.process_time() - start
        print(f"{name:<20} {size / seconds / 1e6:7.2f} MB/s {len(texts) / seconds:9.0f} textos/s")


if __name__ == "__main__":
    main()

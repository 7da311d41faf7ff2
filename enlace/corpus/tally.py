"""Las cuentas de un corpus: lo que entra, lo que cae y por qué, con ejemplos. Sumar en cualquier orden da lo mismo."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from enlace.corpus.clean.words import text_id

SAMPLE_CHARACTERS = 600


@dataclass
class Tally:
    """counts: textos, bytes y otras cuentas, por nombre. samples: regla → [[huella, id, principio del texto]]."""

    most_samples: int
    counts: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[list[Any]]] = field(default_factory=dict)

    def add(self, what: str, text: str = "") -> None:
        """Cuenta un texto y sus bytes."""
        self.counts[f"{what}.textos"] += 1
        self.counts[f"{what}.bytes"] += len(text.encode("utf-8", "replace"))

    def drop(self, rule: str, identifier: str, text: str, sample: str = "") -> None:
        """Cuenta un texto que cae y guarda un ejemplo, al azar pero siempre el mismo.

        sample: lo que se enseña de él, si no es su principio tal cual.
        """
        self.add(f"cae.{rule}", text)
        kept = self.samples.setdefault(rule, [])
        kept.append([text_id(identifier), identifier, (sample or text)[:SAMPLE_CHARACTERS]])
        kept.sort()
        del kept[self.most_samples :]

    def merge(self, other: Self) -> None:
        """Suma otras cuentas."""
        self.counts.update(other.counts)
        for rule, rows in other.samples.items():
            kept = self.samples.setdefault(rule, [])
            kept += rows
            kept.sort()
            del kept[self.most_samples :]

    def to_json(self) -> dict[str, Any]:
        """Para guardarlas, siempre en el mismo orden."""
        return {"counts": dict(sorted(self.counts.items())), "samples": dict(sorted(self.samples.items()))}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], most_samples: int) -> Self:
        """Las que dio `to_json`."""
        return cls(
            most_samples, Counter(value["counts"]), {rule: list(rows) for rule, rows in value["samples"].items()}
        )

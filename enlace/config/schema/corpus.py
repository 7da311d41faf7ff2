"""Capa `corpus`: de qué textos sale el corpus y con qué criterio se limpian."""

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from enlace.config.schema.base import BrokenRule, Layer, PathText

PrivacyKind = Literal["correo", "telefono", "documento", "iban", "tarjeta", "ip"]
Fraction = Field(ge=0, le=1)


class Quality(Layer):
    """Los umbrales de un tipo de texto; null no mira esa regla.

    Son los de Gopher (Rae y otros, 2021) con los valores de FineWeb-2 para el español (Penedo y otros, 2025), y algunos
    propios.
    """

    min_words: int = Field(ge=0)
    max_words: PositiveInt
    min_mean_word_length: float = Field(ge=0)
    max_mean_word_length: float = Field(gt=0)
    min_alphabetic_words: float = Fraction
    min_stop_words: int = Field(ge=0)
    max_symbols_per_word: float | None = Field(ge=0)
    max_bullet_lines: float | None = Fraction
    max_ellipsis_lines: float | None = Fraction
    min_punctuated_lines: float | None = Fraction
    max_lines_per_word: float | None = Field(ge=0)
    max_repeated_lines: float | None = Fraction
    max_top_ngram: dict[str, float] | None = Field(
        description="De 2 a 4 palabras: parte del texto que ocupa el más repetido."
    )
    max_repeated_ngrams: dict[str, float] | None = Field(description="De 5 a 10 palabras: parte del texto repetida.")
    max_uppercase: float | None = Fraction
    max_digits: float | None = Fraction
    max_code_characters: float | None = Fraction
    max_lost_characters: float | None = Fraction
    min_accented_words: float | None = Fraction

    @model_validator(mode="after")
    def _ngrams_are_sizes(self) -> Self:
        for key, sizes, allowed in (
            ("max_top_ngram", self.max_top_ngram, range(2, 5)),
            ("max_repeated_ngrams", self.max_repeated_ngrams, range(5, 11)),
        ):
            wrong = [size for size in sizes or {} if size not in map(str, allowed)]
            if wrong:
                raise BrokenRule(f"se esperaban tamaños de {allowed[0]} a {allowed[-1]} y hay {', '.join(wrong)}", key)
        return self


class TextSource(Layer):
    """De dónde salen unos textos."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    path: PathText = Field(description="Carpeta o fichero; relativo a donde se lanza la orden.")
    url: str | None = Field(
        None, description="De dónde lo baja «enlace corpus fetch»: http…, o hub:QUIÉN/CONJUNTO/RUTA."
    )
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$", description="La huella de lo que se baja.")
    license: str | None = Field(None, description="La de los textos que no la digan; null si todos la dicen.")
    quality: str = Field(description="Un nombre de `quality`.")
    spanish: bool = Field(description="true si es seguro que está en español: no se tira lo que no llega a saberse.")
    weight: float = Field(gt=0, description="Peso en la mezcla; se normalizan.")


class Language(Layer):
    """Qué cuenta como español."""

    min_words: PositiveInt = Field(description="Con menos, no se puede saber.")
    min_margin_per_word: float = Field(ge=0, description="Ventaja del español sobre el segundo, por palabra.")
    min_spanish_share: float = Field(gt=0, le=1, description="Parte del texto en español para quedarse con él.")


class Duplicates(Layer):
    """Textos repetidos, enteros o casi (MinHash: Broder, 1997), y renglones repetidos."""

    ngram_words: PositiveInt
    bands: PositiveInt
    rows: PositiveInt
    min_similarity: float = Fraction
    line_characters: PositiveInt = Field(description="Renglones más cortos no se miran.")
    line_documents: PositiveInt = Field(
        description="Un renglón que está en más documentos se queda solo en el primero."
    )
    boilerplate_share: float = Field(gt=0, le=1, description="Un renglón en más de esta parte de su fuente se quita.")
    boilerplate_documents: PositiveInt = Field(description="Y en más documentos que estos.")


class Contamination(Layer):
    """Textos de evaluación que no pueden entrar."""

    files: list[PathText]
    words: PositiveInt


class Mixture(Layer):
    """Cuánto de cada fuente."""

    budget_bytes: PositiveInt | None = Field(description="null: todo lo que haya, una vez.")
    max_epochs: float = Field(ge=1, description="Más veces que estas no se repite una fuente.")
    validation_fraction: float = Field(ge=0, lt=1, description="Parte de las obras que se aparta, por su huella.")


class Limits(Layer):
    """Lo que se admite de un fichero."""

    max_document_bytes: PositiveInt
    max_archive_members: PositiveInt


class Corpus(Layer):
    """Un corpus entero."""

    output: PathText = Field(description="Carpeta donde queda.")
    sources: list[TextSource] = Field(min_length=1)
    licenses: list[str] | None = Field(description="Solo estas; null, todas.")
    quality: dict[str, Quality]
    language: Language
    privacy: list[PrivacyKind]
    duplicates: Duplicates
    contamination: Contamination
    mixture: Mixture
    limits: Limits
    samples_per_rule: int = Field(ge=0, description="Ejemplos que se guardan de lo que tira cada regla.")

    @model_validator(mode="after")
    def _sources_are_consistent(self) -> Self:
        names = [source.name for source in self.sources]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise BrokenRule(f"hay fuentes con el mismo nombre: {', '.join(repeated)}", "sources")
        for number, source in enumerate(self.sources):
            if source.quality not in self.quality:
                known = ", ".join(self.quality)
                raise BrokenRule(f"no hay unos umbrales «{source.quality}»; hay: {known}", f"sources.{number}.quality")
        return self

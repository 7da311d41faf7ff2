"""El corpus entero: los mismos bytes con cualquier número de procesos, se puede matar y cada texto dice por qué cae."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from enlace.cli import main
from enlace.config import find_run, load_corpus, load_run
from enlace.config.schema import Corpus
from enlace.corpus.build import build
from enlace.corpus.merge import mixture, split_of
from enlace.corpus.table import read_documents
from enlace.data import open_data
from enlace.durable import verify
from enlace.errors import CorruptDataError, NotFoundError

ROOT = Path(__file__).parents[2]
SENTENCES = [
    "La panadera abrió la tienda antes de que saliera el sol.",
    "En el puerto había tres barcos que venían del norte con la niebla.",
    "El maestro explicó por qué la lluvia tarda más en llegar a la montaña.",
    "Nadie supo decir quién había dejado la carta encima de la mesa.",
    "Los niños corrían por la plaza mientras la campana daba las doce.",
    "Con el tiempo, el jardín se llenó de una hierba que no tenía nombre.",
    "Mi hermana guardó el reloj del abuelo en una caja de lata.",
    "Después de la cena se quedaron hablando de lo que harían en el verano.",
    "El tren paró dos veces y en la segunda bajó un señor con sombrero.",
    "Una vecina juraba que el ruido venía del pozo y no del tejado.",
    "Se acordó de la promesa al ver la fotografía de la estación vacía.",
    "La receta pedía más limón del que quedaba en la despensa de la casa.",
]
SYLLABLES = "ba be ca co da de fa ga gu la lo ma mi na no pa pe ra ro sa se ta to va".split()
Make = Callable[..., Corpus]


def name(dice: random.Random) -> str:
    return "".join(dice.choices(SYLLABLES, k=4)).capitalize()


def story(number: int) -> str:
    dice = random.Random(number)
    return " ".join(f"{each[:-1]}, según {name(dice)} de {name(dice)}." for each in dice.sample(SENTENCES, 9))


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Un corpus de prueba: `make(fuente={fichero: contenido}, …, clave="valor")`."""
    monkeypatch.chdir(ROOT)

    def configured(*changes: str, **sources: dict[str, bytes | str]) -> Corpus:
        listed = []
        for name, files in sources.items():
            for file, content in files.items():
                path = tmp_path / "textos" / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode() if isinstance(content, str) else content)
            listed.append(
                {
                    "name": name,
                    "path": str(tmp_path / "textos" / name),
                    "license": "CC0-1.0",
                    "quality": "prosa",
                    "spanish": True,
                    "weight": 1.0,
                }
            )
        return load_corpus("es", [f"sources={json.dumps(listed)}", f"output={tmp_path / 'corpus'}", *changes])

    return configured


def kept(config: Corpus, split: str = "train") -> list[str]:
    folder = Path(config.output) / "documents"
    return [d.text for s in config.sources for d in read_documents(folder / f"{s.name}-{split}.parquet")]


def drops(stats: dict[str, Any], source: str = "a") -> dict[str, int]:
    counts = stats["sources"][source]["counts"]
    return {key[4:-7]: n for key, n in counts.items() if key.startswith("cae.") and key.endswith(".textos")}


def bytes_of(config: Corpus) -> dict[str, bytes]:
    folder = Path(config.output) / "documents"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}


ALL = "mixture.validation_fraction=0.0"


def test_what_is_good_stays_and_is_published_whole(make: Make) -> None:
    config = make(ALL, a={"uno.txt": story(1), "dos.txt": story(2)})
    stats: Any = build(config, workers=1)
    assert kept(config) == [story(2), story(1)]
    manifest = verify(Path(config.output) / "documents", "documents")
    assert set(manifest.files) == {"a-train.parquet", "a-validation.parquet", "stats.json"}
    assert (drops(stats), stats["unread"]) == ({}, [])
    (document, _) = read_documents(Path(config.output) / "documents" / "a-train.parquet")
    assert (document.id, document.source, document.license, document.work) == ("a/dos.txt", "a", "CC0-1.0", "dos.txt")


def test_each_thing_that_falls_says_its_rule(make: Make) -> None:
    evaluation = "En qué año se fundó la biblioteca de la villa junto al río Lento y quién puso la primera piedra."
    contaminated = f"{story(3)} {evaluation}"
    portuguese = "O cachorro do meu vizinho late a noite toda e ninguém no bairro consegue dormir em paz. " * 9
    files = {
        "a.txt": story(1),
        "b.txt": story(1),
        "c.txt": story(1).replace(", según ", ", como dijo ", 1),
        "d.txt": portuguese,
        "e.txt": f"Muy poco: ana{chr(64)}correo.example.",
        "f.txt": contaminated,
        "g.jsonl": json.dumps({"text": story(5), "license": "CC-BY-NC-4.0"}),
        "h.txt": f"{story(6)} Escribe a ana{chr(64)}correo.example.",
        "i.xyz": "nada",
    }
    config = make(ALL, "licenses=[CC0-1.0]", a=files)
    path = Path(config.output).parent / "evaluacion.jsonl"
    path.write_text(json.dumps({"pregunta": evaluation}))
    config = make(ALL, "licenses=[CC0-1.0]", f"contamination.files=['{path}']", a=files)
    stats: Any = build(config, workers=1)
    assert drops(stats) == {
        "duplicado": 1,
        "casi_duplicado": 1,
        "idioma": 1,
        "muy_corto": 1,
        "contaminado": 1,
        "licencia": 1,
        "no_se_lee": 1,
    }
    assert kept(config) == [story(1), f"{story(6)} Escribe a [correo]."]
    assert len(stats["unread"]) == 1 and "a/i.xyz" in stats["unread"][0]
    samples = stats["sources"]["a"]["samples"]
    assert samples["idioma"][0][1] == "a/d.txt"
    assert samples["muy_corto"][0][2] == "Muy poco: [correo].", "los ejemplos tampoco llevan datos de nadie"


def test_lines_that_repeat_stay_once_and_those_of_a_site_go(make: Make) -> None:
    note = "Esta nota larga sobre las condiciones de uso del sitio aparece al final de todas y cada una de las páginas."
    files = {f"{n:02d}.txt": f"Inicio | Contacto\n\n{story(n)}\n\n{note if n < 6 else ''}" for n in range(30)}
    config = make(ALL, a=files)
    build(config, workers=1)
    texts = kept(config)
    assert len(texts) == 30
    assert not any("Inicio | Contacto" in text for text in texts)
    assert [note in text for text in texts] == [True] + [False] * 29
    assert texts[7] == story(7)


def test_any_number_of_processes_gives_the_same_bytes(make: Make) -> None:
    sources: Any = {
        "a": {f"{n}.txt": story(n) for n in range(6)},
        "b": {"x.jsonl": "\n".join(json.dumps({"text": story(n)}) for n in range(3, 9))},
    }
    config = make(**sources)
    build(config, workers=1)
    alone = bytes_of(config)
    other = make(f"output={Path(config.output).parent / 'otro'}", **sources)
    build(other, workers=3)
    assert bytes_of(other) == alone


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_the_executors_of_datatrove_give_the_same_bytes(make: Make, executor: str) -> None:
    pytest.importorskip("ray" if executor == "ray" else "datatrove", reason=f"{executor} pide el extra cluster")
    sources: Any = {"a": {f"{n}.txt": story(n) for n in range(5)}}
    config = make(**sources)
    build(config, workers=1)
    other = make(f"output={Path(config.output).parent / 'otro'}", **sources)
    program = (
        "import sys; from enlace.config import load_corpus; from enlace.corpus.build import build\n"
        "if __name__ == '__main__': build(load_corpus(sys.argv[1]), workers=2, executor=sys.argv[2])\n"
    )
    path, script = Path(config.output).parent / "otro.yaml", Path(config.output).parent / "otro.py"
    path.write_text(other.model_dump_json())
    script.write_text(program)
    done = subprocess.run([sys.executable, script, path, executor], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert bytes_of(other) == bytes_of(config)


def test_what_is_done_is_not_done_again_and_what_changes_is(make: Make) -> None:
    config = make(ALL, a={"uno.txt": story(1), "dos.txt": story(2)})
    build(config, workers=1)
    parts = Path(config.output) / "parts"
    before = {path: path.stat().st_mtime_ns for path in parts.glob("*/manifest.json")}
    build(config, workers=1)
    assert {path: path.stat().st_mtime_ns for path in parts.glob("*/manifest.json")} == before
    config = make(ALL, a={"uno.txt": story(3)})
    build(config, workers=1)
    after = {path: path.stat().st_mtime_ns for path in parts.glob("*/manifest.json")}
    assert len(after) == 2 and len(set(before.items()) & set(after.items())) == 1
    assert kept(config) == [story(2), story(3)]


def test_a_spoiled_part_is_done_again(make: Make) -> None:
    config = make(ALL, a={"uno.txt": story(1)})
    build(config, workers=1)
    (table,) = (Path(config.output) / "parts").glob("*/documents.parquet")
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    build(config, workers=1)
    assert kept(config) == [story(1)]


def test_killed_at_any_moment_it_goes_on_and_ends_the_same(make: Make, tmp_path: Path, long_run: bool) -> None:
    sources = {"a": {f"{n:02d}.txt": story(n) for n in range(60)}}
    config = make(**sources)  # type: ignore[arg-type]
    build(config, workers=1)
    expected = bytes_of(config)
    other = make(f"output={tmp_path / 'matado'}", **sources)  # type: ignore[arg-type]
    path = tmp_path / "matado.yaml"
    path.write_text(other.model_dump_json())
    dice, killed = random.Random(3), 0
    code = (
        f"from enlace.cli import main; print('ya', flush=True); main(['corpus', 'build', '{path}', '--workers', '1'])"
    )
    for _ in range(12 if long_run else 3):
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert child.stdout and child.stdout.readline() == "ya\n"
        try:
            child.communicate(timeout=dice.uniform(0.8, 2.2))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
            killed += 1
    build(other, workers=1)
    assert bytes_of(other) == expected
    assert not list((tmp_path / "matado").rglob(".tmp-*"))
    assert killed


def test_validation_depends_only_on_the_work(make: Make) -> None:
    texts = {f"{n:02d}.txt": story(n) for n in range(40)}
    config = make("mixture.validation_fraction=0.3", a=texts)  # type: ignore[arg-type]
    build(config, workers=1)
    apart = set(kept(config, "validation"))
    assert 4 < len(apart) < 20 and not apart & set(kept(config))
    config = make("mixture.validation_fraction=0.3", a=texts, b={"x.txt": story(99)})  # type: ignore[arg-type]
    build(config, workers=1)
    assert apart <= set(kept(config, "validation"))
    assert split_of("x", 0.0) == "train"


def test_the_mixture_respects_weights_budget_and_the_most_times(make: Make) -> None:
    config = make("mixture.budget_bytes=1000", "mixture.max_epochs=3", a={"x.txt": "x"}, b={"x.txt": "x"})
    rows = mixture(config, {"a": 1000, "b": 100})
    assert (rows["a"]["epochs"], rows["b"]["epochs"]) == (0.5, 3.0)
    assert rows["b"]["final_share"] == pytest.approx(300 / 800)


def test_strict_stops_at_what_cannot_be_read_and_publishes_nothing(make: Make) -> None:
    config = make(a={"uno.txt": story(1), "b.xyz": "x"})
    with pytest.raises(CorruptDataError, match="no se pueden leer"):
        build(config, workers=1, strict=True)
    assert not (Path(config.output) / "documents").exists()


def test_a_missing_evaluation_file_stops_it(make: Make) -> None:
    config = make("contamination.files=[no-existe.jsonl]", a={"uno.txt": story(1)})
    with pytest.raises(NotFoundError):
        build(config, workers=1)


def test_the_commands_build_count_and_show_what_fell(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make(ALL, a={"uno.txt": story(1), "corto.txt": "Nada.", "z.xyz": "x"})
    path = tmp_path / "prueba.yaml"
    path.write_text(config.model_dump_json())
    assert main(["corpus", "stats", str(path)]) == 5
    assert main(["corpus", "build", str(path), "--workers", "1"]) == 7
    said = capsys.readouterr()
    assert "entran 2 textos y quedan 1" in said.out and "z.xyz" in said.err
    assert main(["corpus", "stats", str(path)]) == 0
    assert main(["corpus", "stats", str(path), "--rejected", "muy_corto"]) == 0
    assert "— a/corto.txt\nNada." in capsys.readouterr().out
    assert main(["corpus", "stats", str(path), "--rejected", "nada"]) == 5
    assert main(["corpus", "build", str(path), "--licenses", "MIT", "--workers", "1"]) == 7
    report = (Path(config.output) / "informe.md").read_text()
    assert "| licencia | 2 |" in report and "<table>" in (Path(config.output) / "informe.html").read_text()


def test_what_is_exported_can_be_trained_on(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = make(ALL, a={"uno.txt": story(1), "dos.txt": story(2)})
    path = tmp_path / "prueba.yaml"
    path.write_text(config.model_dump_json())
    assert main(["corpus", "export", str(path)]) != 0
    build(config, workers=1)
    assert main(["corpus", "export", str(path)]) == 0
    exported = Path(config.output) / "jsonl" / "a-train.jsonl.zst"
    lines = zstandard.ZstdDecompressor().stream_reader(exported.read_bytes()).read().decode().splitlines()
    assert [json.loads(line)["text"] for line in lines] == kept(config)
    data = load_run(
        find_run("smoke-cpu"), [f'data.sources=[{{"name": "a", "path": "{exported}", "weight": 1.0}}]']
    ).run.data
    assert open_data(data, 288).train.n_tokens > 0


def test_the_report_escapes_what_it_quotes(make: Make) -> None:
    config = make(ALL, a={"x.txt": "<script>alert(1)</script> | y"})
    build(config, workers=1)
    assert "<script>" not in (Path(config.output) / "informe.html").read_text()

"""El informe sale de lo que quedó en disco, en los dos formatos, y dice la verdad."""

import math
import re
import shlex
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from enlace.durable import read_json, read_log
from enlace.errors.numerals import decimal
from enlace.model import Transformer
from enlace.train import finish as finish_module
from enlace.train.plot import MAX_POINTS, Series, line_chart, thin
from enlace.train.train import train
from tests.tiny import tiny_run


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tiny_run(tmp_path_factory.mktemp("informe"))
    assert train(run)
    return Path(run.runs_dir) / run.name


def test_the_figures_are_those_of_the_log(run_dir: Path) -> None:
    log = read_log(run_dir / "log.jsonl")
    report = (run_dir / "informe.md").read_text(encoding="utf-8")
    assert f"| validación | {decimal(float(str(log[-1]['validation'])), 4)} bits por byte |" in report
    mean = sum(float(str(line["bits_per_byte"])) for line in log) / len(log)
    assert f"{decimal(mean, 4)} bits por byte (media" in report


def test_the_estimate_and_its_error_are_printed(run_dir: Path) -> None:
    plan = read_json(run_dir / "plan.json")
    assert isinstance(plan, dict) and plan["seconds"]
    assert "se desvió un" in (run_dir / "informe.md").read_text(encoding="utf-8")


def test_markdown_images_exist_next_to_it(run_dir: Path) -> None:
    report = (run_dir / "informe.md").read_text(encoding="utf-8")
    images = [line.split("(")[1].rstrip(")") for line in report.splitlines() if line.startswith("![")]
    assert len(images) == 4
    for image in images:
        assert ElementTree.parse(run_dir / image).getroot().tag.endswith("svg")  # noqa: S314


def test_html_is_one_file_with_the_plots_inside_and_no_outside_reference(run_dir: Path) -> None:
    html = (run_dir / "informe.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 4
    assert "<script" not in html and 'src="' not in html and 'href="' not in html
    HTMLParser().feed(html)


def test_the_report_says_when_it_started_and_how_to_repeat_it(run_dir: Path) -> None:
    report = (run_dir / "informe.md").read_text(encoding="utf-8")
    assert "paso 0: empieza" in report
    assert f"enlace train {run_dir / 'config.yaml'}" in report


def test_the_order_that_repeats_it_can_be_copied_from_a_folder_with_spaces(tmp_path: Path) -> None:
    run = tiny_run(tmp_path / "casa de niños")
    assert train(run)
    run_dir = Path(run.runs_dir) / run.name
    report = (run_dir / "informe.md").read_text(encoding="utf-8")
    order = shlex.split(report.split("## Repetirla")[1].splitlines()[3])
    assert order == ["enlace", "train", str(run_dir / "config.yaml"), f"name={run.name}-repetida"]


def test_the_axes_are_numbered_with_round_numbers_in_spanish() -> None:
    svg = line_chart("Curva", [Series("a", [(8.0, 10_460.0), (3000.0, 14_050.0)])])
    marks = re.findall(r'text-anchor="(end|middle)">([^<]+)<', svg)
    assert [mark for anchor, mark in marks if anchor == "end"] == ["11.000", "12.000", "13.000", "14.000"]
    assert [mark for anchor, mark in marks if anchor == "middle"] == ["1.000", "2.000", "3.000"]
    small = line_chart("Curva", [Series("a", [(1.0, 0.0), (2.0, 0.003)])])
    assert re.findall(r'"end">([^<]+)<', small) == ["0,000", "0,001", "0,002", "0,003"]


def test_long_curves_are_averaged_by_stretches() -> None:
    points = [(float(step), float(step % 2)) for step in range(10_000)]
    thinned = thin(points)
    assert len(thinned) <= MAX_POINTS
    assert all(abs(value - 0.5) < 0.05 for _, value in thinned)


numbers = st.floats(-1e100, 1e100) | st.sampled_from([math.nan, math.inf, -math.inf])


@given(st.lists(st.tuples(st.integers(0, 1 << 62), numbers), max_size=50), st.text(max_size=20))
def test_any_curve_gives_well_formed_svg_or_nothing(points: list[tuple[int, float]], name: str) -> None:
    svg = line_chart("Curva", [Series("".join(c for c in name if c.isprintable()), points)])
    assert not svg or ElementTree.fromstring(svg).tag.endswith("svg")  # noqa: S314


def test_what_a_death_left_among_the_plots_is_swept(tmp_path: Path) -> None:
    run = tiny_run(tmp_path)
    leftover = Path(run.runs_dir) / run.name / "graficos" / ".tmp-tasa.svg-4194305-71e1a177-11"
    leftover.parent.mkdir(parents=True)
    leftover.write_text("a medias")
    assert train(run)
    assert not leftover.exists()


def test_a_model_with_non_finite_weights_still_gets_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tiny_run(tmp_path)
    real = finish_module.generate_text

    def ruined(model: Transformer, *arguments: Any) -> Iterator[str]:
        with torch.no_grad():
            model.head_weight.fill_(math.nan)
        return real(model, *arguments)

    monkeypatch.setattr(finish_module, "generate_text", ruined)
    assert train(run)
    assert "(sin muestra: el modelo da valores no finitos)" in (tmp_path / "runs" / run.name / "informe.md").read_text()

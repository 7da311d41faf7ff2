"""Curvas en SVG autónomo: sin JavaScript, sin red y legibles en claro y en oscuro."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from enlace.errors.numerals import decimal, power

Point = tuple[float, float]
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 34
COLORS = ("#2563eb", "#dc2626", "#059669")
MAX_POINTS = 400


@dataclass(frozen=True)
class Series:
    """Una curva con nombre."""

    name: str
    points: Sequence[Point]


def line_chart(title: str, series: Sequence[Series]) -> str:
    """Un gráfico de líneas con ejes y leyenda. Las curvas largas se promedian por tramos."""
    drawn = [Series(s.name, thin([p for p in s.points if math.isfinite(p[1])])) for s in series]
    points = [point for s in drawn for point in s.points]
    if not points:
        return ""
    x_range = _range([x for x, _ in points])
    y_range = _range([y for _, y in points])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif" font-size="12" fill="#64748b">',
        f'<text x="{LEFT}" y="18" font-size="14" font-weight="bold">{escape(title)}</text>',
        *_grid(x_range, y_range),
        *(_curve(s, COLORS[i % len(COLORS)], x_range, y_range) for i, s in enumerate(drawn)),
        *_legend(drawn),
        "</svg>",
    ]
    return "\n".join(parts)


def thin(points: Sequence[Point]) -> list[Point]:
    """Como mucho MAX_POINTS puntos: cada uno es la media de su tramo."""
    size = math.ceil(len(points) / MAX_POINTS)
    if size <= 1:
        return list(points)
    chunks = [points[i : i + size] for i in range(0, len(points), size)]
    return [(chunk[-1][0], sum(y for _, y in chunk) / len(chunk)) for chunk in chunks]


def _range(values: Sequence[float]) -> Point:
    low, high = min(values), max(values)
    if high - low > 1e-300:  # más juntos, su quinta parte podría ser cero
        return low, high
    margin = max(0.5, abs(low) / 100)
    return low - margin, high + margin


def _scale(value: float, span: Point, start: float, end: float) -> float:
    return start + (value - span[0]) / (span[1] - span[0]) * (end - start)


def _at(point: Point, x_range: Point, y_range: Point) -> str:
    x = _scale(point[0], x_range, LEFT, WIDTH - RIGHT)
    y = _scale(point[1], y_range, HEIGHT - BOTTOM, TOP)
    return f"{x:.1f},{y:.1f}"


def _grid(x_range: Point, y_range: Point) -> list[str]:
    lines = []
    for value, mark in _marks(y_range):
        y = _scale(value, y_range, HEIGHT - BOTTOM, TOP)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#94a3b8" stroke-opacity=".3"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{mark}</text>')
    for step, mark in _marks(x_range):
        x = _scale(step, x_range, LEFT, WIDTH - RIGHT)
        lines.append(f'<text x="{x:.1f}" y="{HEIGHT - 12}" text-anchor="middle">{mark}</text>')
    return lines


def _marks(span: Point) -> list[tuple[float, str]]:
    """Los números redondos de un eje, de dos a cinco, y cómo se escriben."""
    rough = (span[1] - span[0]) / 5
    power_of_ten = 10.0 ** math.floor(math.log10(rough))
    gap = next(digit * power_of_ten for digit in (1, 2, 5, 10) if digit * power_of_ten >= rough or digit == 10)
    values = [k * gap for k in range(math.ceil(span[0] / gap), math.floor(span[1] / gap) + 1)]
    digits = max(0, -math.floor(math.log10(gap) + 1e-9))
    readable = digits <= 6 and max(abs(span[0]), abs(span[1])) < 10**7
    return [(value, decimal(value, digits) if readable else power(value)) for value in values]


def _curve(series: Series, color: str, x_range: Point, y_range: Point) -> str:
    path = " ".join(_at(point, x_range, y_range) for point in series.points)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"/>'


def _legend(series: Sequence[Series]) -> list[str]:
    labels = []
    for i, s in enumerate(series):
        x = WIDTH - RIGHT - 130 * (len(series) - i)
        labels.append(f'<rect x="{x}" y="10" width="12" height="4" fill="{COLORS[i % len(COLORS)]}"/>')
        labels.append(f'<text x="{x + 18}" y="16">{escape(s.name)}</text>')
    return labels

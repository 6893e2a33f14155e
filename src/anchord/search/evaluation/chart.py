"""A scatter chart of an evaluation as SVG, which needs no library."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _MIN_HEIGHT = 860, 520
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 250, 40, 60
_COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#999999",
    "#000000",
)
"""Colours that colour-blind people can tell apart."""
_TICKS = 5
_LEGEND_LINE_HEIGHT = 20
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_NamedPoint = tuple[str, float, float]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values from `low` to `high`, drawn from `start` to `end` in pixels."""

    low: float
    high: float
    start: int
    end: int

    def to_pixels(self, value: float) -> float:
        value_range = self.high - self.low
        share = (value - self.low) / value_range
        pixels = self.end - self.start
        return self.start + share * pixels

    @property
    def ticks(self) -> list[float]:
        value_range = self.high - self.low
        ticks: list[float] = []
        for step in range(_TICKS + 1):
            distance = value_range * step / _TICKS
            ticks.append(self.low + distance)
        return ticks


def render_scatter_svg(
    points: Sequence[_NamedPoint], x_label: str, y_label: str, title: str
) -> str:
    """Return a scatter chart with a legend.

    Args:
        points: (name, x, y) of each point. The x axis begins at 0.
        x_label: What x is.
        y_label: What y is.
        title: The line above the chart.

    Returns:
        An SVG document. Labels and names are escaped.
    """
    legend_height = _LEGEND_LINE_HEIGHT * len(points)
    height = max(_MIN_HEIGHT, _TOP + legend_height + _BOTTOM)
    x_values = [x for _, x, _ in points]
    y_values = [y for _, _, y in points]
    y_low = _low_end(y_values)
    y_high = _high_end(y_values)
    x_axis = _Axis(
        0.0,
        _high_end(x_values),
        start=_LEFT,
        end=_WIDTH - _RIGHT,
    )
    y_axis = _Axis(y_low, y_high, start=height - _BOTTOM, end=_TOP)
    lines = [
        *_draw_frame(title, height),
        *_draw_grid(x_axis, y_axis),
        *_draw_labels(x_label, y_label, height),
    ]
    for number, point in enumerate(points):
        lines += _draw_point(number, point, x_axis, y_axis)
    lines += ["</svg>", ""]
    return "\n".join(lines)


def _draw_frame(title: str, height: int) -> Iterator[str]:
    """Yield the start of the document, a white background, and the title."""
    namespace = 'xmlns="http://www.w3.org/2000/svg"'
    view_box = f'viewBox="0 0 {_WIDTH} {height}"'
    font = 'font-family="sans-serif" font-size="13"'
    escaped_title = escape_xml(title)
    yield f"<svg {namespace} {view_box} {font}>"
    yield f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    yield f'<text x="{_LEFT}" y="24" font-size="16">{escaped_title}</text>'


def _draw_grid(x_axis: _Axis, y_axis: _Axis) -> Iterator[str]:
    """Yield a line and a number for each tick of both axes."""
    ticks = zip(x_axis.ticks, y_axis.ticks, strict=True)
    for x, y in ticks:
        x_pixels = x_axis.to_pixels(x)
        y_pixels = y_axis.to_pixels(y)
        yield _draw_vertical(x_pixels, y_axis)
        yield _draw_horizontal(y_pixels, x_axis)
        yield _draw_x_number(x, x_pixels, y_axis)
        yield _draw_y_number(y, y_pixels)


def _draw_vertical(x_pixels: float, y_axis: _Axis) -> str:
    x = f"{x_pixels:.0f}"
    return _draw_line(x, str(y_axis.end), x, str(y_axis.start))


def _draw_horizontal(y_pixels: float, x_axis: _Axis) -> str:
    y = f"{y_pixels:.0f}"
    return _draw_line(str(x_axis.start), y, str(x_axis.end), y)


def _draw_x_number(value: float, x_pixels: float, y_axis: _Axis) -> str:
    baseline = y_axis.start + 18
    place = f'x="{x_pixels:.0f}" y="{baseline}"'
    return _draw_text(place, "middle", f"{value:.1f}")


def _draw_y_number(value: float, y_pixels: float) -> str:
    right = _LEFT - 8
    baseline = y_pixels + 4
    place = f'x="{right}" y="{baseline:.0f}"'
    return _draw_text(place, "end", f"{value:.0f}")


def _draw_text(place: str, anchor: str, escaped_text: str) -> str:
    return f'<text {place} text-anchor="{anchor}">{escaped_text}</text>'


def _draw_line(x1: str, y1: str, x2: str, y2: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#eee"/>'


def _draw_labels(x_label: str, y_label: str, height: int) -> Iterator[str]:
    """Yield the names of both axes, the second one turned."""
    yield _draw_x_label(escape_xml(x_label), height)
    yield _draw_y_label(escape_xml(y_label), height)


def _draw_x_label(escaped_label: str, height: int) -> str:
    right = _WIDTH - _RIGHT
    middle = (_LEFT + right) / 2
    baseline = height - 18
    place = f'x="{middle:.0f}" y="{baseline}"'
    return _draw_text(place, "middle", escaped_label)


def _draw_y_label(escaped_label: str, height: int) -> str:
    bottom = height - _BOTTOM
    middle = (_TOP + bottom) / 2
    rounded = f"{middle:.0f}"
    place = f'x="18" y="{rounded}" transform="rotate(-90 18 {rounded})"'
    return _draw_text(place, "middle", escaped_label)


def _draw_point(number: int, point: _NamedPoint, x_axis: _Axis, y_axis: _Axis) -> Iterator[str]:
    """Yield a point and its line in the legend."""
    name, x, y = point
    escaped_name = escape_xml(name)
    colour_number = number % len(_COLOURS)
    colour = _COLOURS[colour_number]
    x_pixels = x_axis.to_pixels(x)
    y_pixels = y_axis.to_pixels(y)
    centre = f'cx="{x_pixels:.1f}" cy="{y_pixels:.1f}"'
    tooltip = f"<title>{escaped_name}</title>"
    yield f'<circle {centre} r="6" fill="{colour}">{tooltip}</circle>'
    legend_left = x_axis.end + 20
    yield from _draw_legend_line(number, escaped_name, colour, legend_left)


def _draw_legend_line(number: int, escaped_name: str, colour: str, left: int) -> Iterator[str]:
    """Yield a dot and a name."""
    lines_above = _LEGEND_LINE_HEIGHT * number
    baseline = _TOP + 14 + lines_above
    dot_y = baseline - 4
    name_x = left + 12
    yield f'<circle cx="{left}" cy="{dot_y}" r="6" fill="{colour}"/>'
    yield f'<text x="{name_x}" y="{baseline}">{escaped_name}</text>'


def escape_xml(text: str) -> str:
    """Return a text escaped for XML; characters that XML cannot hold become U+FFFD."""
    valid_text = _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
    return escape(valid_text)


def _low_end(values: Sequence[float]) -> float:
    lowest = min(values, default=0.0)
    return lowest - _margin(values)


def _high_end(values: Sequence[float]) -> float:
    highest = max(values, default=1.0)
    return highest + _margin(values)


def _margin(values: Sequence[float]) -> float:
    """Return a tenth of the values' range, at least 0.5, so that no point is on the edge."""
    lowest = min(values, default=0.0)
    highest = max(values, default=1.0)
    tenth = (highest - lowest) * 0.1
    return max(tenth, 0.5)

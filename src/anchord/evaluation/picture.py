"""Outcomes -> a picture: how well sections are found, against what an edit costs. As SVG, which needs no library."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape as _escaped

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 520, 70, 250, 40, 60
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#000000")  # told apart by everybody
_TICKS = 5
_KEY = 20
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def picture(points: Sequence[tuple[str, float, float]], across: str, up: str, title: str) -> str:
    """Draw named points (name, x, y), with what x and y are."""
    xs, ys = _scale([x for _, x, _ in points], low=0.0), _scale([y for _, _, y in points])
    height = max(_HEIGHT, _TOP + _KEY * len(points) + _BOTTOM)
    right, bottom = _WIDTH - _RIGHT, height - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (x - xs[0]) / (xs[1] - xs[0]) * (right - _LEFT),
            bottom - (y - ys[0]) / (ys[1] - ys[0]) * (bottom - _TOP),
        )

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="16">{escape(title)}</text>',
    ]
    for step in range(_TICKS + 1):
        x, y = (scale[0] + (scale[1] - scale[0]) * step / _TICKS for scale in (xs, ys))
        at_x, at_y = place(x, y)
        drawn.append(f'<line x1="{at_x:.0f}" y1="{_TOP}" x2="{at_x:.0f}" y2="{bottom}" stroke="#eee"/>')
        drawn.append(f'<line x1="{_LEFT}" y1="{at_y:.0f}" x2="{right}" y2="{at_y:.0f}" stroke="#eee"/>')
        drawn.append(f'<text x="{at_x:.0f}" y="{bottom + 18}" text-anchor="middle">{x:.1f}</text>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{at_y + 4:.0f}" text-anchor="end">{y:.0f}</text>')
    drawn.append(f'<text x="{(_LEFT + right) / 2:.0f}" y="{height - 18}" text-anchor="middle">{escape(across)}</text>')
    middle = (_TOP + bottom) / 2
    turned = f'x="18" y="{middle:.0f}" transform="rotate(-90 18 {middle:.0f})"'
    drawn.append(f'<text {turned} text-anchor="middle">{escape(up)}</text>')
    for number, (name, x, y) in enumerate(points):
        at_x, at_y = place(x, y)
        colour = _COLOURS[number % len(_COLOURS)]
        drawn.append(f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="6" fill="{colour}"><title>{escape(name)}</title></circle>')
        key = _TOP + 14 + _KEY * number
        drawn.append(f'<circle cx="{right + 20}" cy="{key - 4}" r="6" fill="{colour}"/>')
        drawn.append(f'<text x="{right + 32}" y="{key}">{escape(name)}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def escape(text: str) -> str:
    """Return a text as XML can hold it."""
    return _escaped(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _scale(values: Sequence[float], low: float | None = None) -> tuple[float, float]:
    """Return the ends of an axis, a little beyond the values."""
    least, most = min(values, default=0.0), max(values, default=1.0)
    margin = max((most - least) * 0.1, 0.5)
    return (least - margin if low is None else low), most + margin

#!/usr/bin/env python3
"""Draws a series as an SVG picture: plot.py TITLE X Y < LINES, where a line is "x y" or
"x y least most". Both axes are logarithmic, so what grows evenly is a straight line, and
the dashed line is what doubles when the work doubles. Values that are not above zero
have no place on such an axis: then the vertical one is linear."""
import math
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 340, 76, 16, 40, 48


def short(value):
    if value == 0:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g} {letter}"
    return f"{value:.3g}"


class Axis:
    def __init__(self, values, start, end, logarithmic):
        self.log = logarithmic
        low, high = min(values), max(values)
        if logarithmic:
            self.low, self.high = math.log10(low), math.log10(high)
        else:
            self.low, self.high = min(low, 0.0), max(high, 0.0)
        if self.low == self.high:
            self.high += 1
        pad = (self.high - self.low) * 0.06
        self.low, self.high = self.low - pad, self.high + pad
        self.start, self.end = start, end

    def at(self, value):
        value = math.log10(value) if self.log else value
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        if self.log:
            for digits in ((1,), (1, 2, 5), range(1, 10)):
                found = [digit * 10.0 ** power
                         for power in range(math.floor(self.low), math.ceil(self.high) + 1)
                         for digit in digits
                         if self.low <= math.log10(digit * 10.0 ** power) <= self.high]
                if len(found) > 2:
                    break
            return found
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 2))
        if (self.high - self.low) / step > 8:
            step *= 5
        first = math.ceil(self.low / step)
        return [n * step for n in range(first, math.floor(self.high / step) + 1)]


def draw(title, x_name, y_name, rows):
    xs = [row[0] for row in rows]
    ys = [value for row in rows for value in row[1:]]
    x = Axis(xs, LEFT, WIDTH - RIGHT, True)
    y = Axis(ys, HEIGHT - BOTTOM, TOP, min(ys) > 0)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<title>{escape(title)}</title>',
           '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="{LEFT}" y="22" font-size="14" fill="#222">{escape(title)}</text>']
    for value in x.ticks():
        out.append(f'<path d="M{x.at(value):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>'
                   f'<text x="{x.at(value):.1f}" y="{HEIGHT - BOTTOM + 18}" fill="#444" '
                   f'text-anchor="middle">{short(value)}</text>')
    for value in y.ticks():
        out.append(f'<path d="M{LEFT} {y.at(value):.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>'
                   f'<text x="{LEFT - 8}" y="{y.at(value) + 4:.1f}" fill="#444" '
                   f'text-anchor="end">{short(value)}</text>')
    if y.log:
        last = rows[-1]
        line = [(v, last[1] * v / last[0]) for v in xs]
        inside = [f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in line
                  if y.low <= math.log10(b) <= y.high]
        out.append(f'<polyline points="{" ".join(inside)}" fill="none" stroke="#999" '
                   'stroke-dasharray="4 4"/>')
    for row in rows:
        if len(row) == 4:
            out.append(f'<path d="M{x.at(row[0]):.1f} {y.at(row[2]):.1f}V{y.at(row[3]):.1f}" '
                       'stroke="#c33" stroke-opacity=".5" stroke-width="4"/>')
    points = " ".join(f"{x.at(row[0]):.1f},{y.at(row[1]):.1f}" for row in rows)
    out.append(f'<polyline points="{points}" fill="none" stroke="#c33" stroke-width="2"/>')
    for row in rows:
        out.append(f'<circle cx="{x.at(row[0]):.1f}" cy="{y.at(row[1]):.1f}" r="3" '
                   'fill="#c33"/>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" fill="#222" '
               f'text-anchor="middle">{escape(x_name)}</text>')
    out.append(f'<text x="14" y="{TOP - 8}" fill="#222">{escape(y_name)}</text></svg>')
    return "\n".join(out)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    rows = [[float(word) for word in line.split()] for line in sys.stdin if line.strip()]
    if not rows:
        sys.exit("plot: error: there are no lines")
    print(draw(*sys.argv[1:], rows))


if __name__ == "__main__":
    main()

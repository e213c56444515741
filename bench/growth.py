#!/usr/bin/env python3
"""How the cost of an operation grows: with the documents of a database, or of one with an index, with
connections, with the revisions of a document, with the size of a document that one path is read of.

    bench/growth.py [--build DIR] [--docs N,N,…] [--connections N,N,…] [--only PANEL]

The cost is the server's processor time an operation, which other load on the machine changes least;
the exponent is the slope of a straight line through its logarithm over the logarithm of the number:
0 is flat, 1 is in proportion. Writes growth.json and growth.svg to bench/results/.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import resource
import shutil
import statistics
import sys

import sides
from picture import open_svg, short

TOP = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 3
PAGE = 1000
UPDATED = 64  # documents that get many revisions


def say(text):
    print(text, file=sys.stderr, flush=True)


def cost(results):
    """Medians of rounds: microseconds of the server an operation, and of waiting."""
    return {"cpu_us": statistics.median(r["server_cpu_us"] / r["units"] for r in results),
            "p50_us": statistics.median(r["p50_us"] for r in results),
            "p99_us": statistics.median(r["p99_us"] for r in results),
            "rate": statistics.median(r["units"] / r["seconds"] for r in results)}


class Growth:
    def __init__(self, options):
        self.options = options
        self.load = sides.Loader(f"{options.build}/bench/load")
        self.series = {}
        self.server = None
        self.fresh = 0  # of the documents that measuring has written

    def note(self, panel, name, n, figures):
        self.series.setdefault(panel, {}).setdefault(name, []).append({"n": n, **figures})
        say(f"{panel} {n:>10,}  {name:<28} {figures['cpu_us']:>9.2f} µs CPU, "
            f"p50 {figures['p50_us']:>9.0f} µs, {figures['rate']:>10,.0f} a second")

    def repeat(self, op, **options):
        found = []
        for _ in range(ROUNDS):
            self.server.settle()
            found.append(self.load.run(self.server, op, seconds=self.options.seconds, **options))
        return found

    def write(self, op, **options):
        """New documents, among the others: their ids go on where the last ones ended."""
        found = []
        for _ in range(ROUNDS):
            self.server.settle()
            result = self.load.run(self.server, op, db="bench", first=self.fresh,
                                   seconds=self.options.seconds, **options)
            self.fresh = result["next"]
            found.append(result)
        return found

    def by_documents(self):
        self.server.make("bench")
        for n in self.options.docs:
            if n > self.fresh:
                say(f"loading up to {n:,} documents")
                self.fresh = self.load.run(self.server, "bulk", db="bench", first=self.fresh,
                                           connections=2, count=n - self.fresh)["next"]
            self.server.settle()
            panel = "documents"
            self.note(panel, "GET", n, cost(self.repeat("get", connections=16, docs=n)))
            for listing in ("_all_docs", "_changes"):
                self.note(panel, f"{listing}, a row of a page", n,
                          cost(self.repeat(listing, rows=PAGE, query=f"limit={PAGE}")))
            self.note(panel, "_all_docs with docs, a row", n, cost(self.repeat(
                "_all_docs", rows=PAGE, query=f"limit={PAGE}&include_docs=true")))
            self.note(panel, "update", n, cost(self.repeat("update", connections=16,
                                                           docs=min(n, 4096))))
            self.note(panel, "PUT", n, cost(self.write("put", connections=16)))
            self.note(panel, "_bulk_docs, a document", n, cost(self.write("bulk")))

    def by_documents_indexed(self):
        """What indexes find, and for comparison what a GET of the same documents costs."""
        self.server.make("indexed")
        self.server.make_index("indexed", "number")
        there = 0
        for n in self.options.docs:
            say(f"loading up to {n:,} documents")
            there = self.load.run(self.server, "bulk", db="indexed", first=there, connections=2,
                                  count=n - there)["next"]
            self.server.await_index("indexed", "number")
            panel = "indexed"
            for connections, of in ((16, ""), (1, ", 1 connection")):
                self.note(panel, f"_find one document{of}", n, cost(self.repeat(
                    "find", db="indexed", connections=connections, docs=n)))
            self.note(panel, "_find a hundred", n, cost(self.repeat(
                "find-range", db="indexed", docs=n, rows=100)))
            self.note(panel, "GET", n, cost(self.repeat("get", db="indexed", connections=16,
                                                        docs=n)))

    def by_connections(self):
        docs = min(self.options.docs[-1], 100000)
        for n in self.options.connections:
            self.note("connections", "GET", n, cost(self.repeat("get", connections=n, docs=docs)))
            self.note("connections", "PUT", n, cost(self.write("put", connections=n)))
            if n > 1:
                self.note("connections", "GET by 1, the others idle", n, cost(
                    self.repeat("get", connections=1, idle=n - 1, docs=docs)))

    def by_revisions(self):
        """Some documents, each with so many revisions; a stretch of updates at each length."""
        self.server.make("revisions")
        self.load.run(self.server, "bulk", db="revisions", batch=UPDATED, count=UPDATED)
        there = 1
        for n in self.options.revisions:
            if n > there:
                self.update(n - there)
            stretch = max(8, n // 8)
            result = self.update(stretch)
            there = n + stretch
            self.note("revisions", "update", n, cost([result]))
            self.note("revisions", "GET", n, cost(self.repeat("get", db="revisions", docs=UPDATED,
                                                              connections=16)))

    def update(self, times):
        """Every document so many times."""
        return self.load.run(self.server, "update", db="revisions", connections=16, docs=UPDATED,
                             count=UPDATED * times)

    def by_size(self):
        for n in self.options.sizes:
            self.server.make("big")
            self.load.run(self.server, "put-big", db="big", big=n, count=1)
            self.note("bytes", "one path", n, cost(self.repeat("path", db="big", big=n)))
            self.note("bytes", "the whole document", n,
                      cost(self.repeat("get-big", db="big", big=n)))

    def run(self):
        work = self.options.work
        shutil.rmtree(work, ignore_errors=True)
        chosen = {"scheme": self.options.scheme} if self.options.scheme else {}
        self.server = sides.Frond(f"{self.options.build}/frond", work, options=chosen)
        self.server.start()
        try:
            parts = {"bytes": self.by_size, "revisions": self.by_revisions,
                     "documents": self.by_documents, "indexed": self.by_documents_indexed,
                     "connections": self.by_connections}
            for panel, part in parts.items():
                if self.options.only in (None, panel):
                    part()
            return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                    "commit": sides.commit(TOP), "load_average": os.getloadavg()[0],
                    "processors": os.cpu_count(), "machine": platform.machine(),
                    "series": self.series, "exponents": exponents(self.series)}
        finally:
            self.server.stop()
            shutil.rmtree(work, ignore_errors=True)


def merge(old, new):
    """The last run of all panels, with one that was measured later."""
    later = dict(old.get("later", {}))
    for panel in new["series"]:
        later[panel] = {name: new[name] for name in ("date", "commit", "load_average")}
    series = {**old["series"], **new["series"]}
    return {**old, "series": series, "exponents": exponents(series), "later": later}


def slope(points):
    xs = [math.log(p["n"]) for p in points]
    ys = [math.log(max(p["cpu_us"], 0.001)) for p in points]
    x, y = statistics.mean(xs), statistics.mean(ys)
    below = sum((a - x) ** 2 for a in xs)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / below if below else 0.0


def exponents(series):
    return {panel: {name: round(slope(points), 3) for name, points in lines.items()
                    if len(points) > 1}
            for panel, lines in series.items()}


# ---- The picture ----

COLOURS = ["#2b6cb0", "#c05621", "#38a169", "#805ad5", "#d69e2e", "#e53e3e", "#718096"]
TITLES = {"documents": "documents in the database", "connections": "connections",
          "indexed": "documents in a database with an index",
          "revisions": "revisions of each document", "bytes": "bytes of the document"}
W, H = 500, 330
LEFT, RIGHT, TOP_ROOM, BOTTOM = 70, 26, 40, 118


def scale(values, low, high):
    first = math.floor(math.log10(min(values)))
    last = max(math.ceil(math.log10(max(values))), first + 1)
    return first, last, lambda v: low + (math.log10(v) - first) / (last - first) * (high - low)


def draw_panel(panel, lines, powers, x0, y0):
    xs = [p["n"] for points in lines.values() for p in points]
    ys = [max(p["cpu_us"], 0.01) for points in lines.values() for p in points]
    first, last, x_of = scale(xs, x0 + LEFT, x0 + W - RIGHT)
    low, high, y_of = scale(ys, y0 + H - BOTTOM, y0 + TOP_ROOM)
    out = [f'<text x="{x0 + LEFT}" y="{y0 + 20}" font-weight="bold">{TITLES[panel]}</text>']
    for d in range(first, last + 1):
        x = x_of(10 ** d)
        out.append(f'<line x1="{x:.0f}" y1="{y0 + TOP_ROOM}" x2="{x:.0f}" y2="{y0 + H - BOTTOM}" '
                   f'class="grid"/><text x="{x:.0f}" y="{y0 + H - BOTTOM + 15}" '
                   f'text-anchor="middle" class="faint">{short(10 ** d)}</text>')
    for d in range(low, high + 1):
        y = y_of(10 ** d)
        out.append(f'<line x1="{x0 + LEFT}" y1="{y:.0f}" x2="{x0 + W - RIGHT}" y2="{y:.0f}" '
                   f'class="grid"/><text x="{x0 + LEFT - 6}" y="{y + 4:.0f}" '
                   f'text-anchor="end" class="faint">{10 ** d:g} µs</text>')
    for i, (name, points) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{x_of(p['n']):.1f},{y_of(max(p['cpu_us'], 0.01)):.1f}" for p in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x_of(p["n"]):.1f}" cy="{y_of(max(p["cpu_us"], 0.01)):.1f}" r="3" '
                f'fill="{colour}"/>' for p in points]
        x, y = x0 + LEFT + i % 2 * 215, y0 + H - BOTTOM + 38 + i // 2 * 17
        exponent = f", n^{round(powers[name], 2) + 0.0:.2f}" if name in powers else ""
        out.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
                   f'<text x="{x + 15}" y="{y}">{name}{exponent}</text>')
    return out


def draw(found):
    out = open_svg(2 * W, (len(found["series"]) + 1) // 2 * H + 52, 11)
    out.append('<text x="16" y="22" font-size="15" font-weight="bold">What one operation costs '
               'the server\'s processors as things grow</text>'
               '<text x="16" y="40" class="faint">n^0: always the same; n^1: in proportion. Both '
               'axes are logarithmic.</text>')
    for i, (panel, lines) in enumerate(found["series"].items()):
        out += draw_panel(panel, lines, found["exponents"][panel], i % 2 * W, 48 + i // 2 * H)
    return "\n".join(out) + "\n</svg>\n"


# ---- The document ----

BEGIN = "<!-- growth: made by `bench/growth.py` -->"
END = "<!-- /growth -->"


def amount(us):
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"


def as_markdown(found):
    out = []
    for panel, lines in found["series"].items():
        ns = [p["n"] for p in max(lines.values(), key=len)]
        out += [f"| µs of processor time by {TITLES[panel]} | "
                + " | ".join(f"{n:,}" for n in ns) + " | exponent |",
                "|---|" + "---:|" * (len(ns) + 1)]
        for name, points in lines.items():
            by_n = {p["n"]: p["cpu_us"] for p in points}
            cells = [amount(by_n[n]) if n in by_n else "" for n in ns]
            power = found["exponents"][panel].get(name)
            shown = re.sub(r"(_\w+)", r"`\1`", name)
            out.append(f"| {shown} | " + " | ".join(cells) + f" | {power:.2f} |")
        run = found.get("later", {}).get(panel)
        if run:
            out += ["", f"Measured later, on {run['date']} at {run['commit']}, load average "
                    f"{run['load_average']:.0f} at the end."]
        out.append("")
    return "\n".join(out)


def publish(found, path):
    old = path.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"{path} has no place for the exponents")
    text = f"{BEGIN}\n\n{as_markdown(found)}\n{END}"
    path.write_text(old[:old.index(BEGIN)] + text + old[old.index(END) + len(END):])


def publish_last(options):
    found = json.loads((options.out / "growth.json").read_text())
    (options.out / "growth.svg").write_text(draw(found))
    publish(found, TOP / "docs" / "PERFORMANCE.md")


def numbers(text):
    return [int(n) for n in text.split(",")]


def allow_descriptors():
    """Ten thousand connections want more than the usual limit; without the right to that, fewer."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (65536, max(hard, 65536)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 5 // 8 - 16


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--docs", type=numbers, default=numbers("10000,100000,1000000"))
    parser.add_argument("--connections", type=numbers, default=numbers("1,10,100,1000,10000"))
    parser.add_argument("--revisions", type=numbers, default=numbers("1,10,100,1000"))
    parser.add_argument("--sizes", type=numbers, default=numbers("5000,50000,500000"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--scheme", help="how documents are kept (default: the server's)")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=TOP / "bench" / "results")
    parser.add_argument("--only", choices=sorted(set(TITLES) - {"connections"}),
                        help="measure one panel, and keep the others of the last run")
    parser.add_argument("--publish", action="store_true",
                        help="put the exponents into docs/PERFORMANCE.md, too")
    parser.add_argument("--reuse", action="store_true",
                        help="publish the last run's and measure nothing")
    options = parser.parse_args()
    if options.reuse:
        publish_last(options)
        return
    options.build = str(pathlib.Path(options.build).resolve())
    options.work = (options.work or pathlib.Path(options.build) / "bench" / "growth").resolve()
    most = allow_descriptors()
    if max(options.connections) > most:
        say(f"the limit of open files allows {most:,} connections")
    options.connections = sorted({min(n, most) for n in options.connections})
    found = Growth(options).run()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.only:
        found = merge(json.loads((options.out / "growth.json").read_text()), found)
    (options.out / "growth.json").write_text(json.dumps(found, indent=1) + "\n")
    (options.out / "growth.svg").write_text(draw(found))
    if options.publish:
        publish(found, TOP / "docs" / "PERFORMANCE.md")
    for panel, lines in found["exponents"].items():
        for name, power in lines.items():
            print(f"{TITLES[panel]:<28} {name:<30} n^{power:.2f}")


if __name__ == "__main__":
    main()

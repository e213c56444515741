#!/usr/bin/env python3
"""The bench's results as a table, as a picture, and in the documents that show them.

    bench/table.py [RESULTS.json]            prints the table
    bench/table.py --publish [RESULTS.json]  and puts it into docs/PERFORMANCE.md
"""

import json
import pathlib
import sys

from picture import open_svg

TOP = pathlib.Path(__file__).resolve().parent.parent
TARGETS = json.loads((TOP / "bench" / "targets.json").read_text())
RECORDED = "CouchDB 3.5 (recorded)"

TITLES = {
    "put-1": "`PUT` new document, 1 connection",
    "put-16": "`PUT` new document, 16",
    "put-64": "`PUT` new document, 64",
    "update-16": "update a document, 16",
    "update-64": "update a document, 64",
    "get-1": "`GET` one document, 1",
    "get-16": "`GET` one document, 16",
    "get-64": "`GET` one document, 64",
    "bulk-1": "`_bulk_docs` by 1,000, 1 writer",
    "bulk-4": "`_bulk_docs` by 1,000, 4 writers",
    "changes": "`_changes`, rows",
    "changes-docs": "`_changes` with documents, rows",
    "all-docs": "`_all_docs`, rows",
    "all-docs-docs": "`_all_docs` with documents, rows",
    "path": "a path of a 500 KB document (peers: all of it)",
    "get-big": "`GET` that document whole",
    "nested-bulk": "21,024 nested documents of MDN's data, bulk",
    "nested-get": "`GET` one of those, 16",
    "index-number": "index on a number, documents",
    "index-string": "index on a short string, documents",
    "find-16": "`_find` one document by an index, 16",
    "find-range": "`_find` 100 documents by an index, 1",
    "find-scan": "`_find` without an index, documents looked at",
    "put-indexed-16": "`PUT` new document with three indexes, 16",
    "put-validated-16": "`PUT` new document under `validate_doc_update`, 16",
    "bulk-validated-1": "`_bulk_docs` under `validate_doc_update`, 1 writer",
    "view-map": "view of a map built, documents",
    "view-count": "view with `_count` built, documents",
    "view-rows": "a view's rows",
    "view-one-16": "first row of a view, 16",
    "view-grouped": "`_sum` of all rows by 100 groups, groups",
    "pull": "PouchDB pulling all documents",
    "databases-created": "databases created, 100,000 by 16 clients (CouchDB: 1,000)",
    "databases-cold": "one of these databases opened cold, 1",
    "disk-bulk": "disk bytes a document, bulk loaded",
    "disk-single": "disk bytes a document, single writes",
    "databases-disk": "disk bytes a database at rest, of 100,000",
    "memory-rest": "memory at rest, MB",
    "memory-loaded": "memory, all documents, 1,000 connections, MB",
}


def recorded(workload):
    """CouchDB's figures that were measured before, in the shape of results."""
    t = TARGETS.get(workload, {})
    names = {"rate": "rate", "p99": "p99_ms", "cpu": "cpu_us", "bytes": "bytes", "mb": "mb"}
    return {ours: t[theirs] for theirs, ours in names.items() if theirs in t}


def couch_side(found):
    return next((s for s in found["sides"] if s.startswith("CouchDB")), None)


def peers(found):
    """Names of the sides beside frond; CouchDB's recorded figures where it was not there."""
    named = [s for s in found["sides"] if s != "frond" and not s.startswith("frond,")]
    return named if couch_side(found) else named + [RECORDED]


def figures(found, workload, side):
    if side == RECORDED:
        known = recorded(workload)
        if workload in ("path", "get-big"):
            return {}
        return known
    return found["results"].get(workload, {}).get(side, {})


def value(f):
    for name in ("rate", "bytes", "mb"):
        if f.get(name) is not None:
            return f[name]
    return None


def number(x):
    if x is None:
        return ""
    if x >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if x >= 1 else f"{x:.2f}"


def judge(found, workload, side="frond", scheme=None):
    """What was aimed at and missed, in words; None where there is no target."""
    t = TARGETS.get(workload)
    f = figures(found, workload, side)
    if not t or value(f) is None:
        return None
    couch = couch_side(found)
    c = {**recorded(workload), **(figures(found, workload, couch) if couch else {})}
    missed = []
    if "times" in t and value(c):
        times = value(f) / value(c)
        wanted = t.get("times_" + scheme, t["times"]) if scheme else t["times"]
        if times < wanted:
            missed.append(f"{times:.1f}× of {wanted}×")
    for key, share in (("p99_ms", "p99_share"), ("cpu_us", "cpu_share")):
        if share in t and f.get(key) and f[key] > c[key] * t[share]:
            missed.append(f"{key.split('_')[0]} {number(f[key])} of {number(c[key] * t[share])}")
    if "cpu_ratio" in t and f.get("cpu_ratio", 0) > t["cpu_ratio"]:
        missed.append(f"{f['cpu_ratio']:.2f} of {t['cpu_ratio']} times the cpu of none")
    limit = figures(found, workload, "limit") if side == "frond" else {}
    if "limit" in t and limit and f["rate"] < limit["rate"] * t["limit"]:
        missed.append(f"{f['rate'] / limit['rate']:.2f} of {t['limit']} of the limit")
    if "share" in t and value(f) > value(c) * t["share"]:
        missed.append(f"{value(f) / value(c):.2f} of {t['share']}")
    if "least" in t and value(f) < t["least"]:
        missed.append(f"{number(value(f))} of {number(t['least'])}")
    if "most" in t and value(f) > t["most"]:
        missed.append(f"{number(value(f))} of {t['most']}")
    return missed


def rows(found):
    """A row a workload, and one more where frond's other scheme was measured."""
    scheme = found.get("scheme")
    other = next((s for s in found["sides"] if s.startswith("frond,")), None)
    for workload, title in TITLES.items():
        if value(figures(found, workload, "frond")) is not None:
            yield row_of(found, workload, title, "frond", scheme)
        if other and value(figures(found, workload, other)) is not None:
            kind = other.split(", ")[1]
            yield row_of(found, workload, f"{title}, {kind}", other, kind)


def row_of(found, workload, title, side, scheme):
    """Title, frond's figures, each peer's with the ratio, the limit's."""
    f = figures(found, workload, side)
    row = [title, number(value(f)), number(f.get("p99_ms")), number(f.get("cpu_us")),
           number(f.get("peak_mb"))]
    for peer in peers(found):
        p = figures(found, workload, peer)
        row.append(number(value(p)))
        if not value(p):
            row.append("")
        elif "rate" in f:
            row.append(number(value(f) / value(p)) + "×")
        else:
            row.append(f"{value(f) / value(p):.2f}×")
    limit = figures(found, workload, "limit") if side == "frond" else {}
    row.append(number(limit.get("rate")))
    row.append(f"{f['rate'] / limit['rate']:.2f}" if limit else "")
    missed = judge(found, workload, side, scheme)
    row.append("" if missed is None else "met" if not missed else "; ".join(missed))
    return row


def head(found):
    names = ["workload", "frond", "p99 ms", "CPU µs", "peak MB"]
    for peer in peers(found):
        names += [peer, "frond/it"]
    return names + ["limit", "of it", "target"]


def as_text(found):
    lines = [head(found)] + [[c.replace("`", "") for c in row] for row in rows(found)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    out = []
    for line in lines:
        out.append("  ".join(cell.ljust(w) if i in (0, len(line) - 1) else cell.rjust(w)
                             for i, (cell, w) in enumerate(zip(line, widths))).rstrip())
    a = found["about"]
    out.append(f"\n{a['date']}, {a['commit']}; {a['processors']} × {a['processor']}; medians of "
               f"{a['rounds']} rounds; load average at the end {a['load_average']:.1f}")
    return "\n".join(out)


def merge(old, new):
    """The results of a whole run with those of some workloads that were measured later."""
    results = dict(old["results"])
    later = [dict(run) for run in old.get("later", [])]
    for run in later:
        run["workloads"] = [w for w in run["workloads"] if w not in new["results"]]
    for workload in new["results"]:
        results[workload] = new["results"][workload]
    later.append({"about": new["about"], "workloads": sorted(new["results"])})
    return {**old, "results": results, "later": [run for run in later if run["workloads"]]}


def as_markdown(found):
    lines = [head(found)] + list(rows(found))
    out = ["| " + " | ".join(lines[0]) + " |",
           "|---|" + "---:|" * (len(lines[0]) - 1)]
    out += ["| " + " | ".join(line) + " |" for line in lines[1:]]
    return "\n".join(out)


# ---- The picture ----

PALETTE = ["#2b6cb0", "#c05621", "#718096", "#38a169"]
BAR = 11
LEFT = 330
WIDTH = 900


def write_picture(found, path):
    """Bars on a logarithmic scale, how many times as fast as each peer frond is."""
    names = peers(found) + ["limit"]
    bars = []
    for workload, title in TITLES.items():
        f = figures(found, workload, "frond")
        if "rate" not in f:
            continue
        ratios = []
        for name in names:
            p = figures(found, workload, name)
            if value(p):
                ratios.append((name, value(f) / value(p)))
        if ratios:
            bars.append((title.replace("`", ""), ratios))
    path.write_text(draw(bars, names, found["about"]))


def draw(bars, names, info):
    top = 62
    height = top + sum(len(r) * BAR + 12 for _, r in bars) + 40
    decades = (-1, 0, 1, 2, 3)
    unit = (WIDTH - LEFT - 70) / (decades[-1] - decades[0])

    def x_of(ratio):
        import math
        return LEFT + (math.log10(max(ratio, 0.1)) - decades[0]) * unit

    out = open_svg(WIDTH, height, 12)
    out.append('<text x="16" y="22" font-size="15" font-weight="bold">Operations a second: frond '
               'as a multiple of each peer and of its limit; logarithmic scale</text>')
    for i, name in enumerate(names):
        out.append(f'<rect x="{16 + i * 210}" y="34" width="11" height="11" '
                   f'fill="{PALETTE[i % len(PALETTE)]}"/>'
                   f'<text x="{32 + i * 210}" y="44">÷ {name}</text>')
    for d in decades:
        x = x_of(10 ** d)
        out.append(f'<line x1="{x:.0f}" y1="{top - 8}" x2="{x:.0f}" y2="{height - 34}" '
                   f'class="{"one" if d == 0 else "grid"}"/>'
                   f'<text x="{x:.0f}" y="{height - 20}" text-anchor="middle" class="faint">'
                   f'{10 ** d:g}×</text>')
    y = top
    for title, ratios in bars:
        out.append(f'<text x="{LEFT - 8}" y="{y + len(ratios) * BAR / 2 + 4:.0f}" '
                   f'text-anchor="end">{title}</text>')
        for name, ratio in ratios:
            colour = PALETTE[names.index(name) % len(PALETTE)]
            one, end = x_of(1), x_of(ratio)
            out.append(f'<rect x="{min(one, end):.1f}" y="{y}" width="{abs(end - one):.1f}" '
                       f'height="{BAR - 2}" fill="{colour}"/>'
                       f'<text x="{end + (4 if ratio >= 1 else -4):.1f}" y="{y + BAR - 3}" '
                       f'font-size="10" text-anchor="{"start" if ratio >= 1 else "end"}">'
                       f'{number(ratio)}</text>')
            y += BAR
        y += 12
    out.append(f'<text x="16" y="{height - 4}" font-size="10" class="faint">{info["date"]}, '
               f'{info["processors"]} × {info["processor"]}</text></svg>')
    return "\n".join(out) + "\n"


# ---- The documents ----

BEGIN = "<!-- bench: made by `bench/table.py --publish` -->"
END = "<!-- /bench -->"


def detail(found):
    """What the table leaves out: latencies and processor time of every side."""
    names = ["frond"] + peers(found) + ["limit"]
    out = ["| | " + " | ".join(f"{n}: p50, p99 ms | CPU µs" for n in names) + " |",
           "|---|" + "---:|" * (2 * len(names))]
    for workload, title in TITLES.items():
        if "rate" not in figures(found, workload, "frond"):
            continue
        cells = [title]
        for name in names:
            f = figures(found, workload, name)
            cells.append(", ".join(number(f[k]) for k in ("p50_ms", "p99_ms") if k in f))
            cells.append(number(f.get("cpu_us")))
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def told_later(found):
    """Which rows are of other runs."""
    out = ""
    for run in found.get("later", []):
        a = run["about"]
        titles = "; ".join(title for workload, title in TITLES.items()
                           if workload in run["workloads"])
        out += (f"\n\nOf a later run, on {a['date'].split()[0]} at {a['commit']}, medians of "
                f"{a['rounds']} rounds, load average {a['load_average']:.0f}: {titles}.")
    return out


def publish(found, path):
    a, scheme = found["about"], found["scheme"]
    text = (f"{BEGIN}\n\n{as_markdown(found)}\n\n{detail(found)}\n\n"
            f"Made by `make bench` on {a['date'].split()[0]} at {a['commit']}, on "
            f"{a['processors']} × {a['processor']}, the clients on the same processors; medians "
            f"of {a['rounds']} rounds; load average {a['load_average']:.0f} at the end. Documents are "
            f"kept {scheme} unless a row says otherwise.{told_later(found)}\n\n{END}")
    old = path.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"{path} has no place for the table")
    path.write_text(old[:old.index(BEGIN)] + text + old[old.index(END) + len(END):])


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    path = pathlib.Path(arguments[0]) if arguments else TOP / "bench" / "results" / "bench.json"
    found = json.loads(path.read_text())
    print(as_text(found))
    write_picture(found, path.with_suffix(".svg"))
    if "--publish" in sys.argv:
        publish(found, TOP / "docs" / "PERFORMANCE.md")


if __name__ == "__main__":
    main()

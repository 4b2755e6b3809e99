#!/usr/bin/env python3
"""Derives the figures of a benchmark again from what `deploy/bench NAME --raw DIR` left, with the standard library alone.

Prints one JSON object with the keys the benchmark printed. A folder without a known file is an error, never an empty answer.
"""
import csv
import json
import pathlib
import sys


def percentile(samples, share):
    """Nearest rank below, as the programs do it; no samples are an error."""
    ordered = sorted(samples)
    return ordered[int(share * (len(ordered) - 1))]


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def journal(folder):
    alone = rows(folder / "journal_alone.csv")
    crowd = rows(folder / "journal_crowd.csv")
    shares = [float(r["journal_per_second"]) / float(r["bare_per_second"]) for r in crowd]
    return {
        "alone_over_raw_p50_us": round(
            percentile([float(r["journal_us"]) for r in alone], 0.5) - percentile([float(r["raw_us"]) for r in alone], 0.5), 1),
        "syncs_per_1000_at_256": round(percentile([float(r["syncs_per_1000"]) for r in crowd], 0.5), 2),
        "grouped_over_bare_rocksdb": round(percentile(shares, 0.5), 2),
    }


def api(folder):
    samples = {}
    for row in rows(folder / "api.csv"):
        samples.setdefault((row["call"], row["phase"]), []).append(float(row["us"]))
    p99 = {key: percentile(values, 0.99) for key, values in samples.items()}
    return {
        "get_p99_over_echo": round(p99["get", "load"] / p99["get echo", "load"], 2),
        "list27_p99_over_echo": round(p99["list27", "load"] / p99["list27 echo", "load"], 2),
        "get_rest_p99_ms": round(p99["get", "rest"] / 1000, 3),
        "list27_rest_p99_ms": round(p99["list27", "rest"] / 1000, 3),
    }


def restart(folder):
    totals = {}
    for row in rows(folder / "restart.csv"):
        totals[row["round"]] = totals.get(row["round"], 0.0) + float(row["seconds"])
    return {"seconds_1m_events": round(max(totals.values()), 3)}


def modbus(folder):
    total = rows(folder / "modbus.csv")[0]
    return {"reads": int(total["reads"]), "wrong_values": int(total["wrong"]), "late_replies": int(total["late"])}


def power(folder):
    worst = {}
    for row in rows(folder / "power.csv"):
        worst[row["event"]] = max(worst.get(row["event"], 0.0), float(row["seconds"]))
    return {"cap_excursion_s": round(worst["step"], 2), "shelf_loss_s": round(worst["shelf"], 2)}


BENCHES = (("power.csv", power), ("modbus.csv", modbus), ("journal_alone.csv", journal), ("api.csv", api), ("restart.csv", restart))


def main(arguments):
    if len(arguments) != 1:
        sys.exit("usage: recompute.py DIR")
    folder = pathlib.Path(arguments[0])
    figures = {}
    for name, derive in BENCHES:
        if (folder / name).exists():
            figures.update(derive(folder))
    if not figures:
        sys.exit(f"{folder}: none of {', '.join(name for name, _ in BENCHES)} is there")
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1:])

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


def cooling(folder):
    """Each figure the worst of the drawn plants; plant 0 is the nominal one and counts for none."""
    runs = {}
    for row in rows(folder / "cooling.csv"):
        if row["plant"] != "0":
            runs.setdefault(row["run"], {}).setdefault(row["plant"], []).append(row)

    def worst(run, figure, of=max):
        return of(figure(plant) for plant in runs[run].values())

    def last_outside(plant, outside):
        return max((float(r["at_s"]) for r in plant if outside(r)), default=0.0)

    def swing(plant):
        flows = [float(r["flow_share"]) for r in plant]
        return (max(flows) - min(flows)) / 2

    steady = [run for run in runs if run.startswith("steady_")]
    figures = {
        "steady_c": round(max(worst(s, lambda p: max(abs(float(r["supply_error_c"])) for r in p)) for s in steady), 2),
        "overshoot_c": round(worst("step_up", lambda p: max(0.0, max(float(r["supply_error_c"]) for r in p))), 2),
        "settle_s": round(worst("step_up", lambda p: last_outside(p, lambda r: abs(float(r["supply_error_c"])) > 0.5))),
        "dp_kpa": round(max(worst(s, lambda p: max(abs(float(r["dp_kpa"]) - float(r["dp_set_kpa"])) for r in p)) for s in steady), 2),
        "pump_recovery_s": round(worst("pump_loss", lambda p: last_outside(
            p, lambda r: abs(float(r["dp_kpa"]) / float(r["dp_set_kpa"]) - 1) > 0.05)), 1),
        "stiction_swing": round(worst("stiction", swing), 4),
    }
    if "day_controlled" in runs:
        def kw(run, plant):
            return sum(float(r["pump_kw"]) for r in runs[run][plant])
        figures["pump_energy_saved"] = round(min(
            1 - kw("day_controlled", plant) / kw("day_constant", plant) for plant in runs["day_controlled"]), 3)
    return figures


def sim(folder):
    values = {}
    for row in rows(folder / "sim.csv"):
        values.setdefault(row["what"], []).append((float(row["plant_s"]), float(row["value"])))
    slices = values["slice_wall_s"]
    return {
        "speed_8_racks": round(sum(s for s, _ in slices) / sum(wall for _, wall in slices), 1),
        "heat_balance_error": round(max(value for _, value in values["balance"]), 6),
    }


def interlock(folder):
    faults, leaks = [], []
    for row in rows(folder / "interlock.csv"):
        (faults if row["what"] == "fault" else leaks).append(row)
    wire = rows(folder / "interlock_wire.csv") if (folder / "interlock_wire.csv").exists() else []
    wire_faults = [int(r["tripped_ns"]) for r in wire if r["what"] == "fault"]
    wire_leaks = [int(r["tripped_ns"]) for r in wire if r["what"] == "leak"]
    return {
        "logic_faults": len(faults),
        "wire_faults": len(wire_faults),
        "false_trips": sum(float(r["tripped_ms"]) >= 0 for r in faults) + sum(at >= 0 for at in wire_faults),
        "logic_leaks": len(leaks),
        "wire_leaks": len(wire_leaks),
        "missed": sum(not 0 <= float(r["tripped_ms"]) <= float(r["allowed_ms"]) for r in leaks) + sum(at < 0 for at in wire_leaks),
    }


def leak(folder):
    trips = [{key: int(value in ("1", "true")) if key == "rack" else int(value) for key, value in row.items() if key != "source"}
             for row in rows(folder / "leak.csv")]
    racks = [trip for trip in trips if trip["rack"]]
    trays = [trip for trip in trips if not trip["rack"]]

    def p99(chosen, figure, scale):
        """Nearest rank above: of few trips the worst."""
        ordered = sorted(figure(trip) / scale for trip in chosen)
        return round(ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 3)

    return {
        "trips": len(trips),
        "rack_trips": len(racks),
        "first_forceoff_p99_ms": p99(trips, lambda t: t["first_off_ns"] - t["seen_ns"], 1e6),
        "all_trays_p99_ms": p99(racks, lambda t: t["last_off_ns"] - t["seen_ns"], 1e6),
        "polled_over_interval_ms": p99(racks, lambda t: t["first_off_ns"] - t["edge_ns"] - t["interval_ns"] - t["service_ns"], 1e6),
        "tray_off_p99_s": p99(trays, lambda t: t["done_ns"] - t["seen_ns"], 1e9),
        "isolated_p99_s": p99(racks, lambda t: t["done_ns"] - t["seen_ns"], 1e9),
    }


def rest(folder):
    samples = [{key: float(value) for key, value in row.items()} for row in rows(folder / "rest.csv")]
    first, last = samples[0], samples[-1]
    seconds = last["at_s"] - first["at_s"]

    def share(*programs):
        return round(sum(last[p + "_cpu_s"] - first[p + "_cpu_s"] for p in programs) / seconds, 3)

    return {
        "seconds": round(seconds),
        "cpu_core_fraction": share("busbard", "interlock"),
        "busbard_core_fraction": share("busbard"),
        "interlock_core_fraction": share("interlock"),
        "rss_mib": round(max(s["busbard_mib"] + s["interlock_mib"] for s in samples), 1),
        "points_per_s": round((last["points"] - first["points"]) / seconds),
    }


BENCHES = (("rest.csv", rest), ("interlock.csv", interlock), ("leak.csv", leak), ("power.csv", power), ("modbus.csv", modbus), ("journal_alone.csv", journal), ("api.csv", api), ("restart.csv", restart),
           ("cooling.csv", cooling), ("sim.csv", sim))


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

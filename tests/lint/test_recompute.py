#!/usr/bin/env python3
"""deploy/bench --recompute: the figures follow from the raw samples, and an empty folder is an error."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

RECOMPUTE = pathlib.Path(__file__).resolve().parent.parent / "bench" / "recompute.py"


def run(folder):
    return subprocess.run([sys.executable, str(RECOMPUTE), str(folder)], capture_output=True, text=True, timeout=60)


class Recompute(unittest.TestCase):
    def test_derives_each_benchmarks_figures_from_its_samples(self):
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            (at / "journal_alone.csv").write_text("journal_us,raw_us\n300,100\n200,90\n400,110\n")
            (at / "journal_crowd.csv").write_text(
                "round,journal_per_second,bare_per_second,syncs_per_1000\n0,50,100,5\n1,60,100,6\n2,70,100,7\n")
            (at / "restart.csv").write_text("round,stage,seconds\n0,open,0.5\n0,load,0.25\n1,open,0.4\n1,load,0.1\n")
            (at / "api.csv").write_text(
                "call,phase,us\n" + "".join(f"{c},{p},{v}\n" for c, v in
                                            (("get", 200), ("get echo", 100), ("list27", 600), ("list27 echo", 400))
                                            for p in ("rest", "load")))
            done = run(folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), {
                "alone_over_raw_p50_us": 200.0, "syncs_per_1000_at_256": 6.0, "grouped_over_bare_rocksdb": 0.6,
                "get_p99_over_echo": 2.0, "list27_p99_over_echo": 1.5, "get_rest_p99_ms": 0.2, "list27_rest_p99_ms": 0.6,
                "seconds_1m_events": 0.75})

    def test_derives_the_cooling_figures_from_the_worst_drawn_plant(self):
        head = "plant,run,at_s,supply_error_c,dp_kpa,dp_set_kpa,flow_share,pump_kw,hottest_c\n"
        lines = []
        for plant, error in ((0, 9.0), (1, 0.1), (2, -0.25)):
            lines += [f"{plant},steady_50,{t},{error},101.5,100,0.6,1,80" for t in (1, 2)]
            lines += [f"{plant},step_up,{t},{abs(error) * 4 if t < 40 else 0.1},100,100,0.6,1,80" for t in (1, 39, 50)]
            lines += [f"{plant},pump_loss,{t},0,{90 if t < 2 else 101},100,0.6,1,80" for t in (0.1, 1.3, 9)]
            lines += [f"{plant},stiction,{t},0,100,100,{0.6 + 0.004 * t},1,80" for t in (1, 2)]
            lines += [f"{plant},day_controlled,60,0,100,100,0.6,{0.5 + plant / 10},80", f"{plant},day_constant,60,0,100,100,0.6,1,80"]
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "cooling.csv").write_text(head + "\n".join(lines) + "\n")
            done = run(folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), {
                "steady_c": 0.25, "overshoot_c": 1.0, "settle_s": 39, "dp_kpa": 1.5, "pump_recovery_s": 1.3,
                "stiction_swing": 0.002, "pump_energy_saved": 0.3})

    def test_derives_the_interlocks_and_the_power_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            at = pathlib.Path(folder)
            (at / "interlock.csv").write_text(
                "what,fault,confirm_ms,tripped_ms,allowed_ms\nfault,stale,0,-1,-1\nfault,absent,0,40,-1\n"
                "leak,stale,0,900,1000\nleak,stale,0,-1,1000\nleak,stale,0,1100,1000\n")
            (at / "leak.csv").write_text(
                "rack,source,edge_ns,event_ns,seen_ns,first_off_ns,last_off_ns,done_ns,service_ns,interval_ns\n"
                "false,r01/c01,0,900000,1000000,1500000,1500000,501000000,0,0\n"
                "true,cdu01,0,0,260000000,261000000,270000000,5260000000,10000000,250000000\n")
            (at / "interlock_wire.csv").write_text(
                "what,fault,tray,confirm_ms,wet_ns,tripped_ns\nfault,stale,r01/c01,500,0,-1\nfault,absent,r01/c02,500,0,7\n"
                "leak,frozen,r01/c01,500,1,9\nleak,absent,r01/c01,500,1,-1\n")
            (at / "power.csv").write_text("rack,event,seconds\n1,step,0.4\n2,step,0.5\n1,shelf,0.3\n")
            (at / "modbus.csv").write_text("reads,wrong,failed,sent,timeouts,late,seconds\n1000,0,0,1050,50,50,1.5\n")
            done = run(folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), {
                "logic_faults": 2, "wire_faults": 2, "false_trips": 2, "logic_leaks": 3, "wire_leaks": 2, "missed": 3, "trips": 2, "rack_trips": 1,
                "first_forceoff_p99_ms": 1.0, "all_trays_p99_ms": 10.0, "polled_over_interval_ms": 1.0, "tray_off_p99_s": 0.5,
                "isolated_p99_s": 5.0, "cap_excursion_s": 0.5, "shelf_loss_s": 0.3,
                "reads": 1000, "wrong_values": 0, "late_replies": 50})

    def test_derives_the_simulators_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "sim.csv").write_text(
                "what,plant_s,value\nslice_wall_s,60,0.5\nbalance,60,1e-12\nslice_wall_s,60,0.7\nbalance,120,0.0004\n")
            done = run(folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), {"speed_8_racks": 100.0, "heat_balance_error": 0.0004})

    def test_derives_the_figures_of_a_rack_at_rest(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "rest.csv").write_text(
                "at_s,busbard_cpu_s,interlock_cpu_s,busbard_mib,interlock_mib,points\n"
                "0.5,10.0,5.0,90.0,10.0,1000\n5.5,10.5,5.1,99.0,12.5,60000\n10.5,11.0,5.2,98.0,12.0,111000\n")
            done = run(folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), {
                "seconds": 10, "cpu_core_fraction": 0.12, "busbard_core_fraction": 0.1, "interlock_core_fraction": 0.02,
                "rss_mib": 111.5, "points_per_s": 11000})

    def test_refuses_a_folder_without_samples(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertNotEqual(run(folder).returncode, 0)


if __name__ == "__main__":
    unittest.main()

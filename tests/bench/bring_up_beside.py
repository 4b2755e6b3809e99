#!/usr/bin/env python3
"""A rack brought from dark to production, and again, beside a measurement: a simulator, a busbard and an interlock of their own.

usage: bring_up_beside.py FOLDER_OF_PROGRAMS. One line a bring-up, PRODUCTION or FAILED with its seconds, until SIGTERM.
"""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from harness import Site  # noqa: E402


def stop(*unused):
    sys.exit(0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, stop)
    for seed in range(1, 1_000_000):
        with Site(sys.argv[1], profile="quick", seed=seed) as site:
            site.apply()
            began = time.monotonic()
            done = site.busbar("rack", "bringup", "r01", "--wait", "--yes", "--timeout", "600s", seconds=700)
            print("%s %.1f" % ("PRODUCTION" if done.code == 0 else "FAILED", time.monotonic() - began), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What --attest costs: the same run with and without it, in pairs, so that a busy moment hits both.

Usage: scripts/attest-cost.py [PAIRS]      (after make and make rootfs)
"""

import statistics
import subprocess
import sys
import time

RUN = ["build/mayfly", "run", "--rootfs", "build/rootfs"]


def run_ms(*flags):
    start = time.monotonic()
    subprocess.run([*RUN, *flags, "true"], check=True)
    return (time.monotonic() - start) * 1e3


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    plain, attested = [], []
    run_ms()
    for i in range(pairs):
        if i % 2:
            plain.append(run_ms())
        attested.append(run_ms("--attest"))
        if not i % 2:
            plain.append(run_ms())
    ratio = statistics.median(b / a for a, b in zip(plain, attested))
    print(
        f"`true`, {pairs} pairs, median: {statistics.median(plain):.2f} ms without, "
        f"{statistics.median(attested):.2f} ms with --attest; ratio of a pair {ratio:.2f}"
    )


main()

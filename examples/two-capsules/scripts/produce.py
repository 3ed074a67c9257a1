"""Writes as many measurements as the argument says."""
import csv
import os
import sys

PLACE = "/mnt/handover/measurements.csv"

with open(PLACE + ".part", "w", newline="", encoding="utf-8") as file:
    rows = csv.writer(file)
    rows.writerow(["number", "celsius"])
    for number in range(1, int(sys.argv[1]) + 1):
        rows.writerow([number, f"{15 + number * 7 % 10 / 4:.2f}"])
os.replace(PLACE + ".part", PLACE)  # whoever reads it has all of it

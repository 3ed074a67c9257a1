"""Sums up the measurements."""
import csv
import json
from decimal import Decimal

with open("/mnt/handover/measurements.csv", newline="", encoding="utf-8") as file:
    values = [Decimal(row["celsius"]) for row in csv.DictReader(file)]

mean = (sum(values) / len(values)).quantize(Decimal("0.001"))
with open("/mnt/handover/summary.json", "w", encoding="utf-8") as file:
    json.dump({"count": len(values), "mean": float(mean), "highest": float(max(values))}, file)

"""Sums up the takings of the fruit stalls.

Runs inside the capsule: the file system with the CSV is mounted at /mnt/data, and the report that is
written there is still there when the capsule is gone.
"""
import csv
from pathlib import Path

DATA = Path("/mnt/data")


def takings(rows, column):
    """Crates and cents for each value of a column, highest takings first."""
    sums = {}
    for row in rows:
        crates, cents = sums.get(row[column], (0, 0))
        sold = int(row["crates"])
        sums[row[column]] = (crates + sold, cents + sold * int(row["cents_per_crate"]))
    return sorted(sums.items(), key=lambda entry: -entry[1][1])


def table(heading, entries):
    lines = [f"| {heading} | Crates | Takings |", "|---|---:|---:|"]
    for name, (crates, cents) in entries:
        lines.append(f"| {name} | {crates} | {cents / 100:.2f} |")
    return lines


with open(DATA / "market.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))

by_stall = takings(rows, "stall")
report = ["# Fruit stalls, June", ""]
report += table("Stall", by_stall) + [""]
report += table("Fruit", takings(rows, "item")) + [""]
report.append(f"All stalls together: {sum(cents for _, (_, cents) in by_stall) / 100:.2f}")

(DATA / "report.md").write_text("\n".join(report) + "\n", encoding="utf-8")
print(f"{len(rows)} sales summed up in {DATA / 'report.md'}")

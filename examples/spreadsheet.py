"""Bills of 200 days as an office exports them: writes bills.csv and bills.xlsx.

The CSV file has semicolons, decimal commas, dates with the day first, and the encoding of a French
spreadsheet. One amount is a remark. The tutorial docs/tutorials/spreadsheet.md uses these files.
"""

import argparse
import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

DEPOTS = {"Lille": 5, "Lyon": 6, "Nantes": 4}
CUSTOMERS = {"Besançon": 3, "Orléans": 4, "Rouen": 2, "Nîmes": 3}
EUROS = [[310, 190, 120, 380], [160, 230, 290, 140], [360, 170, 180, 330]]  # mean of a truck


Bill = tuple[date, str, str, str, float]


def bills(days: int = 200, seed: int = 5) -> list[Bill]:
    """Return date, depot, customer, number and euros of every truck, planned by habit."""
    chance, day, rows = np.random.default_rng(seed), date(2026, 1, 5), list[Bill]()
    for _ in range(days):
        trucks = chance.permutation(np.repeat([*DEPOTS], [*DEPOTS.values()]))
        where = np.repeat([*CUSTOMERS], [*CUSTOMERS.values()])
        for depot, customer in sorted(zip(trucks, where, strict=False)):
            mean = EUROS[[*DEPOTS].index(depot)][[*CUSTOMERS].index(customer)]
            euros = round(float(mean * chance.normal(1, 0.12)), 2)
            rows.append((day, str(depot), str(customer), f"F{4001 + len(rows)}", euros))
        day += timedelta(days=3 if day.weekday() == 4 else 1)  # working days
    return rows


def write_csv(path: Path) -> None:
    """Write the bills as CSV."""
    with path.open("w", encoding="cp1252", newline="") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(["Date", "Depot", "Customer", "Invoice", "Amount"])
        for day, depot, customer, number, euros in bills():
            amount = "disputed" if number == "F4100" else f"{euros:.2f}".replace(".", ",")
            table.writerow([f"{day:%d/%m/%Y}", depot, customer, number, amount])


def write_xlsx(path: Path) -> None:
    """Write the bills as an Excel file."""
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.worksheets[0]
    sheet.append(["Date", "Depot", "Customer", "Invoice", "Amount"])
    for *row, number, euros in bills():
        sheet.append([*row, number, "disputed" if number == "F4100" else euros])
    book.save(path)


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().folder
    write_csv(folder / "bills.csv")
    write_xlsx(folder / "bills.xlsx")
    rows = bills()
    print(f"{len(rows)} bills of {len({row[0] for row in rows})} days, to {rows[-1][0]}")


if __name__ == "__main__":
    main()

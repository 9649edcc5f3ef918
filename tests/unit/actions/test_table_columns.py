"""Columns of tables that users export: guesses from names in six languages, signs and values."""

import numpy as np
import pandas as pd
import pytest

from multiplay._support.words import Words
from multiplay.actions.importers.table_columns import (
    Columns,
    guessed_columns,
    ignored_columns,
    words_of,
)

DAYS = [f"{day:02}.03.2026" for day in range(1, 29)]
FROM, TO = ["Lyon", "Lille"] * 14, ["north", "north", "south", "east"] * 7
SPREAD = np.random.default_rng(5).normal(300, 20, 28).round(2)
COSTS = [f"{cost:.2f}".replace(".", ",") for cost in SPREAD]


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("day", "source", "target", "cost"),
    [
        ("Date", "From", "To", "Cost"),
        ("Ship date", "Origin", "Destination", "Freight charge"),
        ("Lieferdatum", "Von", "Nach", "Kosten"),
        ("Tag", "Lager", "Kunde", "Rechnungsbetrag"),
        ("Datum", "Abgangsort", "Zielort", "Frachtpreis"),
        ("Date", "De", "À", "Coût"),
        ("Jour", "Expéditeur", "Destinataire", "Montant"),
        ("Date", "Départ", "Arrivée", "Prix"),
        ("Fecha", "Origen", "Destino", "Importe"),
        ("Día", "Almacén", "Cliente", "Precio"),
        ("Data", "Da", "A", "Costo"),
        ("Giorno", "Magazzino", "Destinatario", "Importo"),
        ("Datum", "Van", "Naar", "Bedrag"),
        ("Dag", "Vertrek", "Klant", "Vrachtprijs"),
        ("Pickup date", "Shipper", "Consignee", "Total"),
        ("Leistungsdatum", "Abholort", "Lieferort", "Betrag"),
        ("Abfahrtsdatum", "Abfahrtsort", "Ankunftsort", "EUR"),
        ("Date", "Lieu de chargement", "Lieu de déchargement", "Montant HT"),
        ("Fecha", "Lugar de carga", "Lugar de descarga", "Gasto"),
        ("Data", "Luogo di carico", "Luogo di scarico", "Importo"),
        ("Datum", "Laadadres", "Losadres", "Prijs"),
    ],
)
def test_columns_are_named_in_six_languages(day: str, source: str, target: str, cost: str) -> None:
    """Prices of fuel, distances and drivers stand before the costs, and are not taken for them."""
    rows = {"Diesel €/l": ["1,65", "1,71"] * 14, "km": [450, 380] * 14, "Fahrer": ["Meyer"] * 28}
    frame = pd.DataFrame(rows | {day: DAYS, source: FROM, target: TO, cost: COSTS})
    chosen = Columns((source, target), day, cost)
    assert guessed_columns(frame, decimal=",") == chosen
    assert ignored_columns(frame, chosen) == [*rows]


def test_costs_are_known_by_a_sign_or_by_their_spread() -> None:
    """Without a name: a distance is the same on all days, a price of fuel on all lanes."""
    lanes = [f"{a}->{b}" for a, b in zip(FROM, TO, strict=True)]
    fuel, km = np.arange(28) / 100 + 1.5, [100.0 + len(lane) for lane in lanes]
    days = [day for day in DAYS[:14] for _ in range(2)]
    unnamed = table(x=days, y=np.repeat(fuel[:14], 2), z=km, v=SPREAD, w=lanes, u=[7] * 28)
    known = [*dict.fromkeys(lanes)]
    assert guessed_columns(unnamed, known) == Columns(("w",), "x", "v", "", "")
    signed = table(a=SPREAD + 9, b=[f"{cost} €" for cost in COSTS], c=SPREAD, lane=lanes, day=DAYS)
    assert guessed_columns(signed, decimal=",").loss == "b"
    assert words_of(signed, Columns(("lane",), "day", "b")) == Words("EUR", "unit", "lane", "day")


@pytest.mark.parametrize(
    "name", ["Diesel", "Entfernung (km)", "Tonnage", "PLZ", "MwSt", "Invoice no"]
)
def test_a_different_quantity_is_never_taken_for_costs(name: str) -> None:
    """It is better to ask than to learn from kilometres."""
    rows = table(day=DAYS, lane=FROM)
    assert guessed_columns(rows.assign(**{name: SPREAD})).loss == ""
    assert guessed_columns(rows.assign(**{name: SPREAD, "Kosten": SPREAD})).loss == "Kosten"


def test_units_and_invoices_have_columns() -> None:
    rows = table(Datum=DAYS, Von=FROM, Nach=TO, LKW=[1, 2] * 14, Kosten=COSTS)
    rows["Rechnungsnr."] = [f"R{k}" for k in range(28)]
    rows["Rechnungsdatum"] = DAYS
    chosen = guessed_columns(rows[["Rechnungsdatum", *rows.columns[:-1]]], decimal=",")
    assert chosen == Columns(("Von", "Nach"), "Datum", "Kosten", "Rechnungsnr.", "LKW")
    assert words_of(rows, chosen) == Words("", "truck", "lane", "day")
    assert words_of(
        rows.rename(columns={"Kosten": "Cost, CHF"}), chosen._replace(loss="Cost, CHF")
    )[0] == ("CHF")


def test_places_without_known_names_are_found_by_what_they_explain() -> None:
    """Losses that vary by both columns need both; a driver explains nothing."""
    noise = np.random.default_rng(2)
    rows = table(Tag=DAYS * 3, Fahrer=["Meyer", "Roth", "Yilmaz"] * 28, X=FROM * 3, Y=TO * 3)
    mean = {"Lyon": 100, "Lille": 300}
    more = {"north": 0, "south": 90, "east": 180}
    rows["Z"] = [mean[x] + more[y] + noise.normal() for x, y in zip(FROM * 3, TO * 3, strict=True)]
    assert guessed_columns(rows) == Columns(("X", "Y"), "Tag", "Z")
    of_one = rows.assign(Z=[mean[x] + noise.normal() for x in FROM * 3])
    assert guessed_columns(of_one) == Columns(("X",), "Tag", "Z")
    assert guessed_columns(rows.rename(columns={"X": "Kanal"})).arm == ("Kanal",), "it is an arm"


def test_stated_numbers_and_dates_of_documents_are_no_rounds() -> None:
    stated = {"from": FROM, "to": TO, "supply": [5] * 28, "demand": [3] * 28}
    assert guessed_columns(table(**stated)) == Columns(("from", "to"), "", "")
    dates = table(
        Belegdatum=["01.04.2026"] * 28, Leistungsdatum=DAYS, von=FROM, nach=TO, Preis=COSTS
    )
    assert guessed_columns(dates, decimal=",").round == "Leistungsdatum"


def test_rewards_are_known_by_their_names() -> None:
    rows = table(day=DAYS, channel=FROM, Umsatz=SPREAD)
    assert guessed_columns(rows).loss == "Umsatz"
    assert guessed_columns(rows.assign(Kosten=SPREAD)).loss == "Kosten"


@pytest.mark.parametrize("name", ["Lyon - north", "Lyon → north", "Lyon->north"])
def test_names_of_two_places_are_lanes(name: str) -> None:
    rows = table(day=DAYS, relation=[name] * 28, cost=SPREAD)
    assert words_of(rows, Columns(("relation",), "day", "cost")).arm == "lane"
    mixed = rows.assign(relation=[name, "radio"] * 14)
    assert words_of(mixed, Columns(("relation",), "day", "cost")).arm != "lane"

"""Columns of a table of logged data: which one has the arms, the rounds, the losses, and so on.

They are guessed from names in six languages, from signs of currencies, and from values: a number
that depends on the arm alone, or on the round alone, is a distance or a price of fuel rather than
a loss.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.csv_format import number_in
from multiplay._support.dates import moment_of
from multiplay._support.words import Words
from multiplay.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

ARROW = "->"
TRIED = 50  # different values of a column that are compared with the names of arms
SAMPLE = 1_000  # rows whose values are looked at
SHORTEST = 4  # characters of a word that may be a part of a longer one, as in Frachtkosten

# Words in the names of columns, without accents: English, German, French, Spanish, Italian, Dutch
WORDS: Mapping[str, frozenset[str]] = {
    role: frozenset(words.split())
    for role, words in {
        "loss": "cost costs loss price total amount bill charge fee freight fare tariff spend "
        "expense ausgaben aufwand depense depenses gastos spese uitgaven kosten "
        "betrag summe preis fracht entgelt cout couts prix montant frais coste costes "
        "costo costos precio importe gasto tarifa costi prezzo importo spesa tariffa "
        "bedrag prijs tarief",
        "reward": "reward rewards revenue sales turnover profit umsatz erlos erlose ertrag gewinn "
        "recette recettes benefice ingresos ventas beneficio ricavo ricavi fatturato omzet "
        "opbrengst winst",
        "round": "day date round week datum tag woche fecha dia semana data giorno settimana "
        "jour semaine dag",
        "source": "depot supplier from origin source warehouse plant shipper sender start pickup "
        "von ab lager werk herkunft abgang abfahrt lieferant absender versender ladeort "
        "beladeort beladung verladeort abholort abholung de depuis depart origine fournisseur "
        "entrepot usine expediteur chargement enlevement desde origen salida proveedor almacen "
        "planta remitente carga recogida da partenza fornitore magazzino deposito mittente "
        "carico ritiro van vanaf herkomst vertrek leverancier magazijn afzender laadplaats "
        "laadadres laden",
        "target": "customer demander to destination target town store client consignee "
        "recipient receiver delivery nach bis ziel kunde empfanger ankunft abladeort entladeort "
        "entladung lieferort filiale markt a vers destinataire arrivee magasin dechargement "
        "livraison hasta destino cliente destinatario llegada tienda descarga entrega "
        "destinazione arrivo negozio scarico consegna naar bestemming klant ontvanger aankomst "
        "losplaats losadres lossen winkel",
        "arm": "lane arm route item use product channel strecke relation verbindung linie "
        "artikel produkt ware kanal ligne trajet ruta tramo tratta rotta linea traject",
        "units": "units unit trucks truck loads quantity qty lkw lkws anzahl menge stuck "
        "stuckzahl fahrten quantite camions unites cantidad camiones unidades "
        "quantita unita aantal vrachtwagens eenheden paletten pallets",
        "other": "fuel diesel benzin sprit kraftstoff treibstoff carburant gazole essence "
        "combustible gasolina gasoleo gasolio carburante benzina brandstof km "
        "kilometer kilometers kilometre kilometres kilometros chilometri distanz "
        "entfernung distance distancia distanza afstand miles weight gewicht kg "
        "tonnen tonnage poids peso stunden hours heures horas ore uren minuten "
        "duration dauer duree plz zip postcode postleitzahl tax vat mwst ust steuer "
        "tva iva btw prozent percent liter litre litro kostenstelle index kurs jahr "
        "monat year month weather wetter rain regen temperatur temperature",
        "person": "driver fahrer chauffeur conductor autista spediteur carrier transporteur "
        "transportista corriere vervoerder kennzeichen plate remark remarks "
        "bemerkung note notes comment kommentar remarque nota opmerking status "
        "weekday wochentag",
        "later": "invoice rechnungsdatum beleg due fallig payment paid bezahlt zahlung buchung "
        "echeance facture factura fattura factuur vencimiento scadenza vervaldatum",
        "truck": "truck trucks lkw lkws camion camions camiones vrachtwagen vrachtwagens "
        "diesel gazole gasoleo gasolio",
    }.items()
}
INVOICE = ("invoice", "bill", "rechnung", "beleg", "fact", "fatt", "receipt")  # begins of words
NUMBER = frozenset(("id", "no", "nr", "num", "number", "nummer", "numero"))
CURRENCIES = {"€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "$": "USD", "usd": "USD"}
CURRENCIES |= {"£": "GBP", "gbp": "GBP", "chf": "CHF", "sfr": "CHF", "zl": "PLN", "pln": "PLN"}
SIGNS = re.compile("[€$£]|[^\\W\\d_]+")
LETTERS_ONLY = re.compile(r"[^\W\d_]+")
SEPARATED = re.compile(r"(.*?\S)\s*(?:->|=>|→|>|\s[-\u2013\u2014]\s)\s*(\S.*)")  # Lyon - north
STATED = "supply", "supplies", "stock", "demand", "demands", "orders"  # units of a usual round
NO_NAME = re.compile(r"[\W\d]*")  # dates, numbers and nothing

NAMED, SIGNED, OF_ONE, VARIED = 10, 8, 4, 1  # what speaks for or against a column of losses
NAMED_REWARD = NAMED - 1  # where a table has both, its costs are learned
EXPLAINED = 0.5  # share of the variance within names that the names beside them explain
OTHER = 30  # the name of a different quantity; more than its word for a price and its sign
LEAST = -VARIED  # a column below this is not taken


class Columns(NamedTuple):
    """The columns of a table of logged data; "" for one that the table does not have.

    Attributes
    ----------
    arm : tuple of str
        The column of the arm, or those of its supplier and its customer.
    round, loss, id, units : str
        The columns of the round, of the loss, of the number of the invoice, and of the number of
        units of which the loss is the total.
    """

    arm: tuple[str, ...]
    round: str
    loss: str
    id: str = ""
    units: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of text."""
        return (*self.arm, self.id) if self.id else self.arm

    @property
    def used(self) -> tuple[str, ...]:
        """All of them."""
        others = (self.round, self.loss, self.id, self.units)
        return (*self.arm, *(name for name in others if name))


def guessed_columns(table: pd.DataFrame, arms: Collection[str] = (), decimal: str = ".") -> Columns:
    """Return the columns that a table of logged data probably has; "" for one not recognised.

    Arms are recognised by their names, or by the names of the columns. A column is one of losses
    by its name, by the sign of a currency, or because it varies within arms and within rounds.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = {"Diesel €/l": [1.6, 1.7], "km": [7, 9], "Von": ["A", "B"], "Nach": ["C", "D"]}
    >>> rows |= {"Tag": ["1.2.2026", "2.2.2026"], "Betrag": ["1.234,50 €", "95,00 €"]}
    >>> guessed_columns(pd.DataFrame(rows), decimal=",")
    Columns(arm=('Von', 'Nach'), round='Tag', loss='Betrag', id='', units='')
    """
    sample = table.iloc[np.linspace(0, len(table) - 1, min(len(table), SAMPLE)).astype(int)]
    return _Guess(sample, decimal).columns(arms)


def ignored_columns(table: pd.DataFrame, chosen: Columns) -> list[str]:
    """Return the columns that are not used."""
    return [name for name in map(str, table.columns) if name not in chosen.used]


def column_named(table: pd.DataFrame, words: Collection[str]) -> str:
    """Return the first column whose name has one of these words; "" if there is none."""
    return next((str(one) for one in table.columns if {*_words(str(one))} & {*words}), "")


def words_of(table: pd.DataFrame, chosen: Columns) -> Words:
    """Return the words that the names and the signs of a table say; others are the usual ones.

    Examples
    --------
    >>> import pandas as pd
    >>> bills = pd.DataFrame({"von": ["A"], "nach": ["B"], "LKW": [2], "Kosten in €": [9.5]})
    >>> words_of(bills, Columns(("von", "nach"), "", "Kosten in €", units="LKW"))
    Words(currency='EUR', unit='truck', arm='lane', round='day')
    """
    values = table[chosen.loss].head(TRIED) if chosen.loss in table else ()
    texts = [chosen.loss, *(value for value in values if isinstance(value, str))]
    words = Words(currency=next(filter(None, map(_currency, texts)), ""))
    if any(_has(str(name), "truck") for name in table.columns):
        words = words._replace(unit="truck")
    names = table[chosen.arm[0]].dropna().head(TRIED) if len(chosen.arm) == 1 else ()
    is_lane = [SEPARATED.fullmatch(str(name)) is not None for name in names]
    return words._replace(arm="lane") if all(is_lane) and chosen.arm else words


def has_rewards(column: str) -> bool:
    """Return whether a column of losses is one of rewards, by its name.

    Examples
    --------
    >>> has_rewards("Umsatz in EUR"), has_rewards("Revenue"), has_rewards("Cost of sales")
    (True, True, False)
    """
    return _has(column, "reward") and not _has(column, "loss")


def numbers_in(values: pd.Series[Any], decimal: str) -> FloatArray:
    """Return the numbers of a column, with currencies and groups of digits; NaN for other texts."""
    import pandas as pd

    if values.dtype.kind in "biuf":
        return values.to_numpy(dtype=float, na_value=np.nan)
    codes, different = pd.factorize(values)
    found = [number_in(one, decimal) if isinstance(one, str) else _float(one) for one in different]
    known = [np.nan if one is None else one for one in found]
    return np.array([*known, np.nan], dtype=float)[codes]


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | np.number) else None


def _currency(text: str) -> str:
    """Return the currency that a text has; "" if it has none.

    Examples
    --------
    >>> _currency("Kosten (EUR)"), _currency("12,50 €"), _currency("Europe")
    ('EUR', 'EUR', '')
    """
    found = SIGNS.findall(_folded(text))
    return next((CURRENCIES[one] for one in found if one in CURRENCIES), "")


def _folded(text: str) -> str:
    """Return a text in lower case, without accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in parts if not unicodedata.combining(one))


def _words(name: str) -> list[str]:
    return LETTERS_ONLY.findall(_folded(name))


@lru_cache(1024)
def _has(name: str, role: str) -> bool:
    """Return whether the name of a column has a word of a role, also as a part of a longer one."""
    known = WORDS[role]
    ends = tuple(word for word in known if len(word) >= SHORTEST)
    return any(w in known or w.startswith(ends) or w.endswith(ends) for w in _words(name))


class _Guess:
    """A guess: columns that are free, and what their values are."""

    def __init__(self, rows: pd.DataFrame, decimal: str) -> None:
        names = [*map(str, rows.columns)]
        self.rows, self.names = rows, [name for name in names if names.count(name) == 1]
        self.free = dict.fromkeys(self.names)
        self.numbers = {name: numbers_in(rows[name], decimal) for name in self.names}

    def columns(self, arms: Collection[str]) -> Columns:
        """Return the columns; those of the arms and of the rounds first."""
        arm = self.taken(*_named_arms(self.rows, self.names, arms))
        round = self.round()
        arm = arm or self.taken(*self.places())
        loss = self.loss(arm, round)
        if len(arm) == 1 and loss and not (arms or _has(arm[0], "arm")):
            arm += self.taken(*self.explaining(arm[0], loss))
        id = self.first(_is_id, self.are_ids)
        units = self.first(lambda name: _has(name, "units"), self.are_counts)
        if not arm:
            texts = [name for name in self.free if self.is_text(name)]
            arm = self.taken(*sorted(texts, key=lambda name: not self.may_be_place(name))[:1])
            arm += self.taken(*self.explaining(arm[0], loss)) if arm and loss else ()
            arm = arm or self.taken(*[*self.free][:1])
        if not round:
            round = self.first(
                lambda name: not (_has(name, "other") or _has(name, "person")),
                lambda name: not {*_words(name)} & {*STATED},
            )
        return Columns(arm, round, loss, id, units)

    def taken(self, *names: str) -> tuple[str, ...]:
        """Return columns that are no longer free."""
        for name in names:
            self.free.pop(name, None)
        return names

    def first(self, *conditions: Any) -> str:
        """Take the first free column that meets conditions."""
        found = (name for name in self.free if all(condition(name) for condition in conditions))
        name = next(found, "")
        self.taken(name)
        return name

    def round(self) -> str:
        """Take the column of the rounds: dates, or by its name; the date of an invoice is later."""
        scores = {
            name: 3 * self.has_dates(name) + 2 * _has(name, "round") - _has(name, "later")
            for name in self.free
        }
        best = max(scores, key=lambda name: scores[name], default="")
        if not best or scores[best] < 2:
            return ""
        return self.taken(best)[0]

    def places(self) -> tuple[str, ...]:
        """Return the columns of the supplier and the customer, or that of the arm."""
        texts = [name for name in self.free if self.may_be_place(name)]
        source = next((name for name in texts if _has(name, "source")), "")
        others = [name for name in texts if name != source]
        target = next((name for name in others if _has(name, "target")), "")
        arm = next((name for name in texts if _has(name, "arm")), "")
        if source and not target:
            target = self.beside(others)
        if target and not source and not arm:
            source = self.beside(name for name in others if name != target)
        if source and target:
            return source, target
        return tuple(filter(None, [arm or source]))

    def may_be_place(self, name: str) -> bool:
        """Return whether a column may have places: no people, invoices, dates and costs."""
        others = _has(name, "person") or _has(name, "units") or _is_id(name)
        others = others or (_has(name, "loss") and self.has_numbers(name))
        return not others and not self.has_dates(name)

    def explaining(self, arm: str, loss: str) -> list[str]:
        """Return the column of names without which losses vary much more within those of an arm.

        Columns of places have other names in every company; losses show that both are needed.
        """
        rows = self.rows[[name for name in self.free if self.may_be_place(name)]]
        rows = rows.assign(_arm=self.rows[arm], _loss=self.numbers[loss])

        def spread(keys: list[str]) -> float:
            """Return the variance within groups, unbiased; infinite if most are single rows."""
            groups = rows.groupby(keys)["_loss"]
            freedom = (groups.count() - 1).clip(lower=0).sum()
            squares = (groups.var() * (groups.count() - 1)).sum()
            return float(squares / freedom) if 2 * freedom > len(rows) else float("inf")

        texts = [name for name in rows.columns[:-2] if self.is_text(name)]
        within = {name: spread(["_arm", name]) for name in texts}
        best = min(within, key=lambda name: within[name], default="")
        return [best] if best and within[best] < EXPLAINED * spread(["_arm"]) else []

    def beside(self, columns: Iterable[str]) -> str:
        """Return the first of these columns that has names which occur often."""
        for name in columns:
            values = self.rows[name].dropna()
            if self.is_text(name) and 2 * values.nunique() <= len(values):
                return name
        return ""

    def loss(self, arm: tuple[str, ...], round: str) -> str:
        """Take the column of the losses; of those that are equally probable the last one."""
        names = [name for name in self.free if self.has_numbers(name)]
        scores = {name: self.score(name, arm, round) for name in names}
        best = max(reversed(names), key=lambda name: scores[name], default="")
        if not best or scores[best] < LEAST:
            return ""
        return self.taken(best)[0]

    def score(self, name: str, arm: tuple[str, ...], round: str) -> int:
        """Return how probable a column of numbers is that of the losses."""
        values = self.numbers[name]
        texts = [one for one in self.rows[name].head(TRIED) if isinstance(one, str)]
        signed = bool(_currency(name)) or any(map(_currency, texts))
        named = NAMED * _has(name, "loss") or NAMED_REWARD * _has(name, "reward")
        score = named + SIGNED * signed - OTHER * _has(name, "other")
        score -= OTHER * (_is_id(name) or _has(name, "units"))
        for keys in ([*arm], [round] if round else []):
            score -= OF_ONE * bool(keys and self.depends_on(values, keys))
        return score - VARIED * bool(len({*values.tolist()}) == 1 and len(values) > 1)

    def depends_on(self, values: FloatArray, keys: list[str]) -> bool:
        """Return whether a number is the same in all rows that have the same keys."""
        groups = self.rows.assign(_value=values).groupby(keys, sort=False)["_value"]
        sizes = groups.size()
        return bool((sizes > 1).any() and (groups.nunique()[sizes > 1] <= 1).all())

    def has_numbers(self, name: str) -> bool:
        """Return whether at least half of the values are numbers."""
        return bool(2 * np.isfinite(self.numbers[name]).sum() >= max(self.rows[name].count(), 1))

    def has_dates(self, name: str) -> bool:
        """Return whether most values are dates."""
        values = self.rows[name].dropna()
        if values.dtype.kind == "M":
            return True
        texts = [one for one in values.drop_duplicates().head(TRIED) if isinstance(one, str)]
        marked = [one for one in texts if len(re.findall(r"[-/.]", one)) >= 2]
        read = sum(moment_of(one) is not None or "/" in one for one in marked)
        return bool(texts and 2 * read > len(texts))

    def is_text(self, name: str) -> bool:
        """Return whether most values are names."""
        values = self.rows[name].dropna().drop_duplicates().head(TRIED)
        texts = [one for one in values if isinstance(one, str) and not NO_NAME.fullmatch(one)]
        return bool(texts) and 2 * len(texts) > len(values) and not self.has_numbers(name)

    def are_ids(self, name: str) -> bool:
        """Return whether most values are different, as numbers of invoices are."""
        values = self.rows[name].dropna()
        return values.dtype.kind != "f" and 2 * values.nunique() > len(values)

    def are_counts(self, name: str) -> bool:
        """Return whether the numbers are whole and at least 0."""
        known = self.numbers[name][np.isfinite(self.numbers[name])]
        return bool(len(known) and (known >= 0).all() and (known % 1 == 0).all())


def _is_id(name: str) -> bool:
    """Return whether a column may have the numbers of invoices, by its name."""
    words = _words(name)
    if {*words} & NUMBER:
        return True
    named = any(word.startswith(INVOICE) for word in words)
    return named and not _has(name, "loss") and not _has(name, "round")


def _named_arms(table: pd.DataFrame, names: list[str], arms: Collection[str]) -> tuple[str, ...]:
    """Return the columns whose values are mostly names of these arms."""
    if not arms:
        return ()
    some, known = table.drop_duplicates().head(TRIED), {*arms}
    texts = {name: [str(value).strip() for value in some[name].tolist()] for name in names}

    def fits(values: Collection[str]) -> bool:
        return 2 * sum(value in known for value in values) > len(values)

    for name, values in texts.items():
        if fits(values):
            return (name,)
    words = [name for name in names if some[name].dtype.kind not in "f"][:12]
    for first, second in permutations(words, 2):
        if fits([*map(ARROW.join, zip(texts[first], texts[second], strict=True))]):
            return (first, second)
    return ()

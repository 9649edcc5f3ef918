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
        "loss": "cost costs loss price total amount bill charge fee freight fare tariff reward "
        "revenue kosten betrag summe preis fracht entgelt cout couts prix montant "
        "frais coste costes costo costos precio importe gasto tarifa costi prezzo "
        "importo spesa tariffa bedrag prijs tarief euro euros eur usd gbp chf",
        "round": "day date round week datum tag woche fecha dia semana data giorno settimana "
        "jour semaine dag",
        "source": "depot supplier from origin source warehouse plant von ab lager werk "
        "herkunft abgang lieferant absender versender ladeort beladeort de depuis "
        "depart origine fournisseur entrepot usine expediteur desde origen salida "
        "proveedor almacen planta remitente da partenza fornitore magazzino deposito "
        "mittente van vanaf herkomst vertrek leverancier magazijn afzender "
        "laadplaats",
        "target": "customer demander to destination target town store client consignee "
        "recipient nach bis ziel kunde empfanger abladeort entladeort lieferort "
        "filiale markt a vers destinataire arrivee magasin hasta destino cliente "
        "destinatario llegada tienda destinazione arrivo negozio naar bestemming "
        "klant ontvanger aankomst losplaats winkel",
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
        "later": "invoice rechnungsdatum due fallig payment paid bezahlt zahlung buchung "
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
NO_NAME = re.compile(r"[\W\d]*")  # dates, numbers and nothing

NAMED, SIGNED, OF_ONE, VARIED = 10, 8, 4, 1  # what speaks for or against a column of losses
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
    is_lane = len(chosen.arm) == 2 or any(
        ARROW in str(name) for name in (table[chosen.arm[0]].head(TRIED) if chosen.arm else ())
    )
    return words._replace(arm="lane") if is_lane else words


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
        id = self.first(_is_id, self.are_ids)
        units = self.first(lambda name: _has(name, "units"), self.are_counts)
        if not arm:
            arm = self.taken(*[name for name in self.free if self.is_text(name)][:1])
            arm = arm or self.taken(*[*self.free][:1])
        if not round:
            round = self.first(lambda name: not (_has(name, "other") or _has(name, "person")))
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
        texts = [name for name in self.free if not _has(name, "person") and not _is_id(name)]
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
        score = NAMED * _has(name, "loss") + SIGNED * signed - OTHER * _has(name, "other")
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

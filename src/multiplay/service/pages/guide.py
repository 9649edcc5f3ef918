"""The guide to the pages: what each shows and does, for ``/help`` and for ``docs/pages.md``."""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    """A page of the service.

    Attributes
    ----------
    id : str
        Its anchor: what the page calls itself.
    title : str
        The heading.
    address : str
        Its address, for a study named trucks.
    picture : str
        What the picture of the page shows; "" without a picture.
    texts : tuple of str
        Paragraphs, in which names of buttons and links have quotation marks.
    """

    id: str
    title: str
    address: str
    picture: str
    texts: tuple[str, ...]


GUIDE = (
    Section(
        "studies",
        "Studies: the page of the morning",
        "/",
        "A card for the study: the plan of today with its cost, a lane whose cost has changed, and "
        "the costs of the last 30 days as a curve",
        (
            "Each study has a card: the plan of today or a button that makes it, reports that are "
            "missing, lanes whose costs have changed and what was done about it, and the costs of "
            "the last 30 days with their trend.",
            "Where there is no study yet, the page begins with the field for a table.",
        ),
    ),
    Section(
        "new",
        "New study",
        "/new",
        "One field for a file, with a button that reads it, and a link to begin without a file",
        (
            "Drop a file (CSV or Excel) with a row for each truck: its date, from where to where "
            "it went, and what it cost. Or paste the rows. “Without a file” is a form; a file .mps "
            "is an optimisation model of your own.",
        ),
    ),
    Section(
        "table",
        "What was read",
        "/new/table",
        "The first rows of a German file under the columns as they were read; the columns as "
        "fields; a list of what is probably a mistake; suppliers and customers with their units",
        (
            "Nothing is made before you confirm it. The first rows are shown under the columns as "
            "they were recognised; every column can be changed, then “Read again with these "
            "columns”. What is not used is named.",
            "What is probably a mistake is listed, each with a tick: equal rows, sums, negative "
            "costs, misspelt names. Suppliers and customers have the units of a usual day.",
            "“What are these costs like?” says how noisy they are, whether they persist from day "
            "to day, whether weekdays or a trend show, and how plans are best chosen.",
            "“Create the study, and plan today” does both. “More settings” has the range of costs, "
            "how plans are chosen, the cost of a change, a baseline, and the words of the pages.",
        ),
    ),
    Section(
        "plan",
        "Plan: the first page of a study",
        "/studies/trucks",
        "Today's plan as flows and as a table with the reason for it, what the plans saved, fields "
        "for the costs of the plan, and the form of the next day",
        (
            "The current plan as flows, as a table, and on a phone as a list; what it should cost, "
            "and why it was chosen. A plan may try something: the sentence says what it may cost.",
            "“What did it cost?” takes the costs of each lane, typed, pasted or from a file. “Plan "
            "the next day” has the date, and supply, demand, closed lanes and limits of the day. "
            "“Another plan” says what a plan of your own would cost, and takes its costs.",
            "After an import the page begins with what your days have cost on average, and with "
            "the best plan by these bills, until ten plans are reported.",
        ),
    ),
    Section(
        "report",
        "Report: what your days cost, and what the plans would have",
        "/studies/trucks/report",
        "Two numbers as a sentence, a chart of each day and of what its plan would have cost, the "
        "best plan, and a table of the lanes",
        (
            "For each imported day, the cost of the day, and what the plan for the demand of the "
            "same day should have cost, by what is known today; suppliers that had sent nothing "
            "until then are left out in the picture. The interval is that of mean costs. The table "
            "says on how many bills each lane rests.",
            "After ten reported plans the page also says what the plans have saved since then, "
            "compared with the plans of the imported days. “Print” makes one page of it, for a "
            "meeting.",
        ),
    ),
    Section(
        "play",
        "A plan and its report",
        "/studies/trucks/plays/7",
        "",
        (
            "The plan, what was expected, and what it cost. “Correct the costs” replaces a report, "
            "“Retract the report” withdraws it; the study learns again without it.",
        ),
    ),
    Section(
        "lanes",
        "Lanes: what is known of each",
        "/studies/trucks/lanes",
        "A lane whose cost has changed, and a table of all lanes with mean, interval, number of "
        "units seen and share of plans",
        (
            "The mean cost of each lane with its 95 % interval, and changes: since when a lane "
            "costs more or less, and whether older reports still count. The page has the name "
            "that your study uses: items, routes, or another word.",
            "With features, the page says what drives the costs. “Forget reports” is for lanes of "
            "which you know that older costs do not hold any more; it can be undone.",
        ),
    ),
    Section(
        "promises",
        "Promises and limits",
        "/studies/trucks/promises",
        "A budget for CO2 with the line of what was used and the straight line to its limit, and "
        "forms for promises, a switching cost and a baseline",
        (
            "A promise is a budget or a contract for all days of a period: at most 40,000 kg of "
            "CO2, or at least 60 trucks with a carrier. The page shows what is used and expected, "
            "and says whether it will hold.",
            "A switching cost makes plans change only where that saves more than it costs. A "
            "baseline bounds how much more the plans may cost than what you do today.",
        ),
    ),
    Section(
        "history",
        "History: costs of past days, and the journal",
        "/studies/trucks/history",
        "A chart with a dot for each day, its trend, what was expected, and the best plan with its "
        "interval; fields for a period and a lane",
        (
            "A dot is a day; a ring is a day on which the plan tried something; a square is an "
            "import or a plan of your own. Choose a period with the fields, or drag over the "
            "chart; choose a lane to see what its units cost.",
            "The journal has every change of the study, with its time and who made it.",
        ),
    ),
    Section(
        "savings",
        "Savings",
        "/studies/trucks/savings",
        "What the plans saved against trucks in proportion to supply and demand, with an interval "
        "and a bar for each week",
        (
            "What the plans saved, compared with what you would do without them: the plans of "
            "imported days, a split in proportion to supply and demand, the cheapest plan by a "
            "price list, or always the same plan. It is an estimate from the bills, with a 95 % "
            "interval, by week, and with what it rests on.",
            "It is computed when the page is shown; after a thousand plans of many lanes this "
            "takes up to a minute, and the page does not wait for it.",
        ),
    ),
    Section(
        "settings",
        "Settings",
        "/studies/trucks/settings",
        "Files to export, words, the range of costs, name, copy and delete",
        (
            "Plans and bills as a workbook or as CSV in the form of your spreadsheet; the words of "
            "the pages (truck, lane, day, EUR); the range of costs; a new name, a copy; and "
            "delete, for which the name must be typed.",
        ),
    ),
    Section(
        "import",
        "Import",
        "/studies/trucks/import",
        "",
        (
            "More past costs, read as for a new study. Rows that are known already are not counted "
            "twice, so that you can import the year so far every month. Each import has its "
            "“Undo”.",
        ),
    ),
)
ABOUT = (
    "A planner needs a browser, and nothing else. The examples are trucks on lanes between depots "
    "and customers; the pages use the words of your study. Ask whoever runs the service for its "
    "address and for an API key, with which you log in."
)

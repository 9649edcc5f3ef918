"""SVG figures as parts of an HTML page, in the text colour of the page, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.formatting import number

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure
    from xarray import DataArray

WIDTH = 4.8  # inches of a figure: its text stays legible on a phone
POINTS = 200  # rounds of a figure, evenly spaced; and as many more, for the logarithmic axis
INK = "#010203"  # a placeholder for the text colour of the page
LONG = re.compile(r"-?\d+\.\d{3,}")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def curves(regret: DataArray, marks: Mapping[int, str], x: str, prefix: str) -> str:
    """Return the drawing of ``Result.plot`` for the regret and the marks of a result.

    ``x`` is "linear" or "log"; ``prefix`` makes its ids unique on the page.
    """
    from multiplay.results.plots import plot_regret

    marks = {at: NOT_XML.sub("\ufffd", text) for at, text in marks.items()}
    said = "".join(f" {text}." for text in dict.fromkeys(marks.values()))
    final = regret.isel(round=-1).mean("trial").to_series().sort_values(kind="stable")
    ends = ", ".join(f"{policy} {number(value)}" for policy, value in final.items())
    measure = regret.attrs.get("long_name", "regret")
    label = f"Mean {measure} of each policy against rounds, {x} axis.{said} At the end: "
    draw = partial(plot_regret, regret, x=x, width=WIDTH, marks=marks)
    return svg(draw, prefix, f"{label}{ends}.")


def thinned(regret: DataArray, points: int = POINTS, early: int = POINTS) -> DataArray:
    """Return the regret at the rounds that a figure shows, with names that XML can hold.

    ``points`` rounds are evenly spaced; for a logarithmic axis, ``early`` more are added at the
    beginning.
    """
    last = regret.sizes["round"] - 1
    even, more = np.linspace(0, last, points), np.geomspace(1, last + 1, early) - 1
    seen = np.unique(np.round(np.concatenate([even, more])).astype(int))
    names = [NOT_XML.sub("\ufffd", str(name)) for name in regret["policy"].values]
    return regret.isel(round=seen).assign_coords(policy=names)


def svg(draw: Callable[[], Figure], prefix: str, label: str) -> str:
    """Return a figure as SVG: text as text, in the text colour; ``prefix`` begins its ids."""
    from xml.etree import ElementTree

    import matplotlib as mpl

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "multiplay", **dict.fromkeys(inks, INK)}
    buffer = io.BytesIO()
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the fonts of the browser may have it
        draw().savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    for element in root.iter():
        _adapt(element, prefix)
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": NOT_XML.sub("\ufffd", label)})
    return ElementTree.tostring(root, encoding="unicode")


def _adapt(element: Element, prefix: str) -> None:
    """Take an element out of its namespace, prefix its ids, and draw black in the text's colour."""
    element.tag = element.tag.rpartition("}")[2]
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        name = key.rpartition("}")[2]
        if name == "id":
            value = prefix + value
        elif name == "href":
            value = value.replace("#", f"#{prefix}", 1)
        else:
            value = value.replace("url(#", f"url(#{prefix}")
            value = re.sub(f"{INK}|#000000", "currentColor", value)
        if name == "d":  # a hundredth of a point is invisible, and paths are most of the file
            value = LONG.sub(lambda found: f"{float(found[0]):.2f}", value)
        element.set(name, value)

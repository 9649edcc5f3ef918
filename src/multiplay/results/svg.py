"""Figures as parts of a page: in the colour of its text, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.formatting import number
from multiplay.results.result import Result

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure
    from xarray import DataArray

WIDTH = 4.8  # inches of a figure: letters stay legible when it shrinks to a phone
POINTS = 200  # rounds of a figure, evenly spaced; and as many more, for the logarithmic axis
INK = "#010203"  # what is drawn in the colour of the text, light or dark
LONG = re.compile(r"-?\d+\.\d{3,}")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def curves(result: Result, regret: DataArray, x: str, prefix: str) -> str:
    """Return the drawing of ``Result.plot`` for some regret of a result, which may be thinned.

    ``x`` is "linear" or "log"; ``prefix`` makes its ids unique on the page.
    """
    from multiplay.results.plots import plot_regret

    marks = {at: NOT_XML.sub("\ufffd", text) for at, text in result.marks.items()}
    said = "".join(f" {text}." for text in dict.fromkeys(marks.values()))
    final = regret.isel(round=-1).mean("trial").to_series().sort_values(kind="stable")
    ends = ", ".join(f"{policy} {number(value)}" for policy, value in final.items())
    label = f"Mean {result.measure} of each policy against rounds, {x} axis.{said} At the end: "
    draw = partial(plot_regret, regret, x=x, width=WIDTH, marks=marks)
    return svg(draw, prefix, f"{label}{ends}.")


def thinned(result: Result, points: int = POINTS, early: int = POINTS) -> DataArray:
    """Return the regret at as many rounds as can be seen, with names that XML can hold.

    So many rounds are evenly spaced; for a logarithmic axis, ``early`` more are not.
    """
    last = result.regret.sizes["round"] - 1
    even, more = np.linspace(0, last, points), np.geomspace(1, last + 1, early) - 1
    seen = np.unique(np.round(np.concatenate([even, more])).astype(int))
    names = [NOT_XML.sub("\ufffd", name) for name in result.policies]
    return result.regret.isel(round=seen).assign_coords(policy=names)


def svg(draw: Callable[[], Figure], prefix: str, label: str) -> str:
    """Return a figure as part of a page: text as text, in its colours, with ids of its own."""
    from xml.etree import ElementTree

    import matplotlib as mpl

    inks = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "multiplay", **dict.fromkeys(inks, INK)}
    buffer = io.BytesIO()
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # the reader's fonts may have it
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
        if name == "d":  # nobody sees a hundredth of a point, and paths are most of a picture
            value = LONG.sub(lambda found: f"{float(found[0]):.2f}", value)
        element.set(name, value)

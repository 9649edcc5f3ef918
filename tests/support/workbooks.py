"""Excel files that are small and hostile: each would need much memory or time, or is damaged."""

import io
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
HEADER = '<row r="1"><c r="A1" t="inlineStr"><is><t>lane</t></is></c></row>'
MILLION = 1_000_000

Content = str | bytes


def links(*pairs: tuple[str, str]) -> str:
    """Return links to parts by kind and target, with the ids r0, r1 and so on."""
    found = "".join(
        f'<Relationship Id="r{k}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for k, (kind, target) in enumerate(pairs)
    )
    return f'<Relationships xmlns="{LINKS}">{found}</Relationships>'


def sheet(rows: str) -> str:
    """Return a sheet with a header and these rows."""
    return f'<worksheet xmlns="{MAIN}"><sheetData>{HEADER}{rows}</sheetData></worksheet>'


def zipped(parts: Mapping[str, Content], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return parts in one file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as book:
        for name, content in parts.items():
            book.writestr(name, content)
    return file.getvalue()


def workbook(content: Content, method: int = zipfile.ZIP_DEFLATED, **others: Content) -> bytes:
    """Return an Excel file with one sheet; ``others`` replaces parts by their short names."""
    paths = {
        "root": "_rels/.rels",
        "book": "xl/workbook.xml",
        "book_links": "xl/_rels/workbook.xml.rels",
        "strings": "xl/strings.xml",
        "styles": "xl/styles.xml",
    }
    targets = [("worksheet", "anywhere/first.xml")]
    targets += [("sharedStrings", "strings.xml")] * ("strings" in others)
    targets += [("styles", "styles.xml")] * ("styles" in others)
    parts: dict[str, Content] = {
        "root": links(("officeDocument", "xl/workbook.xml")),
        "book": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="one" sheetId="1" r:id="r0"/></sheets></workbook>',
        "book_links": links(*targets),
        **others,
    }
    kinds = {"book": "sheet.main", "strings": "sharedStrings", "styles": "styles"}
    types = {paths[name]: kind for name, kind in kinds.items() if name in parts}
    named = {paths[name]: part for name, part in parts.items()}
    named["[Content_Types].xml"] = _types(types | {"xl/anywhere/first.xml": "worksheet"})
    return zipped(named | {"xl/anywhere/first.xml": content}, method)


def _types(kinds: Mapping[str, str]) -> str:
    found = "".join(
        f'<Override PartName="/{name}" ContentType="{KIND}.{kind}+xml"/>'
        for name, kind in kinds.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<Types xmlns="{space}">{found}</Types>'


def _far(text: str) -> str:
    return sheet("").replace(
        "</sheetData>", f"<row r='1048576'><c {text}><v>1</v></c></row></sheetData>"
    )


def _rows(rows: str) -> bytes:
    return workbook(sheet(rows))


def _linked(target: str) -> bytes:
    return workbook(sheet(""), book_links=links(("worksheet", target)))


def _strings(texts: Iterable[str]) -> str:
    return f'<sst xmlns="{MAIN}">{"".join(texts)}</sst>'


def _shared(count: int, text: str, cells: int) -> bytes:
    rows = '<row><c t="s"><v>0</v></c></row>' * cells
    return workbook(sheet(rows), strings=_strings([f"<si><t>{text}</t></si>"] * count))


def _styles(count: int) -> str:
    return f'<styleSheet xmlns="{MAIN}"><cellXfs>{"<xf/>" * count}</cellXfs></styleSheet>'


def _overlapping() -> bytes:
    """Return a file whose directory has many entries of one member."""
    file = workbook(sheet(""))
    end = file.rindex(b"PK\x05\x06")
    start = struct.unpack("<I", file[end + 16 : end + 20])[0]
    directory = file[start:end] * 3_000
    tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 12_000, 12_000, len(directory), start, 0)
    return file[:start] + directory + tail


def _lying() -> bytes:
    """Return a file that states a wrong size of its sheet."""
    file = bytearray(workbook(sheet("<row/>" * MILLION)))
    place = file.rindex(b"xl/anywhere/first.xml") - 46
    file[place + 24 : place + 28] = struct.pack("<I", 10)
    return bytes(file)


def _sheets() -> bytes:
    book = '<sheet r:id="r9"/>' * MILLION
    return workbook(
        sheet(""), book=f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">{book}</workbook>'
    )


def _entities(encoding: str) -> bytes:
    names = "".join(f'<!ENTITY a{k + 1} "{f"&a{k};" * 10}">' for k in range(9))
    head = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY a0 "aa">{names}]>'
    return workbook((head + sheet("<row><c><v>&a9;</v></c></row>")).encode(encoding))


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a bomb": lambda: _rows(" " * 40 * MILLION),
    "a far cell": lambda: workbook(_far('r="XFD1048576"')),
    "a far cell in single quotes": lambda: workbook(_far("r='ZZ1048576'")),
    "a far cell with spaces": lambda: workbook(_far('r = "XFD1048576"')),
    "a far cell with a prefix": lambda: workbook(
        f'<m:worksheet xmlns:m="{MAIN}"><m:sheetData><m:row><m:c r="XFD1048576"><m:v>1</m:v></m:c>'
        "</m:row></m:sheetData></m:worksheet>"
    ),
    "a far cell in UTF-16": lambda: workbook(_far('r="XFD1048576"').encode("utf-16")),
    "a far cell without a place": lambda: _rows(f"<row>{'<c/>' * MILLION}<c><v>1</v></c></row>"),
    "a far row": lambda: _rows("<row/>" * 1_048_000 + "<row><c><v>1</v></c><c><v>1</v></c></row>"),
    "a row before the last one": lambda: _rows('<row r="1"><c><v>1</v></c></row>'),
    "a row beyond the last one": lambda: workbook(_far('r="A1048577"')),
    "UTF-32": lambda: workbook(sheet("").encode("utf-32")),
    "entities": lambda: _entities("utf-8"),
    "entities in UTF-16": lambda: _entities("utf-16"),
    "an external entity": lambda: workbook(
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + sheet("<row>&a;</row>")
    ),
    "an external type": lambda: workbook('<!DOCTYPE x SYSTEM "file:///etc/passwd">' + sheet("")),
    "many cells": lambda: _rows("<row><c><v>1</v></c><c/></row>" * 530_000),
    "many different texts": lambda: workbook(
        sheet(""), strings=_strings(f"<si><t>{k}</t></si>" for k in range(600_000))
    ),
    "a long text in many cells": lambda: _shared(1, "x" * 32_000, 500_000),
    "long texts": lambda: _shared(500, "\N{GRINNING FACE}" + "x" * 32_000, 1),
    "a text of a million characters": lambda: _shared(1, "x" * MILLION, 1),
    "a text in many runs": lambda: _rows(f"<row><c><is>{'<t>xx</t>' * MILLION}</is></c></row>"),
    "references to characters": lambda: _rows(f"<row><c><v>{'&#13;' * MILLION}</v></c></row>"),
    "a text that is missing": lambda: _rows('<row><c t="s"><v>7</v></c></row>'),
    "a text before the first one": lambda: _rows('<row><c t="s"><v>-1</v></c></row>'),
    "no number": lambda: _rows("<row><c><v>nan</v></c></row>"),
    "a long number": lambda: _rows(f"<row><c><v>{'9' * 30_000}</v></c></row>"),
    "a style that is missing": lambda: workbook(
        sheet('<row><c s="9"><v>1</v></c></row>'), styles=_styles(1)
    ),
    "nested elements": lambda: _rows("<a>" * MILLION),
    "many names": lambda: _rows("".join(f"<a{k}/>" for k in range(MILLION))),
    "many attributes": lambda: _rows("".join(f'<row a{k}="" b{k}=""/>' for k in range(500_000))),
    "many namespaces": lambda: _rows("".join(f'<a xmlns:n{k}="u"/>' for k in range(500_000))),
    "a long tag": lambda: _rows("<a " + " " * 15 * MILLION + "/>"),
    "a long attribute": lambda: _rows(f'<a b="{"x" * 15 * MILLION}"/>'),
    "many attributes of one tag": lambda: _rows(
        "<a " + " ".join(f'a{k}=""' for k in range(MILLION)) + "/>"
    ),
    "a long comment": lambda: _rows(f"<!--{'x' * 15 * MILLION}-->"),
    "many sheets": _sheets,
    "many styles": lambda: workbook(sheet(""), styles=_styles(MILLION)),
    "many links": lambda: workbook(sheet(""), book_links=links(*[("a", "b")] * 300_000)),
    "a link to itself": lambda: _linked("_rels/workbook.xml.rels"),
    "a link out of the file": lambda: _linked("../../../etc/passwd"),
    "a link to another machine": lambda: _linked('anywhere/first.xml" TargetMode="External'),
    "no workbook": lambda: zipped({"xl/worksheets/sheet1.xml": sheet("")}),
    "packed by bzip2": lambda: workbook(sheet(" " * 40 * MILLION), zipfile.ZIP_BZIP2),
    "packed by lzma": lambda: workbook(sheet(" " * 40 * MILLION), zipfile.ZIP_LZMA),
    "a wrong size": _lying,
    "a file of another kind": lambda: b"\xd0\xcf\x11\xe0" + bytes(10_000),
    "nothing": lambda: b"",
}
READ: dict[str, Callable[[], bytes]] = {
    "overlapping members": _overlapping,
    "a million empty rows": lambda: workbook(sheet('<row spans="1:1"/>' * 800_000)),
    "far empty cells": lambda: workbook(sheet('<row r="1048576"><c r="XFD1048576" s="1"/></row>')),
    "UTF-16": lambda: workbook(sheet("").encode("utf-16")),
}

"""XML files that other people wrote: read element by element, with entities and the network off."""

import codecs
from collections.abc import Iterator
from html.entities import html5
from pathlib import Path
from typing import IO, Any

from ...system.errors import DataError
from ..reading import open_bytes
from .format import first_line

_ALONE = frozenset({"ph", "x", "ut"})
"""Codes that neither open nor close anything."""
_SAFE: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False}
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def elements(path: Path, names: set[str]) -> Iterator[Any]:
    """The elements of some names, whatever their namespace, each as soon as it is complete, and then forgotten.

    Nothing outside the file is opened, entities of its own are left out, and those that would grow to gigabytes are
    refused.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    with open_bytes(path, text=False) as file:
        try:
            tags = [f"{{*}}{name}" for name in sorted(names)]
            for _, element in etree.iterparse(file, tag=tags, **_SAFE):
                yield element
                _forget(element)
        except etree.XMLSyntaxError as error:
            raise _not_well_formed(path, error) from error


def parse_tree(path: Path) -> Any:
    """The whole of a file, to be written again; see `elements` for what is not done with it."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    with open_bytes(path, text=False) as file:
        try:
            return etree.parse(file, etree.XMLParser(**_SAFE, strip_cdata=False))
        except etree.XMLSyntaxError as error:
            raise _not_well_formed(path, error) from error


def write_tree(tree: Any, stream: IO[bytes]) -> None:
    """Writes a file in the encoding that it had, with a line end behind it. Its other line ends become LF."""
    information = tree.docinfo
    tree.write(
        stream, encoding=information.encoding or "utf-8", xml_declaration=True, standalone=information.standalone
    )
    stream.write("\n".encode(information.encoding or "utf-8").removeprefix(codecs.BOM_UTF16))


def _not_well_formed(path: Path, error: Any) -> DataError:
    problem = first_line(error).partition(", line ")[0]
    return DataError(f"{path}:{error.lineno or 1}: not well-formed XML: {problem}")


def _forget(element: Any) -> None:
    """Frees an element and those before it, so that memory stays bounded."""
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def local_name(element: Any) -> str:
    """The name of an element without its namespace; an empty string for a comment, an entity or an instruction."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def children(element: Any, name: str) -> list[Any]:
    """Those of its own children that have a name."""
    return [child for child in element if local_name(child) == name]


def text_of(element: Any, codes: frozenset[str]) -> str:
    """The text of a segment, without what stands inside elements that hold markup instead of text.

    A code by itself, such as a line break, may stand between two words: a space keeps them apart. An entity that HTML
    knows is its character, and any other stays as it is written.

    Args:
        codes: Names of the elements whose content is markup; what follows them is text.
    """
    text = element.text or ""
    for child in element:
        name, tail = local_name(child), child.tail or ""
        if name in _ALONE and text[-1:].isalnum() and tail[:1].isalnum():
            text += " "
        elif name and name not in codes:
            text += text_of(child, codes)
        elif not name and hasattr(child, "name"):
            text += html5.get(f"{child.name};", f"&{child.name};")
        text += tail
    return text


def same_language(code: str, wanted: str) -> bool:
    """Whether a language code is the one wanted, or a regional form of it: `en-GB` is `en`; letter case is ignored."""
    code, wanted = (one.lower().replace("_", "-") for one in (code, wanted))
    return code == wanted or code.startswith(f"{wanted}-")

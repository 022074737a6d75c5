"""XML as all sorts of tools write it: generated, for properties that hold of every file."""

from hypothesis import strategies as st

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"), max_size=8
)
ODD = st.sampled_from(
    [
        "&amp;",
        "&lt;",
        "&gt;",
        ">",
        '"',
        "'",
        "&quot;",
        "&apos;",
        "&#10;",
        "&#xD;\n",
        "&#x2013;",
        "\n",
        "\r\n",
        "\t",
        " ",
    ]
)
SPACE = st.sampled_from([" ", "\n  ", "\r\n\t", "  "])


def escaped(text: str) -> str:
    """A text as XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Text with references, comments, instructions and CDATA in it."""
    pieces = st.one_of(
        TEXT.map(escaped),
        ODD,
        TEXT.map(lambda text: f"<!--{text.replace('-', '_')}-->"),
        TEXT.map(lambda text: f"<?tool {text.replace('?', '!')}?>"),
        TEXT.map(lambda text: f"<![CDATA[{text.replace(']', ')')}]]>"),
    )
    return "".join(draw(st.lists(pieces, max_size=4))).replace("]]>]", "]]> ]")


@st.composite
def attributes(draw: st.DrawFn) -> str:
    """Attributes with either quote, `>` inside, and line ends between."""
    written = ""
    for name in draw(st.lists(st.sampled_from(["a", "p:b", "id", "c-d"]), unique=True, max_size=3)):
        quote, value = draw(st.sampled_from("\"'")), draw(st.lists(st.one_of(TEXT.map(escaped), ODD), max_size=3))
        inner = "".join(value).replace(quote, "&quot;" if quote == '"' else "&apos;")
        equals = draw(st.sampled_from(["=", " = ", "=\n"]))
        written += f"{draw(SPACE)}{name}{equals}{quote}{inner}{quote}"
    return written + draw(st.sampled_from(["", " ", "\n"]))


def element(name: str, content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An element, written as one tag or as two."""
    two = st.tuples(attributes(), content).map(lambda one: f"<{name}{one[0]}>{one[1]}</{name}>")
    return st.one_of(attributes().map(lambda one: f"<{name}{one}/>"), two, two)


def contents(depth: int = 2) -> st.SearchStrategy[str]:
    """Text and elements."""
    if not depth:
        return texts()
    inner = st.one_of(element("b", contents(depth - 1)), element("p:i", contents(depth - 1)), texts())
    return st.lists(inner, max_size=4).map("".join)


@st.composite
def trees(draw: st.DrawFn) -> str:
    """A document `root` with elements `unit`, and others between."""
    start = draw(
        st.sampled_from(["", '<?xml version="1.0"?>\n', "<?xml version='1.0' encoding='UTF-8' ?>\r\n", "\ufeff"])
    )
    doctype = draw(st.sampled_from(["", '<!DOCTYPE root SYSTEM "root.dtd">\n', "<!-- > -->\n"]))
    parts = st.one_of(element("unit", contents()), element("p:unit", contents()), element("other", texts()), texts())
    body = "".join(draw(st.lists(parts, max_size=4)))
    return f'{start}{doctype}<root xmlns:p="p">{body}</root>'

"""How Sphinx makes a site of these pages: `make docs`. Nothing is fetched, neither to build the site nor to read it.

The pages are Markdown that is readable as it stands. What is added when they are built:

    pages       links to files that are no pages, parts of other files, and the generated parts
    reference   those parts: commands, settings and presets, as Markdown, from the code
    markup      docstrings as reStructuredText, formulas as MathML
"""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pages import write_stubs

write_stubs()
project = "tfm"
release = metadata.version("tfm")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["sphinx_copybutton", "pages", "markup"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:class", r"FastDecoderOnly"),  # named in an annotation, imported when it is needed
    (r"py:class", r"tfm\.seq2seq\.model\.attention\.Kept"),  # a type variable, of which there is no page
    # Not ours: there is no network to look them up.
    (r"py:.*", r"(torch|numpy|np|npt|collections|pathlib|typing|typer|click|pydantic|contextlib|sentencepiece)(\..*)?"),
]
smartquotes = False
copybutton_prompt_text = "$ "
highlight_language = "text"
default_role = "code"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4

napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
viewcode_line_numbers = True
viewcode_follow_imported_members = False

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"tfm {release}"
html_static_path = ["_static"]
html_extra_path = ["tour"] if (Path(__file__).parent / "tour").is_dir() else []  # built by `make tour`
html_css_files = ["tfm.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}

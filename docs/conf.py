"""How the site is built: ``make docs``."""

import sys
from pathlib import Path

from multiplay.version import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "multiplay"
author = "the authors of multiplay"
copyright = "the authors of multiplay, MIT licence"
release = version = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "formulas",
    "notebooks",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True  # a name that leads nowhere is a warning, and warnings are errors

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image"]
html_math_renderer = "katex"
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True  # what a cell prints is one text, however it arrives

# The reference
autosummary_generate = True
autodoc_typehints = "none"  # the docstring says it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Looks
html_theme = "pydata_sphinx_theme"
html_title = "multiplay"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

"""Settings of Sphinx for the site: ``make docs``."""

import os
import sys
from pathlib import Path

from multiplay.version import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ["MATPLOTLIBRC"] = str(HERE / "matplotlibrc")  # for pages with figures

# Notebook kernels ignore the settings of the user, and log errors only.
profile = HERE / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(profile.parent)

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
    "command_tree",
    "formulas",
    "notebooks",
    "operations",
    "progress",
    "summaries",
    "thumbnails",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True  # an unresolved name is a warning, and warnings are errors

# Pages. They are read in one process (no --jobs): workers would lose the messages of a page that
# fails, and continue with other pages.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image"]
smartquotes_action = "q"  # -- begins an option and is not a dash
html_math_renderer = "katex"
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300
nb_merge_streams = True  # the output of a cell is one text

# The reference
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # docstrings describe the types
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Looks
html_theme = "pydata_sphinx_theme"
html_title = "multiplay"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("labels.js", {"defer": "defer"})]
html_sidebars: dict[str, list[str]] = {
    name: [] for name in ("index", "changelog", "genindex", "search")
}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": "multiplay",
    },
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": ["version"],
    "secondary_sidebar_items": ["page-toc"],
}

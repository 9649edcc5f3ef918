"""Math renderer: formulas for KaTeX, which is part of the site."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(f'<span class="formula">{self.encode(node.astext())}</span>')
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula; lines end in two backslashes, and are aligned at &."""
    lines = node.astext()
    formula = rf"\begin{{aligned}}{lines}\end{{aligned}}" if r"\\" in lines else lines
    self.body.append(f'<div class="formula">{self.encode(formula)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the extension."""
    app.add_html_math_renderer(
        "katex", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    app.add_css_file("katex/katex.min.css")
    app.add_js_file("katex/katex.min.js", loading_method="defer")
    app.add_js_file("formulas.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

for (const formula of document.querySelectorAll(".formula")) {
  katex.render(formula.textContent, formula, {
    displayMode: formula.tagName === "DIV",
    throwOnError: false,
  });
}

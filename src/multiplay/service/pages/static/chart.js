// The day of a chart that the pointer is next to, as text below the chart: the title of its dot, which
// browsers show as a tooltip without this script. Dragging over the chart selects a period.
"use strict";
(() => {
  let from = null, mark = null;  // where a drag began, and the box that it draws

  const middle = (dot) => { const box = dot.getBoundingClientRect(); return box.x + box.width / 2; };

  function inside(chart, event) {  // a place of the window in the units of the drawing
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse()).x;
  }

  document.addEventListener("pointerdown", (event) => {
    const chart = event.target.closest?.("#costs svg.wide");
    if (!chart || event.pointerType === "touch" || event.button) return;
    event.preventDefault();
    from = { chart, at: event.clientX, x: inside(chart, event) };
  });

  document.addEventListener("pointermove", (event) => {
    if (from) {
      if (!mark) {
        mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        mark.setAttribute("class", "selected");
        mark.setAttribute("height", "100%");
        from.chart.append(mark);
      }
      const x = inside(from.chart, event);
      mark.setAttribute("x", Math.min(x, from.x));
      mark.setAttribute("width", Math.abs(x - from.x));
    }
    const chart = event.target.closest?.("svg.wide"), place = document.getElementById("chart-values");
    if (!chart || !place) return;
    let nearest = null, least = Infinity;
    for (const dot of chart.querySelectorAll(".dot")) {
      const away = Math.abs(middle(dot) - event.clientX);
      if (away < least) [nearest, least] = [dot, away];
    }
    if (nearest) place.textContent = nearest.textContent.trim();
  });

  document.addEventListener("pointerup", (event) => {
    if (!from) return;
    const [low, high] = [from.at, event.clientX].sort((a, b) => a - b), chart = from.chart;
    mark?.remove();
    from = mark = null;
    const days = [...chart.querySelectorAll("[data-date]")]
      .filter((dot) => low <= middle(dot) && middle(dot) <= high).map((dot) => dot.dataset.date).sort();
    if (high - low < 10 || !days.length) return;
    const form = document.querySelector("form.filter");
    form.elements.first.value = days[0];
    form.elements.last.value = days.at(-1);
    form.requestSubmit();
  });
})();

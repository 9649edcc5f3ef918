// The day of a chart that the pointer is next to, as text below the chart. The text is that of the
// title of its dot; without this script, browsers show it as a tooltip.
"use strict";
document.addEventListener("pointermove", (event) => {
  const chart = event.target.closest?.("svg.wide"), place = document.getElementById("chart-values");
  if (!chart || !place) return;
  let nearest = null, least = Infinity;
  for (const dot of chart.querySelectorAll(".dot")) {
    const box = dot.getBoundingClientRect(), away = Math.abs(box.x + box.width / 2 - event.clientX);
    if (away < least) [nearest, least] = [dot, away];
  }
  if (nearest) place.textContent = nearest.textContent.trim();
});

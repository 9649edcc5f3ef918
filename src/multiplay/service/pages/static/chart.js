// Chart of the cost of rounds: dots, their trend, expected costs, and the cost of the best plan.
"use strict";
(() => {
  const place = document.getElementById("chart");
  if (!place) return;
  const values = document.getElementById("chart-values");
  const height = 300;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let drawn = null, data = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const number = (value) => value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 });
  const level = (found, name) => found.rounds.map(() => found.best?.[name] ?? null);

  function columns(found) {
    return [found.rounds, found.realised, found.trend, found.expected,
      level(found, "total"), level(found, "low"), level(found, "high")];
  }

  function options() {
    const ink = colour("faint"), line = colour("line"), best = colour("best");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui" };
    const alone = { show: data.rounds.length === 1 };  // a line needs two points
    const whole = (_, marks) => marks.map((mark) => Number.isInteger(mark) ? mark : "");
    return {
      width: place.clientWidth,
      height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] } },
      axes: [{ ...axis, values: whole, label: "play", labelSize: 20, labelFont: "12px system-ui" }, { ...axis, size: 56 }],
      series: [
        { label: "play" },
        { label: data.noun, paths: () => null, points: { show: true, size: 6, width: 0, fill: colour("realised") } },
        { label: "trend", stroke: colour("trend"), width: 2.5, points: { show: false }, spanGaps: true },
        { label: "expected", stroke: colour("expected"), width: 1.5, dash: [6, 4], points: { show: false }, spanGaps: true },
        { label: "best plan", stroke: best, width: 2, dash: [2, 3], points: alone },
        { points: { show: false }, width: 0 },
        { points: { show: false }, width: 0 },
      ],
      bands: [{ series: [6, 5], fill: best + "22" }],
      hooks: { setCursor: [say] },
    };
  }

  function say(chart) {
    const at = chart.cursor.idx;
    if (at == null) { values.textContent = "\u00a0"; return; }
    const [play, realised, trend, expected] = chart.data.map((column) => column[at]);
    values.textContent =
      `Play ${play}: ${data.noun} ${number(realised)}, trend ${number(trend)}, expected ${number(expected)}`;
  }

  function draw() {
    drawn?.destroy();
    drawn = null;
    place.replaceChildren();
    const known = data?.realised.some((value) => value != null);
    place.classList.toggle("blank", !known);
    if (known) drawn = new uPlot(options(), columns(data), place);
    else place.textContent = "No observations yet.";
  }

  async function fetched() {
    const answer = await fetch(place.dataset.chart, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    data = await answer.json();
    if (drawn && data.rounds.length > 1) drawn.setData(columns(data)); else draw();
    place.dataset.head = data.head;  // which entry it shows
  }

  dark.addEventListener("change", draw);
  new ResizeObserver(() => drawn?.setSize({ width: place.clientWidth, height })).observe(place);
  document.addEventListener("study:changed", () => fetched().catch(() => {}));
  fetched().catch(() => {});
})();

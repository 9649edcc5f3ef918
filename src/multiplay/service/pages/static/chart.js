// Chart of the cost of days: dots, their trend, expected costs, and the cost of the best plan. Days
// on which the plan explored are rings; external plans and imported days are squares.
"use strict";
(() => {
  const place = document.getElementById("chart");
  if (!place) return;
  const values = document.getElementById("chart-values");
  const height = 300;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let drawn = null, data = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const number = (value) =>
    value.toLocaleString(undefined, Math.abs(value) < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
  const money = (value) => `${number(value)}${data.words.currency && ` ${data.words.currency}`}`;
  const level = (found, name) => found.days.map(() => found.best?.[name] ?? null);
  const where = (found, keep) => found.realised.map((value, at) => keep(found.explored[at]) ? value : null);

  function columns(found) {
    return [found.days.map((_, at) => at + 1), where(found, (one) => !one), where(found, (one) => one), found.external,
      found.trend, found.expected, level(found, "total"), level(found, "low"), level(found, "high")];
  }

  function options() {
    const ink = colour("faint"), line = colour("line"), best = colour("best"), dot = colour("realised");
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui" };
    const alone = { show: data.days.length === 1 };  // a line needs two points
    const day = (_, marks) => marks.map((mark) => Number.isInteger(mark) ? label(mark - 1) : "");
    const points = (more) => ({ paths: () => null, points: { show: true, ...more } });
    return {
      width: place.clientWidth,
      height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false, range: (_, low, high) => [low - 0.5, high + 0.5] } },
      axes: [{ ...axis, values: day, space: 90 }, { ...axis, size: 60, values: (_, marks) => marks.map(number) }],
      series: [
        { label: data.words.round },
        { label: data.noun, ...points({ size: 6, width: 0, fill: dot }) },
        { label: "explored", ...points({ size: 8, width: 1.5, stroke: dot, fill: colour("card") }) },
        { label: "external", ...points({ size: 6, width: 0, fill: colour("external"), paths: squares }) },
        { label: "trend", stroke: colour("trend"), width: 2.5, points: { show: false }, spanGaps: true },
        { label: "expected", stroke: colour("expected"), width: 1.5, dash: [6, 4], points: { show: false }, spanGaps: true },
        { label: "best plan", stroke: best, width: 2, dash: [2, 3], points: alone },
        { points: { show: false }, width: 0 },
        { points: { show: false }, width: 0 },
      ],
      bands: [{ series: [8, 7], fill: best + "22" }],
      hooks: { setCursor: [say] },
    };
  }

  // a day as the browser's language writes it, other names as they are
  function label(at) {
    const text = data.days[at] ?? "";
    if (!/^\d{4}-\d\d-\d\d$/.test(text)) return text.length > 12 ? `${text.slice(0, 11)}…` : text || String(data.rounds[at] ?? "");
    return new Date(`${text}T00:00Z`).toLocaleDateString(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
  }

  function squares(chart, series, first, last) {
    const fill = new Path2D(), half = 3 * devicePixelRatio;
    for (let at = first; at <= last; at++) {
      const value = chart.data[series][at];
      if (value == null) continue;
      const x = chart.valToPos(chart.data[0][at], "x", true), y = chart.valToPos(value, "y", true);
      fill.rect(x - half, y - half, 2 * half, 2 * half);
    }
    return { fill };
  }

  function say(chart) {
    const at = chart.cursor.idx;
    if (at == null) { values.textContent = "\u00a0"; return; }
    const cost = data.realised[at] ?? data.external[at], said = [];
    if (cost != null) said.push(`${data.noun} ${money(cost)}`);
    if (data.trend[at] != null) said.push(`trend ${money(data.trend[at])}`);
    if (data.expected[at] != null) said.push(`expected ${money(data.expected[at])}`);
    if (data.explored[at]) said.push("the plan explored");
    if (data.external[at] != null) said.push("not planned here");
    const plan = data.rounds[at] == null ? "" : ` (plan ${data.rounds[at]})`;
    values.textContent = `${label(at)}${plan}: ${said.join(", ") || "not known yet"}`;
  }

  function draw() {
    drawn?.destroy();
    drawn = null;
    place.replaceChildren();
    const known = data && [...data.realised, ...data.external].some((value) => value != null);
    place.classList.toggle("blank", !known);
    if (known) drawn = new uPlot(options(), columns(data), place);
    else place.textContent = "No observations yet.";
  }

  async function fetched() {
    const answer = await fetch(place.dataset.chart, { headers: { Accept: "application/json" } });
    if (!answer.ok) return;
    data = await answer.json();
    if (drawn && data.days.length > 1) drawn.setData(columns(data)); else draw();
    place.dataset.head = data.head;  // which entry it shows
  }

  dark.addEventListener("change", draw);
  new ResizeObserver(() => drawn?.setSize({ width: place.clientWidth, height })).observe(place);
  document.addEventListener("study:changed", () => fetched().catch(() => {}));
  fetched().catch(() => {});
})();

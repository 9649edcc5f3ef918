// Numbers as the browser's language writes them, and times in the zone of the viewer. The server
// writes <data value>, in drawings <tspan data-value>, and <time datetime>; their text stays as it is
// without this script.
"use strict";
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  function number(item) {
    const decimals = (item.dataset.text ??= item.textContent).split(".")[1]?.length ?? 0;
    const given = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    return Number(item.dataset.value ?? item.value).toLocaleString(undefined, given);
  }

  function time(item) {
    const style = "day" in item.dataset ? { dateStyle: "short" } : { dateStyle: "short", timeStyle: "short" };
    return new Date(item.dateTime).toLocaleString("sv", style);  // 2026-11-17 08:30, as keys and fields have dates
  }

  function localise() {
    for (const item of document.querySelectorAll("data[value], [data-value]")) item.textContent = number(item);
    for (const item of document.querySelectorAll("time[datetime]")) item.textContent = time(item);
  }

  // a row for one more limit, when the last one is used
  document.addEventListener("input", (event) => {
    const row = event.target.closest(".rule");
    if (!row || row.nextElementSibling || row.parentElement.querySelectorAll(".rule").length >= 40) return;
    const next = row.cloneNode(true);
    next.querySelectorAll(".error").forEach((error) => error.remove());
    for (const field of next.querySelectorAll("input, select")) {
      const more = (text) => text.replace(/\d+$/, (digits) => Number(digits) + 1);
      field.name = more(field.name);
      field.setAttribute("aria-label", more(field.getAttribute("aria-label")));
      field.removeAttribute("aria-invalid");
      field.removeAttribute("aria-describedby");
      if (field.matches("input")) field.value = "";
    }
    row.after(next);
  });

  for (const button of document.querySelectorAll("[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => print());
  }

  const zoned = document.getElementById("zone");
  if (zoned && zone) zoned.textContent = `Times are in the zone ${zone}.`;
  document.addEventListener("htmx:after:swap", localise);
  localise();
  (document.querySelector("[aria-invalid]") ?? document.querySelector(".errors"))?.focus();
})();

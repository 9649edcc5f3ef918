// Buttons of forms show that something is under way, if it takes longer than 0.3 seconds. A form is
// sent once.
"use strict";
(() => {
  const words = document.getElementById("busy");
  let timer = 0;

  function end() {
    clearTimeout(timer);
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
    for (const button of document.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
    words.textContent = "";
  }

  document.addEventListener("submit", (event) => {
    const form = event.target, button = event.submitter ?? form.querySelector("button");
    if (form.method !== "post") return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    timer = setTimeout(() => {
      button?.setAttribute("aria-busy", "true");
      words.textContent = "Please wait.";
    }, 300);
  });
  addEventListener("pageshow", end);  // also when a browser goes back to this page
})();

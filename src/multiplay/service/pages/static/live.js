// Live updates of a study's page by server-sent events. The connection is open only while the page
// is visible, since a browser limits the connections of all of its tabs.
"use strict";
(() => {
  const study = document.getElementById("study");
  if (!study) return;
  const live = document.getElementById("live"), words = document.getElementById("live-state");
  const message = document.getElementById("message");
  let source = null, head = study.dataset.head, wait = 2000, timer = 0;

  function state(name, text) {
    live.dataset.state = name;
    words.textContent = text;
  }

  function listen() {
    clearTimeout(timer);
    if (source || document.hidden) return;
    source = new EventSource(study.dataset.events);
    source.addEventListener("open", () => { wait = 2000; state("live", "live"); });
    source.addEventListener("changed", (event) => {
      if (event.data === head) return;
      head = event.data;
      study.dispatchEvent(new CustomEvent("study:changed", { bubbles: true }));
    });
    source.addEventListener("error", () => {
      state("lost", "not connected: this page may be out of date");
      if (source.readyState !== EventSource.CLOSED) return;  // the browser reconnects
      stop();
      timer = setTimeout(listen, wait);
      wait = Math.min(2 * wait, 60000);
    });
  }

  function stop() {
    source?.close();
    source = null;
  }

  // A part with user input is not replaced.
  const isBusy = (part) => part?.matches("[data-form]")
    && (part.querySelector("[data-touched]") || part.contains(document.activeElement));
  document.addEventListener("input", (event) => {
    event.target.closest("form[data-keep]")?.setAttribute("data-touched", "");
  });
  document.addEventListener("htmx:before:swap", (event) => {
    const tasks = event.detail.tasks;
    const target = (task) => typeof task.target === "string" ? document.querySelector(task.target) : task.target;
    tasks.splice(0, tasks.length, ...tasks.filter((task) => !isBusy(target(task))));
  });
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.detail.ctx?.sourceElement !== study) return;  // a part that is loaded later
    const newest = document.querySelector("[data-latest]")?.dataset.latest;
    if (newest) message.textContent = `Just now: ${newest}`;
  });

  document.addEventListener("visibilitychange", () => document.hidden ? stop() : listen());
  addEventListener("pagehide", stop);
  addEventListener("pageshow", listen);
  listen();
})();

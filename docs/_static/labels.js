// The theme's arrows that open parts of the sidebar have no name: here they get one.
for (const arrow of document.querySelectorAll(".bd-sidebar-primary summary")) {
  const link = arrow.closest("li").querySelector("a");
  arrow.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
}

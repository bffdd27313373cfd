// Light, dark, or whatever the system says. A classic script in the head, so that the first paint already has the right colours.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => dispatchEvent(new CustomEvent("halftide:theme"));
  let kept = null;
  try { kept = localStorage.getItem("theme"); } catch { /* no storage here: the system decides */ }
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  system.addEventListener("change", tell);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const dark = (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* this page only */ }
    tell();
  });
  let before = null; // paper is light, also for what a script has drawn
  addEventListener("beforeprint", () => { before = root.dataset.theme ?? ""; root.dataset.theme = "light"; tell(); });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    tell();
  });
})();

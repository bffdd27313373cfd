// The strip of nodes is one stop for the Tab key where it has a thousand squares: arrows go along it, Home and End to its ends.
// A cell whose row stands on this page leads there; else it leads to the page of nodes that has it.
const cellsOf = (strip) => [...strip.querySelectorAll("a.cell")];

const above = (all, here, way) => { // the nearest cell of the row above or below
  const from = here.getBoundingClientRect();
  const other = all.map((cell) => [cell, cell.getBoundingClientRect()]).filter(([, at]) => way * (at.top - from.top) > 4);
  const row = way > 0 ? other[0]?.[1].top : other[other.length - 1]?.[1].top;
  const [near] = other.filter(([, at]) => Math.abs(at.top - row) < 4)
    .sort(([, a], [, b]) => Math.abs(a.left - from.left) - Math.abs(b.left - from.left));
  return near?.[0];
};
const STEPS = {
  ArrowRight: (all, here) => all[all.indexOf(here) + 1],
  ArrowLeft: (all, here) => all[all.indexOf(here) - 1],
  ArrowDown: (all, here) => above(all, here, 1),
  ArrowUp: (all, here) => above(all, here, -1),
  Home: (all) => all[0],
  End: (all) => all[all.length - 1],
};
const only = (strip, one) => { for (const cell of cellsOf(strip)) cell.tabIndex = cell === one ? 0 : -1; };

const keep = (strip) => {
  if (strip.classList.contains("dense")) only(strip, cellsOf(strip)[0]);
  strip.addEventListener("keydown", (event) => {
    const here = event.target.closest("a.cell"), step = STEPS[event.key];
    if (!here || !step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = step(cellsOf(strip), here);
    if (!next) return;
    if (strip.classList.contains("dense")) [here.tabIndex, next.tabIndex] = [-1, 0];
    next.focus();
  });
  strip.addEventListener("click", (event) => {
    const row = document.getElementById(event.target.closest("a.cell")?.hash.slice(1) ?? "");
    if (!row?.checkVisibility()) return;
    event.preventDefault();
    location.hash = row.id;
  });
};
export const keepCells = () => {
  for (const strip of document.querySelectorAll(".cells:has([data-cells])")) keep(strip);
  document.addEventListener("halftide:cell", ({ detail: item }) => { // one that came or changed keeps the strip one stop
    const cell = item.querySelector("a.cell"), strip = item.closest(".cells.dense");
    if (strip && cellsOf(strip).some((other) => other !== cell && other.tabIndex === 0)) cell.tabIndex = -1;
  });
};

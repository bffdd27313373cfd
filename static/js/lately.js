// The last 24 hours in bars: live rows are counted into theirs, words are in the reader's zone. When the newest bar is over, each 20
// minutes, the page asks for the picture anew; no event asks the server. Where none can be drawn the old one stays for another bar, and
// a console that is in trouble is asked less and less often.
import { MOST, countsOf, nameAll, paintAll, says } from "./bars.js";
import { matches } from "./filter.js";
import { fragment } from "./parts.js";
import { put, serverNow } from "./times.js";
import { zoneName } from "./zone.js";

const LOOK = 10_000, SOON = 250, BAR = 20 * 60e3; // milliseconds: between two looks at the clock; to a burst's drawing; of a bar
const GRAVE = { warning: 1, critical: 2 };
const hoursOf = (box) => [...box.querySelectorAll("[data-hour]")];

// One stop for the Tab key: arrows go from hour to hour.
const only = (box, one) => { for (const hour of hoursOf(box)) hour.setAttribute("tabindex", hour === one ? 0 : -1); };
const keepKeys = (box) => box.addEventListener("keydown", (event) => {
  const all = hoursOf(box), here = all.indexOf(event.target.closest("[data-hour]"));
  const next = all[{ ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: all.length - 1 }[event.key]];
  if (here < 0 || !next || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  only(box, next);
  next.focus();
});
export const keepLately = (box) => {
  if (!box) return;
  const line = document.querySelector("[data-lately-says]");
  // `due`: when to ask for the picture; `held`: what comes while it is asked for
  let svg, seen, wish, due, tries = 0, held = null, drawing = null;

  const start = (drawn) => {
    [svg, seen, wish, due, tries] = [drawn, new Set(), JSON.parse(drawn.dataset.wish), Date.parse(drawn.dataset.end), 0];
    only(box, box.querySelector("[data-hour][aria-current]") ?? hoursOf(box).at(-1));
    if (zoneName() !== "UTC") nameAll(box);
  };
  const draw = () => {
    drawing = null;
    paintAll(box);
    nameAll(box);
    put(line, says(box));
  };
  const isCounted = (row) => +row.dataset.id <= +svg.dataset.newest || seen.has(row.dataset.id);
  const count = (row) => {
    const at = Date.parse(row.dataset.at), bars = [...box.querySelectorAll("[data-bar]")];
    const bar = at < Date.parse(svg.dataset.end) && bars.findLast((one) => Date.parse(one.dataset.bar) <= at);
    if (!bar || isCounted(row) || !matches(row, wish, serverNow())) return;
    seen.add(row.dataset.id);
    const counts = countsOf(bar), grave = GRAVE[row.dataset.severity];
    for (const index of grave ? [0, grave] : [0]) counts[index] = Math.min(MOST, counts[index] + 1);
    bar.dataset.counts = counts.join(" ");
    drawing ??= setTimeout(draw, SOON);
  };
  const later = () => { due = serverNow() + Math.min(BAR, LOOK * 2 ** (tries += 1)) * (0.8 + Math.random() * 0.4); };
  const renew = async () => {
    if (held || document.hidden || serverNow() < due) return;
    held = [];
    try {
      const answer = await fetch(svg.dataset.lately), drawn = answer.ok && fragment(await answer.text()).querySelector("svg");
      if (answer.status === 204) due = serverNow() + BAR; // counting takes too long
      else if (!drawn) later();
      if (!drawn) return; // what stands there stays
      const focused = box.contains(document.activeElement);
      svg.replaceWith(drawn);
      start(drawn);
      for (const row of held) count(row);
      put(line, says(box));
      if (focused) box.querySelector("[data-hour][tabindex='0']").focus({ preventScroll: true });
    } catch { later(); } finally { held = null; }
  };
  start(box.querySelector("svg"));
  keepKeys(box);
  document.addEventListener("halftide:entry", ({ detail: row }) => { held?.push(row); count(row); });
  document.addEventListener("halftide:zone", () => nameAll(box));
  document.addEventListener("visibilitychange", renew);
  setInterval(renew, LOOK);
};

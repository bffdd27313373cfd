// The window of the timeline that stands on the page: at most 500 rows. What goes out of it at one end comes back by paging, so
// `gap` says that newer rows than the first are missing here, and `more` that there are older ones than the last.
import { showCountdowns } from "./countdown.js";
import { isBefore, place, regroup, tidy } from "./days.js";
import { fold, keepFolds, unfold } from "./folds.js";
import { drawMark, keepLook } from "./looked.js";
import { keepZone, showClocks } from "./zone.js";

export const MOST = 500;
export const list = document.querySelector("[data-entries]");
export const ends = { gap: list?.dataset.gap !== undefined, more: list?.dataset.more !== undefined };
const column = document.querySelector("[data-live]");
let settling = null, isAway = null;

const rows = () => list.getElementsByClassName("ev");
export const edge = (way) => { const all = rows(); return way === "older" ? all[all.length - 1] : all[0]; };

// Whether the reader is away from the top. Asked once for all rows of a frame, because asking makes the browser lay out the page.
export const away = () => {
  if (isAway === null) {
    const head = column.querySelector(".live-head, .card-head").getBoundingClientRect();
    isAway = list.getBoundingClientRect().top < Math.max(head.bottom - 24, 48); // under its own head, or under the page's bar
    setTimeout(() => { isAway = null; });
  }
  return isAway;
};
export const settle = () => {
  clearTimeout(settling);
  settling = null;
  tidy(list);
  drawMark(list);
  fold(list);
  for (const link of document.querySelectorAll("[data-older]")) link.hidden = !ends.more;
  for (const box of list.querySelectorAll("[data-newer-box]")) box.hidden = !ends.gap;
};
const soon = () => { settling ??= setTimeout(settle); };

export const trim = (end) => {
  const all = rows();
  if (all.length <= MOST) return;
  if (end === "older") ends.more = true; else ends.gap = true;
  while (all.length > MOST) edge(end).remove();
};
export const insert = (row) => {
  const last = edge("older");
  if (ends.more && last && isBefore(last, row)) return; // it comes with the older ones
  showClocks(row);
  place(list, row);
  showCountdowns(row);
  soon();
};
export const replace = (old, row) => {
  if (+old.dataset.revision >= +row.dataset.revision) return;
  const slot = row.querySelector("[data-drain]"), had = old.querySelector("[data-drain]");
  if (slot && had && !slot.childElementCount) slot.replaceChildren(...had.childNodes);
  row.toggleAttribute("data-unfolded", old.dataset.unfolded !== undefined);
  old.replaceWith(row);
  showClocks(row);
  showCountdowns(row);
  soon();
};
export const take = (row) => { row.remove(); soon(); };

// What stands before the reader's eyes stays there, whatever comes or goes above it.
const still = (act) => {
  const scroller = getComputedStyle(column).overflowY === "auto" ? column : document.scrollingElement;
  const seen = [...rows()].find((row) => row.getBoundingClientRect().bottom > 0 && !row.hidden), top = seen?.getBoundingClientRect().top;
  act();
  if (seen?.isConnected) scroller.scrollTop += seen.getBoundingClientRect().top - top;
};
export const addPiece = (way, piece, goesOn) => still(() => {
  ends[way === "older" ? "more" : "gap"] = false;
  for (const row of piece) if (!document.getElementById(row.id)) insert(row);
  ends[way === "older" ? "more" : "gap"] = goesOn;
  trim(way === "older" ? "newer" : "older");
  settle();
});
export const keepRows = () => {
  const linked = list.dataset.linked && document.getElementById(list.dataset.linked);
  if (linked) { linked.setAttribute("aria-current", "true"); unfold(linked); }
  keepFolds(list);
  keepZone(() => { regroup(list); settle(); });
  settle();
  linked?.scrollIntoView({ block: "center" }); // folding has moved it from where the address had put it
  keepLook(list, () => !ends.gap);
};

// Live rows: each is asked whether the address's filter lets it through, replaces its older self, and waits while the reader is away
// from the top or newer rows are missing here; the pill counts what waits.
import { matches } from "./filter.js";
import { keepPaging } from "./paging.js";
import { fragment } from "./parts.js";
import { MOST, away, ends, insert, keepRows, list, replace, settle, take, trim } from "./rows.js";
import { serverNow } from "./times.js";

const EXPIRE = 10_000; // milliseconds between two looks at what a filter like "last hour" no longer lets through
const pill = document.querySelector("[data-new]");
const column = document.querySelector("[data-live]");
const wish = JSON.parse(list?.dataset.wish || "{}");
const waiting = new Map();

const arrive = (row) => {
  insert(row);
  row.classList.add("is-new");
  setTimeout(() => row.classList.remove("is-new"), 6000);
};
const count = () => {
  if (!pill) return;
  pill.hidden = waiting.size === 0;
  pill.querySelector("[data-new-count]").textContent = `${waiting.size >= MOST ? "500 or more" : waiting.size} new`;
  document.dispatchEvent(new CustomEvent("halftide:held", { detail: waiting.size }));
};
const flush = () => {
  for (const row of waiting.values()) if (!document.getElementById(row.id)) arrive(row);
  waiting.clear();
  trim("older");
  settle();
  count();
};
export const applyEntry = (html) => {
  const row = fragment(html).firstElementChild;
  if (!row || !list) return;
  document.dispatchEvent(new CustomEvent("halftide:entry", { detail: row }));
  const old = document.getElementById(row.id), held = waiting.get(row.id);
  if (!matches(row, wish, serverNow())) { // or no longer, because its text has changed
    if (old) take(old);
    if (waiting.delete(row.id)) count();
    return;
  }
  if (old) return replace(old, row);
  if (held && +held.dataset.revision >= +row.dataset.revision) return;
  if (!ends.gap && waiting.size === 0 && !away()) { arrive(row); trim("older"); return; }
  waiting.set(row.id, row);
  if (waiting.size > MOST) waiting.delete(waiting.keys().next().value);
  count();
};
const look = () => { if (waiting.size && !ends.gap && !away()) flush(); };
const toTop = () => {
  if (ends.gap) { location.assign(list.dataset.newest); return; } // too far away to be filled row by row
  flush();
  column.scrollTo?.({ top: 0 });
  column.scrollIntoView({ block: "nearest" });
};
if (list) {
  keepRows();
  keepPaging();
  for (const scroller of [column, window]) scroller.addEventListener("scroll", look, { passive: true });
  pill?.addEventListener("click", toTop);
  if (wish.seconds) {
    setInterval(() => {
      for (const row of list.querySelectorAll(".ev")) if (!matches(row, wish, serverNow())) take(row);
    }, EXPIRE);
  }
}

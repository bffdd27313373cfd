// The timeline on the page: rows by (time, id), newest first, under their days; none twice, none older over newer, at most 500.
// While the reader is away from the top, new rows wait and the pill counts them.
import { fragment } from "./parts.js";
import { showCountdowns } from "./countdown.js";

const MOST = 500;
const list = document.querySelector("[data-entries]");
const past = document.querySelector("main[data-past]") !== null; // a page of the past takes no new rows
const pill = document.querySelector("[data-new]");
const column = document.querySelector("[data-live]");
const waiting = new Map();

const before = (a, b) => a.dataset.at > b.dataset.at || (a.dataset.at === b.dataset.at && +a.dataset.id > +b.dataset.id);
const away = () => {
  const head = column.querySelector(".live-head, .card-head").getBoundingClientRect();
  return list.getBoundingClientRect().top < Math.max(head.bottom - 24, 48); // under its own head, or under the page's bar
};
const dayList = (day) => {
  const known = list.querySelector(`[data-day-rows="${day}"]`);
  if (known) return known;
  list.querySelector("[data-none]")?.remove();
  const later = [...list.querySelectorAll("[data-day-head]")].find((head) => head.dataset.dayHead < day);
  const head = document.createElement("h3"), span = document.createElement("span"), rows = document.createElement("ol");
  const date = new Date(`${day}T00:00:00Z`);
  head.className = "day";
  head.dataset.dayHead = rows.dataset.dayRows = day;
  const part = (options) => date.toLocaleDateString("en", { timeZone: "UTC", ...options });
  span.textContent = `${part({ weekday: "short" })} ${date.getUTCDate()} ${part({ month: "short" })}, UTC`;
  if (day === new Date().toISOString().slice(0, 10)) head.append("Today ");
  head.append(span);
  list.insertBefore(head, later ?? list.querySelector(".more"));
  list.insertBefore(rows, later ?? list.querySelector(".more"));
  return rows;
};
const seen = (row) => setTimeout(() => row.classList.remove("is-new"), 6000);
const trim = () => {
  const rows = list.querySelectorAll(".ev");
  for (let last = rows.length - 1; last >= MOST; last -= 1) rows[last].remove();
  for (const empty of list.querySelectorAll("ol:empty")) {
    list.querySelector(`[data-day-head="${empty.dataset.dayRows}"]`)?.remove();
    empty.remove();
  }
};
const insert = (row) => {
  const all = list.querySelectorAll(".ev"), last = all[all.length - 1];
  if (last && before(last, row) && list.querySelector("[data-older]")) return; // it comes with the older ones
  const rows = dayList(row.dataset.day);
  rows.insertBefore(row, [...rows.children].find((other) => before(row, other)) ?? null);
  row.classList.add("is-new");
  showCountdowns(row);
  seen(row);
};
const replace = (old, row) => {
  if (+old.dataset.revision >= +row.dataset.revision) return;
  const slot = row.querySelector("[data-drain]"), had = old.querySelector("[data-drain]");
  if (slot && had && !slot.childElementCount) slot.replaceChildren(...had.childNodes);
  old.replaceWith(row);
  showCountdowns(row);
};
const count = () => {
  if (!pill) return;
  pill.hidden = waiting.size === 0;
  pill.querySelector("[data-new-count]").textContent = `${waiting.size >= MOST ? "500 or more" : waiting.size} new`;
  document.dispatchEvent(new CustomEvent("halftide:held", { detail: waiting.size }));
};
export const flush = () => {
  for (const row of waiting.values()) insert(row);
  waiting.clear();
  trim();
  count();
};
export const applyEntry = (html) => {
  const row = fragment(html).firstElementChild;
  if (!row || !list) return;
  document.dispatchEvent(new CustomEvent("halftide:entry", { detail: row }));
  const old = document.getElementById(row.id);
  if (old) return replace(old, row);
  if (past) return;
  const held = waiting.get(row.id);
  if (held && +held.dataset.revision >= +row.dataset.revision) return;
  if (!away() && waiting.size === 0) { insert(row); trim(); return; }
  waiting.set(row.id, row);
  if (waiting.size > MOST) waiting.delete(waiting.keys().next().value);
  count();
};
const look = () => { if (waiting.size && !away()) flush(); };
if (list) {
  for (const scroller of [column, window]) scroller.addEventListener("scroll", look, { passive: true });
  pill?.addEventListener("click", () => { flush(); column.scrollTo?.({ top: 0 }); column.scrollIntoView({ block: "nearest" }); });
}

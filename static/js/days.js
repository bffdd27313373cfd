// Rows under the headings of their days, in the zone that the reader chose. Newest first, by (time, id); no row twice.
import { dayOf, dayTitle, dayWord, showClocks } from "./zone.js";

export const isBefore = (a, b) => a.dataset.at > b.dataset.at || (a.dataset.at === b.dataset.at && +a.dataset.id > +b.dataset.id);

const heading = (head, at) => {
  const span = document.createElement("span");
  span.textContent = dayTitle(at);
  head.replaceChildren(dayWord(at), span);
};
const dayList = (list, row) => {
  const at = Date.parse(row.dataset.at), day = dayOf(at);
  const known = list.querySelector(`[data-day-rows="${day}"]`);
  if (known) return known;
  list.querySelector("[data-none]")?.remove();
  const later = [...list.querySelectorAll("[data-day-head]")].find((head) => head.dataset.dayHead < day);
  const head = document.createElement("h3"), rows = document.createElement("ol");
  head.className = "day";
  head.dataset.dayHead = rows.dataset.dayRows = day;
  heading(head, at);
  list.insertBefore(head, later ?? null);
  list.insertBefore(rows, later ?? null);
  return rows;
};
export const place = (list, row) => {
  const rows = dayList(list, row);
  rows.insertBefore(row, [...rows.children].find((other) => other.dataset.at && isBefore(row, other)) ?? null);
};
export const tidy = (list) => {
  for (const rows of list.querySelectorAll("[data-day-rows]")) {
    if (rows.querySelector(".ev")) continue;
    list.querySelector(`[data-day-head="${rows.dataset.dayRows}"]`)?.remove();
    rows.remove();
  }
};
export const regroup = (list) => {
  const all = [...list.querySelectorAll(".ev")];
  for (const old of list.querySelectorAll("[data-day-head], [data-day-rows]")) old.remove();
  for (const row of all) {
    showClocks(row);
    dayList(list, row).append(row);
  }
};

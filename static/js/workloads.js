// The Workloads tab: rows come by socket or poll; the filter of the page's address is applied to them here. A row that is there is
// replaced where it stands, so that nothing moves under a reader; a new one goes where the order has it.
import { fillCopies } from "./copy.js";
import { fragment, place } from "./parts.js";

const table = document.querySelector("[data-workloads]");
const asked = new URLSearchParams(location.search);
const text = (asked.get("q") ?? "").trim().toLowerCase(), namespace = asked.get("namespace") ?? "", trouble = asked.get("show") === "trouble";

const lets = (row) =>
  (!namespace || row.dataset.namespace === namespace) && row.dataset.text.includes(text) && (!trouble || row.dataset.trouble === "1");
const count = () => {
  const none = document.querySelector("[data-workloads-none]"), said = document.querySelector("[data-workloads-count]");
  if (!table) return;
  const rows = [...table.children];
  if (none) none.hidden = rows.length > 0;
  const whole = table.dataset.paged === undefined && !text && !namespace && !trouble; // only then can it be counted
  const bad = rows.filter((row) => row.dataset.trouble === "1").length;
  document.dispatchEvent(new CustomEvent("halftide:count", { detail: whole ? bad : 0 }));
  if (!said || !whole) return;
  const words = bad ? `${bad} of ${rows.length} need a look` : `${rows.length}, none in trouble`;
  if (said.textContent !== words) said.textContent = words;
};
export const applyWorkload = (html) => {
  const row = fragment(html).firstElementChild;
  if (!row) return;
  const old = document.getElementById(row.id);
  if (!old && (!table || table.dataset.paged !== undefined || !lets(row))) return;
  if (old && table && !lets(row)) old.remove();
  else place(row, table);
  fillCopies(row);
  count();
};
export const keepWorkloads = () => {
  for (const row of document.querySelectorAll("tr[data-logs]")) fillCopies(row);
};

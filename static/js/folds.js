// A run of rows that say the same but for names and numbers is one line, "×12, 14:02:11–14:05:31", that opens to all of them. Nothing
// leaves the page: a folded row stands there hidden, a link to it opens its run, and paper shows all.
import { clockOf } from "./zone.js";

const LEAST = 3;

const button = (run, open) => {
  const last = clockOf(Date.parse(run[0].dataset.at)), first = clockOf(Date.parse(run[run.length - 1].dataset.at));
  const made = document.createElement("button");
  Object.assign(made, { type: "button", className: "times fold" });
  made.dataset.fold = "";
  made.textContent = `×${run.length}, ${first}–${last}`;
  made.setAttribute("aria-expanded", String(open));
  made.setAttribute("aria-label", `${run.length} entries alike, from ${first} to ${last}`);
  return made;
};
const dress = (run) => {
  const long = run.length >= LEAST, open = long && run.some((row) => row.dataset.unfolded !== undefined);
  run.forEach((row, index) => {
    const old = row.querySelector("[data-fold]");
    row.hidden = long && !open && index > 0;
    row.toggleAttribute("data-unfolded", open);
    row.classList.toggle("is-alike", long && open && index > 0);
    if (!long || index > 0) return old?.remove();
    const made = button(run, open), focused = old === document.activeElement;
    if (old?.isEqualNode(made)) return undefined;
    if (old) old.replaceWith(made); else row.querySelector("p").append(" ", made);
    if (focused) made.focus({ preventScroll: true });
    return undefined;
  });
};
export const fold = (list) => {
  for (const rows of list.querySelectorAll("[data-day-rows]")) {
    let run = [];
    for (const row of rows.children) {
      if (run.length && (!row.dataset.alike || row.dataset.alike !== run[0].dataset.alike)) { dress(run); run = []; }
      if (row.classList.contains("ev")) run.push(row);
    }
    if (run.length) dress(run);
  }
};
const runOf = (row) => {
  const run = [row];
  for (const way of ["previousElementSibling", "nextElementSibling"]) {
    for (let next = row[way]; next?.dataset.alike && next.dataset.alike === row.dataset.alike; next = next[way]) run.push(next);
  }
  return run;
};
export const unfold = (row, open = true) => { for (const one of runOf(row)) one.toggleAttribute("data-unfolded", open); };
export const keepFolds = (list) => list.addEventListener("click", (event) => {
  const pressed = event.target.closest("[data-fold]");
  if (!pressed) return;
  unfold(pressed.closest(".ev"), pressed.getAttribute("aria-expanded") !== "true");
  fold(list);
});

// Older and newer rows, a piece at a time, from the place of the row that is last or first here now: what went out of the window comes
// back the same way. Without scripts the same links open a page of their own.
import { addPiece, edge, list } from "./rows.js";
import { offer } from "./keys.js";
import { fragment } from "./parts.js";

const said = document.querySelector("[data-paged]");

const load = async (way, row) => {
  const place = encodeURIComponent(`${row.dataset.at}~${row.dataset.id}`), query = list.dataset.query ? `${list.dataset.query}&` : "";
  const answer = await fetch(`${list.dataset.rows}?${query}${way === "older" ? "before" : "after"}=${place}`);
  if (!answer.ok) throw new Error(answer.status);
  const piece = fragment(await answer.text()).firstElementChild, rows = [...piece.children];
  addPiece(way, rows, piece.dataset.more !== undefined);
  said.textContent = rows.length ? `${rows.length} ${way} entries added` : `There are no ${way} entries`;
};
const keep = (way, link) => link?.addEventListener("click", async (event) => {
  const row = edge(way);
  if (!row || link.getAttribute("aria-disabled") === "true") { if (row) event.preventDefault(); return; }
  event.preventDefault();
  link.setAttribute("aria-disabled", "true");
  try {
    await load(way, row);
  } catch {
    said.textContent = "They cannot be loaded just now. Press again to try again.";
  } finally {
    link.removeAttribute("aria-disabled");
  }
});
export const keepPaging = () => {
  const older = document.querySelector("[data-older]"), newer = list.querySelector("[data-newer]");
  keep("older", older);
  keep("newer", newer);
  offer("o", "Older entries", () => older.click(), () => older?.checkVisibility() === true);
  offer("u", "Newer entries", () => newer.click(), () => newer?.checkVisibility() === true);
};

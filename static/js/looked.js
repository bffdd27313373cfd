// "Since you last looked": a line before the first row that this person has seen. The server keeps the mark; it moves when they leave a
// page they really saw: visible for two seconds, unfiltered, its newest rows in view. One request a visit, none an event.
import { clockOf, dayTitle } from "./zone.js";

const SEEN = 2000; // milliseconds

export const drawMark = (list) => {
  const known = +list.dataset.seen;
  list.querySelector(".since-mark")?.remove();
  const rows = list.querySelectorAll(".ev"), first = [...rows].findIndex((row) => +row.dataset.id <= known);
  if (!known || first < 1) return;
  const line = document.createElement("li"), at = Date.parse(list.dataset.seenAt);
  line.className = "since-mark";
  line.textContent = `New since you last looked, ${clockOf(at)}, ${dayTitle(at)}`;
  rows[first].before(line);
};
export const keepLook = (list, isNewest) => {
  if (!list.dataset.looked || list.dataset.wish !== "{}") return;
  let since = null, told = +(list.dataset.seen ?? 0), inView = false;
  const watch = () => { since = inView && document.visibilityState === "visible" ? since ?? Date.now() : null; };
  const tell = () => {
    const newest = Math.max(0, ...[...list.querySelectorAll(".ev")].slice(0, 100).map((row) => +row.dataset.id));
    if (since === null || Date.now() - since < SEEN || !isNewest() || newest <= told) return;
    told = newest;
    navigator.sendBeacon(list.dataset.looked, new URLSearchParams({ entry: newest, csrfmiddlewaretoken: list.dataset.token }));
  };
  new IntersectionObserver((seen) => { inView = seen[seen.length - 1].isIntersecting; watch(); }).observe(list);
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") tell(); watch(); });
  addEventListener("pagehide", tell);
};

// Times in UTC, or in the reader's own zone where they ask for it. The zone is named in each day's heading, and the exact instant in UTC
// stays in every tooltip. Kept in this browser: it is about this screen and its place, and the server's pages stay the same for all.
import { put, serverNow } from "./times.js";

const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
let local = false;
try { local = localStorage.getItem("zone") === "local"; } catch { /* no storage here: UTC */ }
let formats = {};

const format = (name, locale, options) => {
  formats[name] ??= new Intl.DateTimeFormat(locale, { ...options, timeZone: zoneName() });
  return formats[name];
};
export const zoneName = () => (local ? own : "UTC");
export const clockOf = (at) => format("clock", "en-GB", CLOCK).format(at);
export const dayOf = (at) => format("day", "sv", { year: "numeric", month: "2-digit", day: "2-digit" }).format(at);
export const minuteOf = (at) => clockOf(at).slice(0, 5);
export const dateOf = (at) => { // Thu 12 Nov
  const part = (name, options) => format(name, "en", options).format(at);
  return `${part("weekday", { weekday: "short" })} ${part("date", { day: "numeric" })} ${part("month", { month: "short" })}`;
};
export const dayTitle = (at) => `${dateOf(at)}, ${zoneName()}`;
export const ownClock = (at) => (local ? `${clockOf(at)} ${own}` : ""); // beside the instant in UTC, where that is not what is shown
const exact = (at) => [`${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`, ownClock(at)].filter(Boolean).join(", ");
export const dayWord = (at) => {
  const day = dayOf(at), now = serverNow();
  return day === dayOf(now) ? "Today " : day === dayOf(now - 86400e3) ? "Yesterday " : "";
};
export const showClocks = (root) => {
  for (const time of root.querySelectorAll("time[data-clock]")) {
    const at = Date.parse(time.dateTime);
    put(time, clockOf(at));
    time.title = exact(at);
  }
};
export const showZone = () => {
  for (const name of document.querySelectorAll("[data-zone-name]")) put(name, zoneName());
  for (const button of document.querySelectorAll("[data-zone]")) {
    button.setAttribute("aria-pressed", String((button.dataset.zone === "local") === local));
  }
};
export const keepZone = (changed) => {
  const box = document.querySelector("[data-zones]");
  if (box) box.hidden = false;
  showZone();
  if (local) changed();
  box?.addEventListener("click", (event) => {
    const wanted = event.target.closest("[data-zone]")?.dataset.zone;
    if (!wanted || (wanted === "local") === local) return;
    [local, formats] = [wanted === "local", {}];
    try { localStorage.setItem("zone", wanted); } catch { /* this page only */ }
    showZone();
    changed();
    document.dispatchEvent(new CustomEvent("halftide:zone"));
  });
};

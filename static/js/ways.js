// Going places by keys: g and a letter follows a link that names it (data-go), j and k walk along entries or rows of a table.
import { offer } from "./keys.js";

const visible = (element) => element.checkVisibility({ visibilityProperty: true });
const stops = () => [...document.querySelectorAll("[data-entries] .ev > a, main tbody a.name, .hits .hit")].filter(visible);
const step = (by) => {
  const all = stops(), here = all.indexOf(document.activeElement);
  const next = here < 0 ? all[0] : all[Math.min(all.length - 1, Math.max(0, here + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
};
const click = (selector) => document.querySelector(selector)?.click();

export const keepWays = () => {
  const seen = new Set();
  for (const link of document.querySelectorAll("a[data-go]")) {
    const keys = `g ${link.dataset.go}`, says = link.dataset.goSays ?? link.firstChild.textContent;
    if (!seen.has(keys)) offer(keys, says, () => location.assign(link.href));
    seen.add(keys);
  }
  offer("j", "The next entry or row", () => step(1), () => stops().length > 0);
  offer("k", "The one before", () => step(-1), () => stops().length > 0);
  offer("n", "Show what is new", () => click("[data-new]:not([hidden])"), () => document.querySelector("[data-new]") !== null);
  offer("t", "To the target", () => document.querySelector("#target").focus(), () => document.querySelector("#target:enabled") !== null);
  offer(".", "Light or dark", () => click("[data-theme-toggle]"), () => document.querySelector("[data-theme-toggle]") !== null);
};

// The help sheet: which keys work on this page, and the switch that turns single keys off. Focus goes back where it was (dialog).
import { areOn, offer, offered, turn } from "./keys.js";

const sheet = document.querySelector("dialog[data-keys]");
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

const keyCaps = (keys) => keys.split(/[ +]/).map((key) => {
  const cap = document.createElement("kbd");
  cap.textContent = key === "mod" ? (MAC ? "⌘" : "Ctrl") : key.length === 1 && keys.startsWith("mod") ? key.toUpperCase() : key;
  return cap;
});
const line = (caps, says) => {
  const row = document.createElement("div"), term = document.createElement("dt"), what = document.createElement("dd");
  term.append(...caps.flatMap((cap) => [cap, " "]));
  what.textContent = says;
  row.append(term, what);
  return row;
};
const STANDING = [ // what works without a key of ours
  ["Tab", "To the next thing; the first one skips to the page"],
  ["Esc", "Close what is open; on the target, put back what was"],
];
export const openHelp = () => {
  if (!sheet || document.querySelector("dialog[open]")) return;
  const rows = offered().map((one) => line(keyCaps(one.keys), one.says));
  if (document.querySelector("[data-cells]")) rows.push(line(keyCaps("← ↑ ↓ →"), "From node to node in the strip"));
  if (document.querySelector("[data-lately]")) rows.push(line(keyCaps("← →"), "From hour to hour in the last 24 hours"));
  if (document.querySelector("#target:enabled")) rows.push(line(keyCaps("← →"), "On the target: one node less or more"));
  rows.push(...STANDING.map(([key, says]) => line(keyCaps(key), says)));
  sheet.querySelector("[data-keys-list]").replaceChildren(...rows);
  sheet.querySelector("[data-keys-on]").checked = areOn();
  sheet.showModal();
};
export const keepHelp = () => {
  if (!sheet) return;
  offer("?", "This list", openHelp);
  for (const button of document.querySelectorAll("[data-open-keys]")) button.addEventListener("click", openHelp);
  sheet.addEventListener("click", (event) => {
    if (event.target === sheet || event.target.closest("[data-close]")) sheet.close();
  });
  sheet.querySelector("[data-keys-on]").addEventListener("change", (event) => turn(event.target.checked));
};

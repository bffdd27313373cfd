// Puts pushed html in its place: the panel's parts, cells of the strip, rows of the nodes table. What a person holds in the
// hand is frozen: the newest text for it waits until they let go.
import { showCountdowns } from "./countdown.js";
import { showTimes } from "./times.js";

const frozen = new Map();
let holding = false;
const HELD = new Set(["gauge", "figure", "below"]);

export const fragment = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html; // made and escaped by the server, the same as on first load
  return template.content;
};
const tell = (name, detail) => document.dispatchEvent(new CustomEvent(`halftide:${name}`, { detail }));

const putPart = (name, nodes) => {
  for (const place of document.querySelectorAll(`main [data-part="${name}"]`)) {
    place.replaceChildren(...nodes);
    showTimes(place);
    showCountdowns(place);
  }
};
export const applyPanel = (html) => {
  for (const part of fragment(html).children) {
    const name = part.dataset.part, nodes = [...part.childNodes];
    if (holding && HELD.has(name)) frozen.set(name, nodes);
    else putPart(name, nodes);
  }
  tell("panel");
};
// The panel in the answer to a form: not taken where the page has already heard what came after it.
export const applyAnswer = ({ panel, head }) => {
  if (head >= +document.querySelector("main").dataset.revision) applyPanel(panel);
};
export const hold = () => {
  holding = true; // what stands there now comes back when the hand lets go, unless something newer has come
  for (const name of HELD) frozen.set(name, [...document.querySelector(`main [data-part="${name}"]`).cloneNode(true).childNodes]);
};
export const letGo = () => {
  holding = false;
  for (const [name, nodes] of frozen) putPart(name, nodes);
  frozen.clear();
  tell("panel");
};

// One cell or row: in the place of its older self, or where the page's order has it; a bounded table takes no more than its limit.
export const place = (element, list) => {
  const old = document.querySelector(`[data-key="${CSS.escape(element.dataset.key)}"]`);
  if (old) {
    const focused = old.contains(document.activeElement) ? document.activeElement.dataset.verb ?? "link" : null;
    old.replaceWith(element);
    if (focused) queueMicrotask(() => element.querySelector("button, a")?.focus());
  } else if (list && !(list.dataset.limit && list.children.length >= +list.dataset.limit)) {
    const after = [...list.children].find((other) => other.dataset.sort > element.dataset.sort);
    list.insertBefore(element, after ?? null);
  } else return;
  showTimes(element);
  showCountdowns(element);
};
export const applyCell = (html) => {
  const element = fragment(html).firstElementChild;
  if (!element) return;
  place(element, document.querySelector(`[data-cells="${element.dataset.sort[0]}"]`));
  const dense = element.querySelector(".tip") === null; // beyond some number of nodes cells are sent small
  for (const cells of document.querySelectorAll(".cells")) cells.classList.toggle("dense", dense);
  tell("cell", element);
};
export const applyNode = (html) => {
  const element = fragment(html).firstElementChild;
  if (!element) return;
  const table = document.querySelector("[data-nodes]");
  place(element, table);
  const none = document.querySelector("[data-nodes-none]");
  if (none && table) none.hidden = table.children.length > 0;
  tell("node", element);
};
export const takeAway = (id) => {
  const key = CSS.escape(id.replaceAll("-", ""));
  for (const gone of document.querySelectorAll(`[data-key$="-${key}"], [data-node="${key}"]`)) gone.remove();
};
export const applyDrain = (id, html) => {
  for (const slot of document.querySelectorAll(`[data-drain="${CSS.escape(id)}"]`)) {
    const open = slot.querySelector("details")?.open;
    slot.replaceChildren(fragment(html));
    const details = slot.querySelector("details");
    if (details && open !== undefined) details.open = open;
    showTimes(slot);
    showCountdowns(slot);
  }
};

// Search over any page: Ctrl K, / or the glass in the bar. The field keeps the focus, arrows move along the list, Enter goes.
// What is listed is what the search page lists; without scripts the glass leads there.
import { offer } from "./keys.js";
import { showTimes } from "./times.js";

const sheet = document.querySelector("dialog[data-palette]");
const field = sheet?.querySelector("input"), list = sheet?.querySelector("[role=listbox]");
const says = sheet?.querySelector("[data-palette-says]");
let asked = null, timer = null;

const options = () => [...list.querySelectorAll("[role=option]")];
const point = (option) => {
  for (const one of options()) one.setAttribute("aria-selected", String(one === option));
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
};
const current = () => list.querySelector("[aria-selected=true]");
const element = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text });

const draw = (hit, number) => {
  const link = Object.assign(element("a", "hit", ""), { id: `hit-${number}`, href: hit.href, tabIndex: -1 });
  const icon = document.querySelector("svg.i").cloneNode(true), below = element("small", "", hit.says);
  link.setAttribute("role", "option");
  icon.querySelector("use").setAttribute("href", `#${hit.icon}`);
  if (hit.at) {
    const time = Object.assign(document.createElement("time"), { dateTime: hit.at, title: `${hit.at.slice(0, 19).replace("T", " ")} UTC` });
    time.dataset.ago = "";
    below.append(" · ", time);
  }
  link.append(icon, element("span", "hit-title", hit.title), below);
  return link;
};
const show = (found) => {
  let number = 0;
  list.replaceChildren(...found.groups.map((group, index) => {
    const box = document.createElement("div"), head = element("div", "label", group.title);
    head.id = `hits-${index}`;
    box.setAttribute("role", "group");
    box.setAttribute("aria-labelledby", head.id);
    box.append(head, ...group.hits.map((hit) => draw(hit, number++)));
    return box;
  }));
  showTimes(list);
  field.setAttribute("aria-expanded", String(number > 0));
  point(options()[0]);
  says.textContent = number ? `${number} found. Arrows choose, Enter goes.` : `Nothing has all of “${found.text}”.`;
};
const ask = async () => {
  asked?.abort();
  const mine = asked = new AbortController();
  try {
    const answer = await fetch(`/search?q=${encodeURIComponent(field.value)}`, { headers: { Accept: "application/json" }, signal: mine.signal });
    if (!answer.ok) throw new Error(answer.status);
    const found = await answer.json();
    if (asked === mine) show(found);
  } catch {
    if (asked === mine) says.textContent = "The console does not answer. Enter tries the search page.";
  }
};
export const openPalette = () => {
  if (document.querySelector("dialog[open]")) return;
  sheet.showModal();
  field.select();
  ask();
};
const MOVES = { ArrowDown: 1, ArrowUp: -1 };
export const keepPalette = () => {
  if (!sheet) return;
  offer("mod+k", "Search clusters, nodes, entries and pages", openPalette);
  offer("/", "Search", openPalette);
  for (const link of document.querySelectorAll("[data-open-palette]")) {
    link.addEventListener("click", (event) => { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); openPalette(); } });
  }
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 120); });
  field.addEventListener("keydown", (event) => {
    if (!MOVES[event.key]) return;
    event.preventDefault();
    const all = options(), next = all.indexOf(current()) + MOVES[event.key];
    point(all[(next + all.length) % all.length]);
  });
  sheet.addEventListener("submit", (event) => {
    const hit = current();
    if (hit) { event.preventDefault(); sheet.close(); location.assign(hit.href); }
  });
  sheet.addEventListener("click", (event) => { if (event.target === sheet || event.target.closest(".hit")) sheet.close(); });
};

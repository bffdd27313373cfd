// Bars of 20 minutes under their hours: what one counts, how it is drawn and what an hour says. The measures and words are those of
// console/timeline/lately.py, which draws the first picture.
import { put } from "./times.js";
import { dateOf, minuteOf, zoneName } from "./zone.js";

const HOUR = 3600e3, BASE = 40, HIGH = 36, LEAST = 3, FEWEST = 12;
export const MOST = 1000; // of one bar; then it says "or more"
const NS = "http://www.w3.org/2000/svg";

const barsOf = (box) => [...box.querySelectorAll("[data-bar]")];
export const countsOf = (bar) => bar.dataset.counts.split(" ").map(Number); // all, warnings, critical
const total = (bars) => bars.map(countsOf).reduce((one, other) => one.map((number, index) => number + other[index]), [0, 0, 0]);
const many = (bars) => `${total(bars)[0].toLocaleString("en")}${bars.some((bar) => countsOf(bar)[0] >= MOST) ? " or more" : ""}`;

const paint = (bar, top) => {
  const [all, warning, critical] = countsOf(bar), parts = [];
  let y = BASE;
  for (const [look, number] of [["s-info", all - warning - critical], ["s-warn", warning], ["s-crit", critical]]) {
    if (number <= 0) continue;
    const part = document.createElementNS(NS, "rect"), height = Math.max(LEAST, Math.round((number * HIGH) / top));
    y -= height;
    for (const [name, value] of Object.entries({ class: look, width: "100%", y, height })) part.setAttribute(name, value);
    parts.push(part);
  }
  bar.replaceChildren(...parts);
};
export const paintAll = (box) => {
  const bars = barsOf(box), top = Math.max(FEWEST, ...bars.map((bar) => countsOf(bar)[0]));
  for (const bar of bars) paint(bar, top);
};
export const says = (box) => `${total(barsOf(box))[0] ? many(barsOf(box)) : "None"} in the last 24 hours`;

export const stretch = (begins) => { // ends where the hour of UTC ends, whatever this zone's clock shows then
  const ends = (Math.floor(begins / HOUR) + 1) * HOUR;
  return `${dateOf(begins)}, ${minuteOf(begins)} to ${minuteOf(ends)} ${zoneName()}`;
};
const words = (bars) => {
  const [all, warning, critical] = total(bars), found = [`${many(bars)} entr${all === 1 ? "y" : "ies"}`];
  if (warning) found.push(`${warning.toLocaleString("en")} warning${warning === 1 ? "" : "s"}`);
  if (critical) found.push(`${critical.toLocaleString("en")} critical`);
  return found.join(", ");
};
export const nameAll = (box) => {
  for (const hour of box.querySelectorAll("[data-hour]")) {
    put(hour.querySelector("title"), `${stretch(Date.parse(hour.dataset.hour))}: ${words(barsOf(hour))}`);
  }
  for (const tick of box.querySelectorAll("[data-tick]")) put(tick, minuteOf(Date.parse(tick.dataset.tick)));
};

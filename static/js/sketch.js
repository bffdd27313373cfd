// The chart's first picture: the same steps as Plotly's, as rects and lines in percent, so that nothing stretches and no library is
// needed to see it. Colours are classes of the style sheet, so a change of theme needs no drawing. Places are instants; only the words
// under the axis are in the reader's zone, so a night on which clocks are changed is as long as it was.
import { dateOf, minuteOf } from "./zone.js";

const NS = "http://www.w3.org/2000/svg";
const MOST = 400; // steps; with more the library draws

const make = (name, attributes, text = "") => {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
const percent = (part) => `${Math.round(part * 100000) / 1000}%`;

export const scale = (data) => { // the end of the axis and the distance of its lines
  const most = Math.max(...data.desired, ...data.allocated, 1);
  const every = Math.max(data.step, Math.ceil(Math.max(most, data.step) / data.step / 4) * data.step);
  return { every, top: every * Math.max(2, Math.ceil(most / every)) };
};
export const ticks = (from, to, count) => { // times under the axis, in the zone that the reader chose
  const word = to - from > 2 * 864e5 ? dateOf : minuteOf;
  return Array.from({ length: count + 1 }, (_, step) => from + ((to - from) * step) / count).map((at) => ({ at, word: word(at) }));
};
export const canSketch = (data) => data.at.length <= MOST;

export const sketch = (plot, data, from, to) => {
  const { every, top } = scale(data), svg = make("svg", { "aria-hidden": "true" });
  const x = (at) => Math.min(1, Math.max(0, (at - from) / (to - from))), y = (gpus) => 1 - gpus / top;
  const add = (name, attributes, text) => svg.append(make(name, attributes, text));
  const line = (look, x1, y1, x2, y2) => add("line", { class: look, x1: percent(x1), y1: percent(y1), x2: percent(x2), y2: percent(y2) });
  const box = (look, x1, x2, low, high) => {
    if (high > low && x2 > x1) add("rect", { class: look, x: percent(x1), y: percent(y(high)), width: percent(x2 - x1), height: percent((high - low) / top) });
  };
  for (let gpus = 0; gpus <= top; gpus += every) {
    line(gpus ? "c-grid" : "c-axis", 0, y(gpus), 1, y(gpus));
    add("text", { class: "c-text end", x: -8, y: percent(y(gpus)), dy: 4 }, String(gpus));
  }
  const wide = plot.clientWidth > 560;
  for (const { at, word } of ticks(from, to, wide ? 6 : 3)) {
    add("text", { class: `c-text ${at === to && !wide ? "end" : "mid"}`, x: percent(x(at)), y: "100%", dy: 18 }, word);
  }
  const steps = data.at.map((at, index) => ({ x: x(Date.parse(at)), has: data.allocated[index], wants: data.desired[index] }));
  steps.forEach((now, index) => {
    const end = steps[index + 1]?.x ?? 1, before = steps[index - 1];
    box("c-area", now.x, end, 0, now.has);
    box("c-gap", now.x, end, now.has, now.wants);
    for (const [look, value, last] of [["c-line", now.has, before?.has], ["c-want", now.wants, before?.wants]]) {
      if (end > now.x) line(look, now.x, y(value), end, y(value));
      if (last !== undefined && last !== value && now.x > 0) line(look, now.x, y(last), now.x, y(value));
    }
  });
  for (const mark of data.marks.filter((one) => Date.parse(one.at) >= from)) {
    const at = x(Date.parse(mark.at)), place = make("svg", { x: percent(at), y: 0, width: 1, height: 1, overflow: "visible" });
    line("c-markline", at, 0, at, 1);
    place.append(make("path", { class: "c-mark", d: "M-5-5H5L0 3z" }));
    svg.append(place);
  }
  const now = steps[steps.length - 1], close = Math.abs(now.wants - now.has) < top * 0.1, same = now.wants === now.has;
  const end = (look, gpus, word, dy) => add("text", { class: `c-text strong ${look} hide-s`, x: "100%", dx: 8, y: percent(y(gpus)), dy }, `${gpus} ${word}`);
  end("", now.wants, same ? "as desired" : "desired", 4);
  if (!same) end("tide", now.has, "allocated", close ? (now.has < now.wants ? 16 : -8) : 4);
  const frame = document.createElement("div");
  frame.className = wide ? "chart" : "chart plain";
  frame.append(svg);
  plot.replaceChildren(frame);
};

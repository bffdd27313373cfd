// The picture itself: allocated as an area, desired as a dashed line, what is not yet here hatched between them, preemptions as marks.
// Its axis is of instants. Their words are in the reader's zone, and under the pointer stands the instant in UTC too, as in the list.
import { scale, ticks } from "./sketch.js";
import { ownClock } from "./zone.js";

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const resolve = (value) => { // light-dark() and var() as a colour that Plotly understands
  const probe = document.createElement("i");
  probe.style.color = value;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};
const colour = (name) => resolve(`var(${name})`);
const faint = (rgb, alpha) => rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

export const draw = (plot, data, from, to) => {
  const tide = colour("--tide"), ink = colour("--ink"), soft = colour("--ink-3"), line = colour("--line"), amber = colour("--amber");
  const amberText = colour("--amber-text"), tideText = colour("--tide-text"), surface = colour("--surface");
  const font = { family: token("--sans") || "sans-serif", size: 11, color: soft };
  const { every, top } = scale(data);
  const last = data.at.length - 1, lined = { shape: "hv" };
  const marks = data.marks.filter((mark) => Date.parse(mark.at) >= from);
  const traces = [
    { x: data.at, y: data.allocated, name: "allocated", line: { ...lined, color: tide, width: 2 }, fill: "tozeroy",
      fillcolor: faint(tide, 0.2), hovertemplate: "%{y} allocated<extra></extra>" },
    { x: data.at, y: data.desired.map((want, index) => Math.max(want, data.allocated[index])), line: { ...lined, width: 0, color: tide },
      fill: "tonexty", fillcolor: "rgba(0,0,0,0)", fillpattern: { shape: "/", size: 6, solidity: 0.22, fgcolor: tide }, hoverinfo: "skip" },
    { x: data.at, y: data.desired, name: "desired", line: { ...lined, color: ink, width: 1.5, dash: "4px 3px" },
      hovertemplate: "%{y} desired<extra></extra>" },
    { x: marks.map((mark) => mark.at), y: marks.map(() => top), text: marks.map((mark) => mark.what), mode: "markers", name: "taken back",
      marker: { symbol: "triangle-down", size: 10, color: amber, line: { color: amberText, width: 1 } }, cliponaxis: false,
      hovertemplate: "%{text} taken back<extra></extra>" },
  ].map((trace) => ({ type: "scatter", mode: "lines", ...trace }));
  if (ownClock(to)) {
    traces.push({ x: data.at, y: data.allocated, type: "scatter", mode: "lines", line: { ...lined, width: 0 },
      text: data.at.map((at) => ownClock(Date.parse(at))), hovertemplate: "%{text}<extra></extra>" });
  }
  const end = (value, text, weight) => ({ x: 1, xref: "paper", xanchor: "left", xshift: 8, y: value, yanchor: "middle", showarrow: false,
    text: `${value} ${text}`, font: { ...font, color: weight, weight: 600 } });
  const close = Math.abs(data.desired[last] - data.allocated[last]) < top * 0.1;
  const ends = [end(data.desired[last], close && data.desired[last] === data.allocated[last] ? "as desired" : "desired", ink)];
  if (data.desired[last] !== data.allocated[last]) ends.push(end(data.allocated[last], "allocated", tideText));
  if (ends.length === 2 && close) ends[1].yshift = data.allocated[last] < data.desired[last] ? -12 : 12;
  const wide = plot.clientWidth > 560, times = ticks(from, to, wide ? 6 : 3);
  window.Plotly.react(plot, traces, {
    height: 220, margin: { l: 44, r: wide ? 104 : 16, t: 14, b: 28 }, showlegend: false, hovermode: "x unified", font, dragmode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", annotations: wide ? ends : [],
    hoverlabel: { bgcolor: surface, bordercolor: line, font: { ...font, color: ink } },
    xaxis: { range: [from, to].map((at) => new Date(at).toISOString()), type: "date", showgrid: false, linecolor: line, fixedrange: true,
      tickvals: times.map(({ at }) => new Date(at).toISOString()), ticktext: times.map(({ word }) => word), tickmode: "array", tickfont: font,
      hoverformat: "%d %b %H:%M:%S UTC" },
    yaxis: { range: [0, top], dtick: every, gridcolor: line, zerolinecolor: line, fixedrange: true, tickfont: font },
    shapes: marks.map((mark) => ({ type: "line", x0: mark.at, x1: mark.at, y0: 0, y1: top, line: { color: amberText, width: 1, dash: "2px 3px" } })),
  }, { displayModeBar: false, responsive: true, doubleClick: false });
};

// The chart is drawn when it comes into view, from its series alone. Plotly (a linked file of 1.5 MB) is loaded once somebody points at
// it, focuses it or chooses a range. Afterwards it is drawn on from what the page hears anyway; no event asks the server.
import { draw } from "./plot.js";
import { canSketch, sketch } from "./sketch.js";
import { serverNow } from "./times.js";

// Plotly's global style and a map library's are linked, not injected: Plotly leaves them out where these ids stand.
const STYLES = ["plotly.js-style-global", "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53"];
const LENGTH = { "1h": 3600e3, "6h": 21600e3, "24h": 86400e3, "7d": 604800e3 };

const loaded = (element) => new Promise((resolve, reject) => {
  element.addEventListener("load", resolve);
  element.addEventListener("error", reject);
  document.head.append(element);
});
let ready = null;
const plotly = (plot) => {
  ready ??= Promise.all([
    ...STYLES.map((id) => loaded(Object.assign(document.createElement("link"),
      { id, className: "no-inline-styles", rel: "stylesheet", href: plot.dataset.style }))),
  ]).then(() => loaded(Object.assign(document.createElement("script"), { src: plot.dataset.plotly })));
  return ready;
};

export const keepChart = (card) => {
  if (!card) return;
  const plot = card.querySelector("[data-plot]"), says = card.querySelector("[data-chart-says]");
  let data = null, range = card.querySelector("[data-range][aria-pressed=true]").dataset.range, again = null;

  const redraw = () => {
    again = null;
    if (!data) return;
    const now = serverNow(), last = data.at.length - 1;
    data.at[last] = new Date(now).toISOString(); // the last step goes on until now
    plot.removeAttribute("aria-busy");
    if (window.Plotly) {
      if (!plot.classList.contains("js-plotly-plot")) plot.replaceChildren();
      draw(plot, data, now - LENGTH[range], now);
    } else sketch(plot, data, now - LENGTH[range], now);
    says.textContent = `Preemptible GPUs in the last ${range}: ${data.desired[last]} desired and ${data.allocated[last]} allocated now, `
      + `taken back ${data.marks.length} times.`;
  };
  const closer = async () => { // Plotly: values under the pointer
    if (window.Plotly) return redraw();
    try { await plotly(plot); } catch { ready = null; } // the sketch stays; the next touch tries again
    return redraw();
  };
  const soon = () => { again ??= setTimeout(redraw, 250); };
  const load = async () => {
    const wanted = range;
    try {
      const answer = await fetch(`${card.dataset.url}?range=${wanted}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(answer.status);
      const got = await answer.json();
      if (wanted !== range) return; // another range was chosen meanwhile
      data = got;
      if (canSketch(data)) redraw();
      else await closer();
    } catch {
      plot.removeAttribute("aria-busy");
      if (!data) plot.textContent = "The chart cannot be loaded just now. Choose a range to try again.";
    }
  };
  const grow = () => {
    const now = document.querySelector("[data-now]")?.dataset;
    if (!data || !now) return;
    const last = data.at.length - 1, desired = +now.desired, allocated = +now.allocated;
    if (desired !== data.desired[last] || allocated !== data.allocated[last]) {
      const at = new Date(serverNow()).toISOString();
      data.at[last] = at;
      for (const [list, value] of [[data.at, at], [data.at, at], [data.desired, desired], [data.desired, desired],
        [data.allocated, allocated], [data.allocated, allocated]]) list.push(value);
    }
    soon();
  };
  card.addEventListener("click", (event) => {
    const button = event.target.closest("[data-range]");
    if (!button) return;
    range = button.dataset.range;
    for (const one of card.querySelectorAll("[data-range]")) one.setAttribute("aria-pressed", String(one === button));
    load();
  });
  for (const kind of ["pointerenter", "focusin"]) card.addEventListener(kind, closer);
  document.addEventListener("halftide:panel", grow);
  document.addEventListener("halftide:entry", ({ detail: row }) => {
    if (!data || row.dataset.reason !== "TogetherPreempted" || data.marks.some((mark) => mark.id === +row.dataset.id)) return;
    data.marks.push({ at: row.dataset.at, what: row.querySelector("b.mono")?.textContent ?? "", id: +row.dataset.id });
    soon();
  });
  addEventListener("halftide:theme", redraw);
  setInterval(() => { if (data && !document.hidden) redraw(); }, 30000);
  new ResizeObserver(soon).observe(plot);
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    observer.disconnect();
    load();
  }, { rootMargin: "100px" }).observe(plot);
};

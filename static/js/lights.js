// Two lights that never lie: the badge is browser to console, the line under the title is console to Kubernetes. Where the page has
// ended for good, a note over it says so and leads on.
import { note } from "./send.js";
import { clock, noteServerTime, put, serverNow, span } from "./times.js";

const badge = document.querySelector("[data-badge]");
const line = document.querySelector("[data-heard]");
const main = document.querySelector("main[data-cluster]");
const LOOKS = {
  live: ["tide", "dot", () => "Live"],
  held: ["", "i-pause", () => "Held while you read"],
  reconnecting: ["amber", "ring", (since) => `Reconnecting, ${span((serverNow() - since) / 1000)}`],
  polling: ["", "i-retry", () => "Every 5 s"],
  dead: ["red", "i-x", (since) => `Not live since ${clock(since).slice(0, 5)}`],
  out: ["", "i-lock", () => "Signed out"],
  lost: ["", "i-lock", () => "Not yours to see any more"],
};
const here = () => encodeURIComponent(location.pathname + location.search);
const ENDS = {
  out: ["You are signed out.", "i-lock", ["Sign in again", () => location.assign(`/sign-in/?next=${here()}`)]],
  lost: ["You may not see this page any more.", "i-lock", ["To the clusters", () => location.assign("/")]],
};
let state = "reconnecting", since = serverNow(), held = 0, title = "";

const icon = (name) => {
  if (name === "dot" || name === "ring") {
    const dot = document.createElement("span");
    dot.className = name === "ring" ? "dot ring" : "dot";
    return dot;
  }
  const svg = document.querySelector("svg.i").cloneNode(true);
  svg.querySelector("use").setAttribute("href", `#${name}`);
  return svg;
};
let drawn = "";
const draw = () => {
  if (!badge) return;
  const shown = state === "live" && held ? "held" : state, [look, mark, says] = LOOKS[shown];
  if (drawn !== shown) {
    badge.className = `badge ${look}`;
    badge.firstElementChild.replaceWith(icon(mark));
    drawn = shown;
  }
  put(badge.querySelector("[data-badge-text]"), says(since));
  badge.title = title;
};
const farewell = (says, icon, choice) => {
  const last = note(`${says} What stands here is as of ${clock(serverNow())} UTC and changes no more.`, "amber flash", icon, [choice]);
  last.setAttribute("role", "alert");
  document.querySelector("main").prepend(last);
};
export const setLight = (name, from = serverNow(), says = "") => {
  if (state !== name && ENDS[name]) farewell(...ENDS[name]);
  if (state !== name) since = from;
  [state, title] = [name, says];
  draw();
  document.dispatchEvent(new CustomEvent("halftide:light", { detail: name }));
};

let heard = line?.dataset.heard ? Date.parse(line.dataset.heard) : null;
const drawHeard = () => {
  if (!line || heard === null) return;
  const age = Math.max(0, (serverNow() - heard) / 1000), kube = age <= 30 ? "ok" : age <= 120 ? "stale" : "lost";
  line.className = `fresh ${kube}`;
  put(line.querySelector("[data-heard-text]"), kube === "lost"
    ? `Last heard from Kubernetes at ${clock(heard)} UTC`
    : `Heard from Kubernetes ${span(age)} ago`);
  line.title = `${new Date(heard).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  main.dataset.kube = kube;
};
export const setHeard = (iso) => { if (iso) { heard = Date.parse(iso); drawHeard(); } };

document.addEventListener("halftide:held", (event) => { held = event.detail; draw(); });
if (main) noteServerTime(main.dataset.at);
setInterval(() => { draw(); drawHeard(); }, 1000);
drawHeard();

// The socket and what to do without one. A frame is applied only if it is not older than the page; on an event no request goes out.
// Without a socket the page asks each 5 s, and says so; a socket that is silent for 12 s (beats come each 5) is no socket.
import { applyEntry } from "./entries.js";
import { setHeard, setLight } from "./lights.js";
import { applyCell, applyDrain, applyNode, applyPanel, takeAway } from "./parts.js";
import { applyWorkload } from "./workloads.js";
import { clock, noteServerTime, serverNow } from "./times.js";

const POLL = 5000, SILENT = 12000, LONGEST = 5000;
const main = document.querySelector("main[data-cluster]");
const epoch = main.dataset.epoch, cluster = main.dataset.cluster;
let revision = +main.dataset.revision;
let socket = null, tries = 0, heardAt = serverNow(), lastFrame = Date.now(), polling = null, polled = false, asking = false, over = false, openedAt = null;

const KINDS = {
  entry: (row) => applyEntry(row.html),
  drain: (row) => applyDrain(row.id, row.html),
  panel: (row) => applyPanel(row.html),
  cell: (row) => applyCell(row.html),
  node: (row) => applyNode(row.html),
  workload: (row) => applyWorkload(row.html),
};
const apply = (frame) => {
  if (frame.revision < revision) return;
  for (const row of frame.rows) KINDS[row.kind]?.(row);
  for (const gone of frame.gone ?? []) takeAway(String(gone.id));
  revision = frame.revision;
  main.dataset.revision = revision;
};
const take = (frame) => {
  [lastFrame, heardAt] = [Date.now(), serverNow()];
  if (frame.at) noteServerTime(frame.at);
  if (frame.heard_at) setHeard(frame.heard_at);
  if (frame.type === "rows") apply(frame);
  if (frame.type === "reload") setTimeout(() => location.reload(), Math.max(0, 5000 - performance.now())); // never in a loop
};
const stop = (light) => {
  over = true;
  clearInterval(polling);
  setLight(light);
};
const poll = async () => {
  polled = true; // from here on its own light stands, until a socket speaks again
  if (asking) return;
  asking = true;
  try {
    const answer = await fetch(`/clusters/${cluster}/updates?since=${revision}&epoch=${epoch}`, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(SILENT) });
    if (answer.status === 401) return stop("out");
    if (answer.status === 403 || answer.status === 404) return stop("lost");
    if (!answer.ok) throw new Error(answer.status);
    take(await answer.json());
    if (socket?.readyState !== WebSocket.OPEN) setLight("polling", serverNow(), "There is no socket, so the page asks each 5 seconds");
  } catch {
    setLight("dead", heardAt, "Nothing answers. The page goes on trying; it can be reloaded too");
  } finally {
    asking = false;
  }
};
const retry = () => {
  if (over) return;
  if (!polled) setLight("reconnecting", heardAt, "What is missed is fetched before it says Live again");
  polling ??= setInterval(poll, POLL);
  setTimeout(connect, Math.min(LONGEST, 500 * 2 ** tries) * (0.8 + Math.random() * 0.4));
  tries += 1;
};
const connect = () => {
  if (over) return;
  const mine = new WebSocket(`${location.origin.replace("http", "ws")}/live/${cluster}/?since=${revision}&epoch=${epoch}`);
  socket = mine;
  mine.addEventListener("message", (event) => {
    take(JSON.parse(event.data));
    clearInterval(polling);
    [polling, polled, tries, openedAt] = [null, false, 0, openedAt ?? serverNow()];
    setLight("live", openedAt, `Connected since ${clock(openedAt)} UTC, revision ${revision}`);
  });
  mine.addEventListener("close", (event) => {
    if (socket !== mine) return;
    [socket, openedAt] = [null, null];
    if (event.code === 4401) return stop("out");
    if (event.code === 4403 || event.code === 4404) return stop("lost");
    retry();
  });
};
export const goLive = () => {
  connect();
  setInterval(() => {
    if (socket?.readyState !== WebSocket.OPEN || Date.now() - lastFrame < SILENT) return;
    const silent = socket;
    socket = null;
    silent.close();
    openedAt = null;
    retry();
  }, 1000);
};

// Pages without a stream of their own (Capacity, the clusters list) ask for their parts each 5 seconds and say when they last got
// them. A part that has not changed is not touched, so what one reads, marks or has the focus on stays; unseen, a page does not ask.
import { keepCountdowns } from "./countdown.js";
import { setLight } from "./lights.js";
import { fragment } from "./parts.js";
import { clock, noteServerTime, put, serverNow, showTimes } from "./times.js";

const EVERY = 5000, LONGEST = 10000;
const main = document.querySelector("main[data-polled]");
let heardAt, asking = false, over = false;

const putPart = (place, html) => {
  const fresh = place.cloneNode(false);
  fresh.append(fragment(html));
  for (const one of [place, fresh]) showTimes(one);
  if (fresh.isEqualNode(place)) return;
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const again = focused?.id ? `#${CSS.escape(focused.id)}` : focused?.getAttribute("href") ? `a[href="${CSS.escape(focused.getAttribute("href"))}"]` : null;
  place.replaceChildren(...fresh.childNodes);
  if (again) place.querySelector(again)?.focus({ preventScroll: true });
};
const take = ({ at, parts }) => {
  noteServerTime(at);
  heardAt = serverNow();
  for (const [name, html] of Object.entries(parts)) {
    const place = main.querySelector(`[data-part="${CSS.escape(name)}"]`);
    if (place) putPart(place, html);
  }
  const asOf = main.querySelector("[data-as-of]");
  if (asOf) put(asOf, clock(Date.parse(at)));
  document.dispatchEvent(new CustomEvent("halftide:panel"));
  setLight("polling", heardAt, "The page asks for news each 5 seconds while you look at it");
};
const stop = (light) => { over = true; setLight(light); };
const ask = async () => {
  if (over || asking || document.hidden) return;
  asking = true;
  try {
    const answer = await fetch(main.dataset.polled, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(LONGEST) });
    if (answer.status === 401) return stop("out");
    if (answer.status === 403) return stop("lost");
    if (!answer.ok) throw new Error(answer.status);
    take(await answer.json());
  } catch {
    setLight("dead", heardAt, "Nothing answers. The page goes on trying; it can be reloaded too");
  } finally {
    asking = false;
  }
};
if (main) {
  noteServerTime(main.dataset.at);
  heardAt = serverNow();
  setLight("polling", heardAt);
  keepCountdowns(main);
  setInterval(ask, EVERY);
  document.addEventListener("visibilitychange", ask);
}

// The tide gauge. Moving it only previews; a value that has settled is one request with the revision it was based on. While it is
// held no live update touches it. Requests go one after the other; the last value wins, and late answers restore nothing.
import { done, isOvertaken, refused } from "./outcome.js";
import { applyAnswer, hold, letGo } from "./parts.js";
import { facts, preview, says } from "./preview.js";
import { post } from "./send.js";

const SETTLED = { pointer: 150, key: 500, box: 500 }; // milliseconds without another move; Enter waits for none

export const keepGauge = (panel) => {
  if (!panel) return;
  const form = panel.querySelector("[data-gauge-form]"), range = panel.querySelector("[type=range]");
  const box = form.elements.gpus, said = panel.querySelector("[data-gauge-said]");
  // `base` is set while held: by a hand that is `moving`, or for an answer under way. `taken`: what was asked for since then and is so
  let base = null, taken = null, timer = null, busy = false, moving = false, next = null, by = "key", dropped = false;

  const sync = (keepBox = false) => {
    const now = facts(panel);
    range.max = now.end;
    range.value = now.desired;
    if (!keepBox) box.value = now.desired;
    range.setAttribute("aria-valuetext", says(now.desired, now));
  };
  const target = () => taken ?? facts(panel).desired;
  const grab = () => {
    if (base !== null) return;
    base = facts(panel).revision;
    hold();
  };
  const halt = () => { clearTimeout(timer); timer = null; };
  const release = (keepBox = false) => {
    halt();
    letGo();
    [base, taken, moving] = [null, null, false];
    if (!keepBox) box.removeAttribute("aria-invalid");
    sync(keepBox);
  };
  const rest = () => {
    moving = false;
    if (base !== null && !busy) release();
  };
  const drop = () => { halt(); [dropped, next] = [true, null]; rest(); };
  const idle = () => setTimeout(() => { if (timer === null) rest(); }); // let go of without a change: an event that would come first
  const move = () => { halt(); moving = true; grab(); }; // what was about to be sent is not the last word
  const show = (want) => {
    move();
    said.replaceChildren();
    preview(panel, want);
    range.setAttribute("aria-valuetext", says(want, facts(panel)));
  };
  const tell = (words) => said.replaceChildren(words);
  const refuse = (answer, want, from) => {
    const keepBox = by === "box" && !isOvertaken(answer);
    release(keepBox);
    if (!answer.unsure && !isOvertaken(answer)) box.setAttribute("aria-invalid", "true");
    tell(refused(answer, want, from, settle));
  };
  const send = async (want, on) => {
    [busy, next] = [true, null];
    const from = target(), token = form.elements.csrfmiddlewaretoken.value;
    const answer = await post(form.action, { csrfmiddlewaretoken: token, gpus: want, based_on: on });
    busy = false;
    if (answer.ok) [taken, base] = [+want, String(answer.body.revision)];
    if (next) return send(next.want, answer.ok ? base : next.on);
    if (answer.ok) applyAnswer(answer.body);
    if (moving) return; // taken up again meanwhile
    if (!answer.ok) return refuse(answer, want, from);
    release();
    if (from !== +want) tell(done(+want, from, facts(panel), settle));
  };
  const settle = (want, on = base ?? facts(panel).revision) => {
    [timer, moving] = [null, false];
    grab();
    if (busy) next = { want, on };
    else if (String(want) === String(target())) release();
    else send(want, on);
  };
  const later = (want, wait = SETTLED[by]) => {
    halt();
    moving = true;
    timer = setTimeout(() => settle(want), wait);
  };
  range.addEventListener("pointerdown", () => { [by, dropped] = ["pointer", false]; move(); });
  range.addEventListener("pointerup", idle);
  range.addEventListener("pointercancel", drop); // a finger that scrolls the page over the gauge
  range.addEventListener("keydown", (event) => { by = "key"; dropped = false; if (event.key === "Escape") drop(); });
  range.addEventListener("input", () => { if (!dropped) { box.value = range.value; show(+range.value); } });
  range.addEventListener("change", () => { if (dropped) sync(); else later(range.value); });
  box.addEventListener("input", () => { by = "box"; range.value = box.value; if (/^\d+$/.test(box.value)) show(+box.value); else move(); });
  box.addEventListener("blur", idle);
  box.addEventListener("change", () => later(box.value));
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") drop(); });
  form.addEventListener("submit", (event) => { event.preventDefault(); by = "box"; later(box.value, 0); });
  document.addEventListener("halftide:panel", () => { if (base === null) sync(box.hasAttribute("aria-invalid")); });
  sync(box.hasAttribute("aria-invalid"));
};

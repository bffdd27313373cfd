// The tide gauge. Moving it only previews; a value that has settled is one request with the revision it was based on. While it is
// held no live update touches it. Requests go one after the other; the last value wins, and late answers restore nothing.
import { applyPanel, hold, letGo } from "./parts.js";
import { facts, preview, says } from "./preview.js";
import { note, post } from "./send.js";

const UNDO = 20_000; // milliseconds in which a new target can be taken back with one press
const SETTLED = { pointer: 150, key: 500, box: 0 }; // milliseconds without another move

export const keepGauge = (panel) => {
  if (!panel) return;
  const form = panel.querySelector("[data-gauge-form]"), range = panel.querySelector("[type=range]");
  const box = form.elements.gpus, said = panel.querySelector("[data-gauge-said]");
  let base = null, timer = null, busy = false, next = null, by = "key", dropped = false; // `base` is set while held

  const sync = (keepBox = false) => {
    const now = facts(panel);
    range.max = now.end;
    range.value = now.desired;
    if (!keepBox) box.value = now.desired;
    range.setAttribute("aria-valuetext", says(now.desired, now));
  };
  const grab = () => {
    if (base !== null) return;
    base = facts(panel).revision;
    hold();
  };
  const release = (keepBox = false) => {
    clearTimeout(timer);
    letGo();
    [base, timer] = [null, null];
    if (!keepBox) box.removeAttribute("aria-invalid");
    sync(keepBox);
  };
  const drop = () => {
    dropped = true;
    if (base !== null && !busy) release();
  };
  const show = (want) => {
    grab();
    said.replaceChildren();
    preview(panel, want);
    range.setAttribute("aria-valuetext", says(want, facts(panel)));
  };
  const tell = (...words) => said.replaceChildren(note(...words));
  const refuse = ({ status, error }, want, from) => {
    const again = [`Ask for ${want}`, () => settle(want)];
    const overtaken = status === 409 && error.desired !== undefined;
    release(!overtaken && by === "box");
    if (!overtaken && status) box.setAttribute("aria-invalid", "true");
    if (overtaken) {
      const text = `Not changed: the target was set from ${from} to ${error.desired} by ${error.set_by} while you moved it to ${want}.`;
      return tell(`${text} Nothing was launched.`, "red", "i-critical",
        [[`Ask for ${want}`, () => settle(want, String(error.target_revision))], [`Keep ${error.desired}`, () => {}]]);
    }
    return tell(`Not changed. ${error.message}`, "red", "i-critical", status ? [] : [again]);
  };
  const send = async (want, on) => {
    [busy, next] = [true, null];
    const from = facts(panel).desired, token = form.elements.csrfmiddlewaretoken.value;
    const answer = await post(form.action, { csrfmiddlewaretoken: token, gpus: want, based_on: on });
    busy = false;
    if (next) return send(next.want, answer.ok ? answer.body.revision : next.on);
    if (answer.ok) applyPanel(answer.body.panel);
    if (timer !== null) { base = answer.ok ? String(answer.body.revision) : base; return; } // moved again meanwhile
    if (!answer.ok) return refuse(answer, want, from);
    release();
    if (from === answer.body.desired) return;
    tell(`Target set to ${answer.body.desired}.`, "", "i-check", [["Undo", () => settle(from)]]);
    const mine = said.firstChild;
    setTimeout(() => mine.remove(), UNDO);
  };
  const settle = (want, on = base ?? facts(panel).revision) => {
    timer = null;
    grab();
    if (busy) next = { want, on };
    else if (String(want) === String(facts(panel).desired)) release();
    else send(want, on);
  };
  const later = (want) => {
    clearTimeout(timer);
    timer = setTimeout(() => settle(want), SETTLED[by]);
  };
  range.addEventListener("pointerdown", () => { [by, dropped] = ["pointer", false]; clearTimeout(timer); timer = null; grab(); });
  range.addEventListener("pointerup", () => setTimeout(() => { if (timer === null && !busy && base !== null) release(); }));
  range.addEventListener("pointercancel", drop); // a finger that scrolls the page over the gauge
  range.addEventListener("keydown", (event) => { by = "key"; dropped = false; if (event.key === "Escape") drop(); });
  range.addEventListener("input", () => { if (!dropped) { box.value = range.value; show(+range.value); } });
  range.addEventListener("change", () => { if (dropped) sync(); else later(range.value); });
  box.addEventListener("input", () => { by = "box"; range.value = box.value; if (/^\d+$/.test(box.value)) show(+box.value); else grab(); });
  box.addEventListener("change", () => later(box.value));
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") drop(); });
  form.addEventListener("submit", (event) => { event.preventDefault(); by = "box"; later(box.value); });
  document.addEventListener("halftide:panel", () => { if (base === null) sync(box.hasAttribute("aria-invalid")); });
  sync(box.hasAttribute("aria-invalid"));
};

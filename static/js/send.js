// Small forms (cordon, reclaim) without leaving the page. The answer is the panel; a refusal is a sentence beside the button.
// Without scripts the same forms post plainly.
import { applyAnswer } from "./parts.js";

const LONGEST = 20_000; // milliseconds to wait for an answer
const UNSURE = "It may have been done all the same: look before you ask again.";

// `unsure`: nobody has said that it was refused, so it may have happened.
export const post = async (url, fields) => {
  const headers = { Accept: "application/json" };
  try {
    const answer = await fetch(url, { method: "POST", body: new URLSearchParams(fields), headers, signal: AbortSignal.timeout(LONGEST) });
    const body = await answer.json().catch(() => ({}));
    const unsure = answer.status >= 500, then = unsure ? UNSURE : "Load the page again, it may be from an earlier sign-in.";
    const error = body.error ?? { message: `The console answered ${answer.status}. ${then}` };
    return { ok: answer.ok, status: answer.status, body, error, unsure };
  } catch {
    return { ok: false, status: 0, body: {}, error: { message: `No answer came. ${UNSURE}` }, unsure: true };
  }
};
export const note = (text, look = "red", icon = "i-critical", choices = []) => {
  const box = document.createElement("div"), words = document.createElement("div");
  box.className = `note ${look}`;
  const svg = document.querySelector("svg.i").cloneNode(true);
  svg.querySelector("use").setAttribute("href", `#${icon}`);
  words.textContent = text;
  const row = document.createElement("div");
  row.className = "row row-wrap";
  for (const [label, act] of choices) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "btn btn-s", textContent: label });
    button.addEventListener("click", () => { box.remove(); act(); });
    row.append(button);
  }
  box.append(svg, words, ...(choices.length ? [row] : []));
  return box;
};
// A form with a `key` is done once for each key, however often it is sent: it keeps its key until an answer has come.
const AGAIN = "No answer came. It is done once, so to press again does no harm.";
const fresh = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const send = async (form) => {
  const button = form.querySelector("[type=submit]"), { key } = form.elements;
  if (key) key.value ||= fresh();
  button.disabled = true;
  form.querySelector(".note")?.remove();
  const answer = await post(form.action, new FormData(form));
  button.disabled = false;
  if (key && !answer.unsure) key.value = "";
  if (answer.ok) {
    applyAnswer(answer.body);
    const menu = form.closest("details");
    if (menu) menu.open = false;
    return;
  }
  const said = note(key && answer.unsure ? AGAIN : answer.error.message);
  said.setAttribute("role", "alert");
  form.append(said);
};
export const keepForms = () => {
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-send]")) return;
    event.preventDefault();
    send(event.target);
  });
  document.addEventListener("input", ({ target }) => { // another wish
    if (target.form?.matches("[data-send]") && target.form.elements.key) target.form.elements.key.value = "";
  });
};

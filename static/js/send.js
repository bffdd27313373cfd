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
const send = async (form) => {
  const button = form.querySelector("[type=submit]");
  button.disabled = true;
  form.querySelector(".note")?.remove();
  const answer = await post(form.action, new FormData(form));
  button.disabled = false;
  if (answer.ok) {
    applyAnswer(answer.body);
    const menu = form.closest("details");
    if (menu) menu.open = false;
    return;
  }
  const said = note(answer.error.message);
  said.setAttribute("role", "alert");
  form.append(said);
};
export const keepForms = () => document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-send]")) return;
  event.preventDefault();
  send(event.target);
});

// Findings while one writes: the text is sent a moment after the last key and never stands in the way of a save. The answer says
// too which version is the newest by now.
import { fragment } from "./parts.js";
import { post } from "./send.js";

const PAUSE = 700; // milliseconds after the last key

const counted = (findings) => {
  const of = (...levels) => findings.filter((one) => levels.includes(one.level)).length;
  const parts = [[of("error"), "error"], [of("warning"), "warning"], [of("info", "style"), "note"]];
  return parts.filter(([number]) => number).map(([number, word]) => `${number} ${word}${number === 1 ? "" : "s"}`).join(", ");
};

export const keepChecks = (form, editor, heard) => {
  const place = document.querySelector("[data-findings]"), count = document.querySelector("[data-counted]");
  const token = () => form.elements.csrfmiddlewaretoken.value;
  let due = null, turn = 0;
  const ask = async () => {
    const mine = ++turn;
    place.setAttribute("aria-busy", "true");
    const answer = await post(form.dataset.check, { csrfmiddlewaretoken: token(), script: editor.get() });
    if (mine !== turn) return; // a newer one is on its way
    place.removeAttribute("aria-busy");
    if (answer.ok) {
      place.replaceChildren(fragment(answer.body.html));
      count.textContent = counted(answer.body.findings);
      editor.mark(answer.body.findings);
    } else {
      const said = document.createElement("p");
      said.className = "card-body soft";
      const older = answer.status === 403 && !answer.body.error; // saving asks for a new token
      const silent = answer.unsure && !answer.body.error;
      said.textContent = older ? "Not checked: you have signed in anew since this page was loaded. Saving works." : `Not checked: ${silent ? "the console does not answer." : answer.error.message}`;
      place.replaceChildren(said);
      count.textContent = "";
      editor.mark([]);
    }
    heard(answer);
  };
  place.addEventListener("click", (event) => {
    const link = event.target.closest("[data-line]");
    if (!link) return;
    event.preventDefault();
    editor.go(+link.dataset.line, +link.dataset.column);
  });
  ask();
  return () => {
    clearTimeout(due);
    due = setTimeout(ask, PAUSE);
  };
};

// What the page of a script says about the text: how large it is, whether it is saved, and what came of the last thing done.
import { note } from "./send.js";

const said = document.querySelector("[data-said]");
const LOOKS = { saving: ["", "i-retry", "Saving"], dirty: ["amber", "i-dots", "Not saved"], lost: ["red", "i-warning", "Not saved, and this browser keeps no draft"] };
let drawn = "", lines = 0;

export const say = (text, look = "", icon = "i-about", choices = []) => {
  const box = note(text, look, icon, choices);
  box.setAttribute("role", look === "red" ? "alert" : "status");
  said.replaceChildren(box);
};
export const hush = () => said.replaceChildren();
export const sayDone = (text) => { // true until something is typed
  say(text, "", "i-check");
  said.firstElementChild.dataset.passing = "";
};

const badge = (look) => {
  const [colour, icon, words] = LOOKS[look], mark = document.createElement("span"), svg = document.querySelector("svg.i").cloneNode(true);
  mark.className = `badge ${colour}`;
  svg.querySelector("use").setAttribute("href", `#${icon}`);
  mark.append(svg, look === "dirty" && lines ? `${words}, ${lines} line${lines === 1 ? "" : "s"} changed` : words);
  return mark;
};
export const draw = (form, text, { dirty, busy, stored }) => {
  const bytes = new TextEncoder().encode(text).length, counter = form.querySelector("[data-bytes]");
  counter.textContent = bytes.toLocaleString("en");
  counter.parentElement.classList.toggle("over", bytes > +form.dataset.limit);
  if (form.elements.script.readOnly) return;
  if (dirty && said.querySelector("[data-passing]")) hush();
  form.querySelector("[data-discard]").hidden = !dirty;
  form.querySelector("[data-save]").disabled = busy;
  const look = busy ? "saving" : dirty ? (stored ? "dirty" : "lost") : "";
  if (drawn === look + lines) return;
  drawn = look + lines;
  form.querySelector("[data-state]").replaceChildren(...(look ? [badge(look)] : []));
};
export const countLines = (number) => { lines = number; };

export const signedOut = (stored) => {
  const here = encodeURIComponent(location.pathname);
  const kept = stored ? "Your text is kept in this browser and comes back with you." : "This browser keeps no draft: copy your text before you leave this page, or sign in in another tab.";
  say(`You are signed out. ${kept} Sign in again here, or in another tab and save once more.`, "amber", "i-lock", [
    ["Sign in again", () => location.assign(`/sign-in/?next=${here}`)],
  ]);
};
export const otherPerson = () => say(
  "Not saved: somebody else has signed in in this browser meanwhile. Your text stays here; sign in as yourself to save it.", "red", "i-lock",
);

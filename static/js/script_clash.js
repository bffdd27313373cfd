// Two texts, one place: theirs and yours side by side until the person has chosen. `chosen` gets mine, merged or theirs.
import { fragment } from "./parts.js";

const place = document.querySelector("[data-clash]");

export const hideClash = () => place.replaceChildren();
export const showClash = (html, chosen) => {
  place.replaceChildren(fragment(html));
  const choices = place.querySelector("[data-choices]");
  choices.hidden = false;
  choices.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-take]")?.dataset.take;
    if (!choice) return;
    hideClash();
    chosen(choice);
  });
  place.firstElementChild.focus();
};

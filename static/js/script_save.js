// One save as a request, and what can come back: kept, unchanged, somebody was faster, signed out, or signed in anew meanwhile.
import { post } from "./send.js";
import { showTimes } from "./times.js";

const fetchPage = async () => {
  const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector("[data-editor]") ? page : null; // the sign-in page has none
};

// A sign-in in another tab changes the form's token. The page is asked for the new one, as reloading it would; nothing goes round
// the check, and a text of one person is not saved by another.
const renewed = async (form) => {
  const page = await fetchPage().catch(() => null);
  const fresh = page?.querySelector("[data-editor]");
  if (!fresh) return "out";
  if (fresh.dataset.person !== form.dataset.person) return "other";
  form.elements.csrfmiddlewaretoken.value = fresh.elements.csrfmiddlewaretoken.value;
  return "same";
};

const refused = (message) => ({ kind: "refused", answer: { error: { message } } });

// Answers { kind, answer }: kind is kept, clash, out (signed out), other (somebody else is signed in now) or refused.
export const save = async (form, text, base) => {
  if (new TextEncoder().encode(text).length > +form.dataset.limit) return refused("The script has more than 64 KiB.");
  const send = () => post(form.getAttribute("action"), {
    csrfmiddlewaretoken: form.elements.csrfmiddlewaretoken.value, script: text, based_on: base, message: form.elements.message.value,
  });
  let answer = await send();
  if (answer.status === 403 && !answer.body.error) {
    const who = await renewed(form);
    if (who !== "same") return { kind: who, answer };
    answer = await send();
  }
  if (answer.ok) return { kind: "kept", answer };
  if (answer.status === 401) return { kind: "out", answer };
  if (answer.status === 409 && answer.body.texts) return { kind: "clash", answer };
  return { kind: "refused", answer };
};

// What changed around the editor after a save: versions, the last change, the next number. The text itself is left alone.
export const refresh = async () => {
  const page = await fetchPage().catch(() => null);
  for (const old of document.querySelectorAll("[data-fresh]")) {
    const fresh = page?.getElementById(old.id);
    if (fresh) old.replaceWith(document.adoptNode(fresh));
  }
  showTimes(document);
};

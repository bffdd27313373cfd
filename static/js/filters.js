// The filter's form sends itself when something is chosen with the pointer. With the keyboard, arrows walk through a list's choices
// without leaving the page; Enter or "Apply" sends. Empty fields stay out of the address, so that it says what it means.
const form = document.querySelector("[data-filters]");
let keyed = false;

form?.addEventListener("keydown", (event) => { keyed = event.key !== "Enter"; });
form?.addEventListener("pointerdown", () => { keyed = false; });
form?.addEventListener("change", (event) => { if (event.target.matches("select") && !keyed) form.requestSubmit(); });
form?.addEventListener("submit", () => { for (const field of form.elements) field.disabled = Boolean(field.name) && !field.value; });
addEventListener("pageshow", () => { for (const field of form?.elements ?? []) field.disabled = false; });

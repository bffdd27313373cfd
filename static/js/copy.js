// Lines to copy. A button with data-copy="<id>" copies that element's text; in a workload's row the lines are data of the row, and the
// page puts the buttons there, because what is pushed carries no controls. Without a clipboard there are no buttons: text can be marked.
const able = Boolean(navigator.clipboard?.writeText);

const copied = async (button, text) => {
  const word = button.dataset.word ?? button.textContent;
  button.dataset.word = word;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = word; }, 1500);
};
export const fillCopies = (row) => {
  const cell = row.querySelector("[data-copies]"), template = document.querySelector("template[data-copy-buttons]");
  if (!able || !template || !cell || cell.childElementCount) return;
  const buttons = template.content.cloneNode(true);
  for (const button of buttons.querySelectorAll("[data-copy-of]")) {
    const line = row.dataset[button.dataset.copyOf];
    if (!line) { button.remove(); continue; }
    button.title = line;
    button.setAttribute("aria-label", `Copy kubectl ${button.dataset.copyOf} of ${row.dataset.name}`);
  }
  cell.append(buttons);
};
export const keepCopies = () => {
  if (!able) return;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-of]");
    if (!button) return;
    const row = button.closest("tr");
    copied(button, button.dataset.copy ? document.getElementById(button.dataset.copy).textContent : row.dataset[button.dataset.copyOf]);
  });
};

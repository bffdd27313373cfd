// Variables go in where the cursor is; a template goes in whole where there is nothing yet, else below, without its first line.
const withoutFirst = (text) => text.replace(/^#!.*\n/, "");

export const offer = (editor) => {
  for (const button of document.querySelectorAll("[data-insert], [data-use]")) button.hidden = false;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-insert], [data-use]");
    if (!button) return;
    if (button.dataset.insert) return editor.insert(button.dataset.insert);
    const text = document.querySelector(`[data-template="${CSS.escape(button.dataset.use)}"]`).textContent, there = editor.get();
    editor.set(there.trim() ? `${there.replace(/\n*$/, "\n\n")}${withoutFirst(text)}` : text);
    return editor.go(there.trim() ? there.replace(/\n*$/, "\n\n").split("\n").length : 1, 1);
  });
};

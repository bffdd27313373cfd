// The last cell of a node's row belongs to the page, not to the pushed text: who may operate gets a button there.
const template = document.querySelector("template[data-cordon]");

const fill = (row) => {
  const cell = row.querySelector("[data-actions]");
  if (!template || !cell || !row.dataset.node || cell.childElementCount) return;
  const form = template.content.firstElementChild.cloneNode(true), cordoned = row.dataset.cordoned === "1";
  const button = form.querySelector("button");
  form.elements.node.value = row.dataset.node;
  form.elements.on.value = cordoned ? "0" : "1";
  button.textContent = cordoned ? "Uncordon" : "Cordon";
  button.dataset.verb = button.textContent;
  button.setAttribute("aria-label", `${button.textContent} ${row.dataset.name}`);
  cell.append(form);
};
export const keepButtons = () => {
  for (const row of document.querySelectorAll("[data-nodes] > tr")) fill(row);
  document.addEventListener("halftide:node", (event) => fill(event.detail));
};

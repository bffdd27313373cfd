// The demo's card: ticks off what one does here, as the ledger tells it; copies the line; goes away for good when asked to.
const card = document.querySelector("[data-try]");
let asked = false; // a reclaim of one's own, not one by the demo's other tenants

const tick = (key) => {
  const step = card.querySelector(`[data-try-step="${key}"]:not([data-done])`);
  if (!step) return;
  step.dataset.done = "";
  step.querySelector("use").setAttribute("href", "#i-check");
  step.querySelector("[data-done-says]").textContent = " (done)";
};
const seen = ({ reason }, text) => {
  if (reason === "TargetChanged" && Number(text.match(/ to (\d+)/)?.[1]) >= 64) tick("target");
  if (reason === "TogetherPreempted" && asked) tick("reclaim");
  if (reason === "NodeCordoned") tick("kubectl");
};
document.addEventListener("halftide:entry", ({ detail: row }) => seen(row.dataset, row.querySelector("p").textContent));
document.addEventListener("submit", (event) => { if (event.target.action?.endsWith("/reclaim")) asked = true; });
document.addEventListener("click", (event) => { if (event.target.closest(".verdicts summary")) tick("drain"); });
card.querySelector("[data-try-away]").addEventListener("click", () => {
  document.cookie = "halftide_try=off; path=/; max-age=31536000; samesite=lax";
  card.remove();
  document.getElementById("main").querySelector("a, button, input")?.focus();
});
for (const button of card.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling); // no right to the clipboard: it is marked instead
      button.textContent = "Marked";
    }
  });
}

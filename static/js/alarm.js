// What is wrong stands in the tab's title and icon too, for who looks at another tab. Read from the page, so no request is made.
const link = document.querySelector("link[data-icon]"), usual = link?.getAttribute("href");
let plain = document.title.replace(/^● .+? – /, "");
const SILENT = new Set(["dead", "out", "lost"]);
let light = "";

const show = () => {
  const found = document.querySelector("[data-alarm]")?.dataset;
  const says = SILENT.has(light) ? "Not live" : found?.alarm ?? "";
  const look = SILENT.has(light) ? "amber" : found?.look ?? "";
  const title = says ? `● ${says} – ${plain}` : plain;
  if (document.title !== title) document.title = title;
  const href = link?.dataset[look] ?? usual;
  if (link && link.getAttribute("href") !== href) link.href = href;
};
export const keepAlarm = () => {
  document.addEventListener("halftide:panel", show);
  document.addEventListener("halftide:count", ({ detail }) => { // how many need a look, where the page's title says it
    plain = `${detail ? `(${detail}) ` : ""}${plain.replace(/^\(\d+\) /, "")}`;
    show();
  });
  document.addEventListener("halftide:light", (event) => { light = event.detail; show(); });
  show();
};

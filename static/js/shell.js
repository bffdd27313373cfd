// On every page: menus close when one looks elsewhere, times are relative with the exact one on hover, keys, search and help.
import { keepAlarm } from "./alarm.js";
import { keepHelp } from "./help.js";
import { keepPalette } from "./palette.js";
import { keepTimes, serverNow } from "./times.js";
import { keepWays } from "./ways.js";

const menus = () => document.querySelectorAll("details[data-menu][open]");
document.addEventListener("click", (event) => {
  for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus()) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
addEventListener("beforeprint", () => { // "3 s ago" says nothing on paper without it
  document.body.dataset.printed = `As of ${new Date(serverNow()).toISOString().slice(0, 19).replace("T", " ")} UTC`;
});
keepTimes(document);
keepAlarm();
keepPalette();
keepWays();
keepHelp();

// [data-until] counts down to an instant ("3:11"), once a second, by the server's clock; past it, it stays at "0:00".
import { put, serverNow } from "./times.js";

export const left = (seconds) => {
  const whole = Math.ceil(seconds);
  if (whole <= 0) return "0:00";
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
};
export const showCountdowns = (root) => {
  const now = serverNow();
  for (const element of root.querySelectorAll("[data-until]")) put(element, left((Date.parse(element.dataset.until) - now) / 1000));
};
export const keepCountdowns = (root) => {
  showCountdowns(root);
  setInterval(() => showCountdowns(root), 1000);
};

// Relative times: <time data-ago> becomes "2 min ago" and keeps the exact UTC time in its title.
// <span data-since> counts a length up ("40 s"). One timer for the page; the text is written only when it differs.
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export const span = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds));
  const [size, unit] = UNITS.find(([least]) => whole >= least) ?? [1, "s"];
  return `${Math.floor(whole / size)} ${unit}`;
};
const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

export const showTimes = (root, now = Date.now()) => {
  for (const time of root.querySelectorAll("time[data-ago]")) {
    const age = (now - Date.parse(time.dateTime)) / 1000;
    put(time, age < 1 ? "just now" : `${span(age)} ago`);
  }
  for (const length of root.querySelectorAll("[data-since]")) put(length, span((now - Date.parse(length.dataset.since)) / 1000));
};
export const keepTimes = (root) => {
  showTimes(root);
  setInterval(() => showTimes(root), 1000);
};

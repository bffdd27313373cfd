// Times on a page: <time data-ago> says "2 min ago" with the exact one in its title, [data-since] counts a length up ("40 s").
// All of it by the server's clock: browsers are often minutes wrong. Text is written only when it differs.
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
let skew = null; // how far this browser's clock is ahead, by the fastest answer seen

export const noteServerTime = (iso) => {
  const ahead = Date.now() - Date.parse(iso);
  if (!Number.isNaN(ahead)) skew = skew === null ? ahead : Math.min(skew, ahead);
};
export const serverNow = () => Date.now() - (skew ?? 0);
export const clock = (milliseconds) => new Date(milliseconds).toISOString().slice(11, 19);
export const put = (element, text) => { if (element.textContent !== text) element.textContent = text; };

export const span = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds));
  const [size, unit] = UNITS.find(([least]) => whole >= least) ?? [1, "s"];
  return `${Math.floor(whole / size)} ${unit}`;
};

export const showTimes = (root, now = serverNow()) => {
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

// The filter of the address, asked of a live row: the same answer that the database gives (console/timeline/filters.py).
// Letters a to z are the same in upper and lower case, and no others, as there.
const lower = (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export const matches = (row, wish, now) => {
  const { at, severity, reason, nodeName = "", class: computeClass = "", actor } = row.dataset;
  if (wish.severity && severity !== wish.severity) return false;
  if (wish.reason && reason !== wish.reason) return false;
  if (wish.node && nodeName !== wish.node) return false;
  if (wish.compute_class && computeClass !== wish.compute_class) return false;
  if (wish.actor && actor !== wish.actor && actor.slice(0, actor.indexOf(":")) !== wish.actor) return false;
  if (wish.since && at < wish.since) return false; // both as the server writes them: UTC, to the microsecond
  if (wish.until && at > wish.until) return false;
  if (wish.seconds && Date.parse(at) < now - wish.seconds * 1000) return false;
  return !wish.text || lower(row.querySelector("[data-message]").textContent).includes(lower(wish.text));
};

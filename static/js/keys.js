// Keys of a page: whoever has something to offer names its key here, so that the help sheet lists what works and nothing else.
// They never fire while one types or a dialog is open, and can be switched off (WCAG 2.1.4); with Ctrl or Cmd they always work.
const known = [];
let pending = ""; // the first of two keys, such as g
let forget = null;

const TYPED = "input:not([type=checkbox]):not([type=radio]):not([type=range]):not([type=button]), textarea, select, [contenteditable]";
const read = () => { try { return localStorage.getItem("keys") !== "off"; } catch { return true; } };
export const areOn = read;
export const turn = (on) => { try { localStorage.setItem("keys", on ? "on" : "off"); } catch { /* this page only */ } };

// `keys` as they are pressed: "?", "/", "g c"; "mod+k" is with Ctrl or Cmd. `here` says whether there is something to act on now.
export const offer = (keys, says, act, here = () => true) => known.push({ keys, says, act, here });
export const offered = () => known.filter((one) => one.here());

const press = (keys, event) => {
  const one = known.find((other) => other.keys === keys && other.here());
  if (!one) return false;
  event.preventDefault();
  one.act();
  return true;
};
const wait = (key) => {
  pending = key;
  clearTimeout(forget);
  forget = setTimeout(() => { pending = ""; }, 1500);
};
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing || event.repeat) return;
  const key = event.key.length === 1 ? event.key : "";
  if ((event.ctrlKey || event.metaKey) && !event.altKey) { if (key) press(`mod+${key.toLowerCase()}`, event); return; }
  if (!key || event.altKey || !read() || event.target.closest?.(TYPED) || document.querySelector("dialog[open]")) return;
  const first = pending;
  wait("");
  if (first && press(`${first} ${key}`, event)) return;
  if (press(key, event)) return;
  if (known.some((one) => one.keys.startsWith(`${key} `))) wait(key);
});

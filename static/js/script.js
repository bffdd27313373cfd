// The page of a startup script: what is kept, what is typed, and which version that is based on. A text is let go only once it is
// kept somewhere: as a version, as a draft, or put aside.
import { keepChecks } from "./script_check.js";
import { hideClash, showClash } from "./script_clash.js";
import { openDraft } from "./script_draft.js";
import { openEditor } from "./script_editor.js";
import { refresh, save } from "./script_save.js";
import { countLines, draw, hush, otherPerson, say, sayDone, signedOut } from "./script_says.js";
import { clock } from "./times.js";

const form = document.querySelector("[data-editor]"), mayWrite = !form.elements.script.readOnly;
const draft = openDraft(form.dataset.draft);
const kept = { text: form.elements.script.value, number: +form.elements.based_on.value };
let base = kept.number, newest = kept.number, busy = false, stored = true, checkSoon = () => {};

const dirty = () => editor.get() !== kept.text;
const redraw = () => draw(form, editor.get(), { dirty: dirty(), busy, stored });
const changed = () => {
  if (mayWrite) stored = dirty() ? draft.keep(editor.get(), base) : draft.forget();
  redraw();
  checkSoon();
};
const editor = openEditor(form, changed);
const work = (on) => { busy = on; redraw(); };
const put = (text, number) => {
  base = number;
  form.elements.based_on.value = number;
  if (text !== editor.get()) editor.set(text);
  changed();
};
const putAside = (text, number, words) => {
  draft.putAside(editor.get(), base);
  put(text, number);
  say(words, "", "i-undo", [["Bring mine back", bringBack]]);
};
const bringBack = () => {
  const mine = draft.readAside();
  draft.forgetAside();
  if (mine) put(mine.text, mine.base);
};
const choose = (choice, texts) => {
  if (choice === "mine") {
    put(editor.get(), newest);
    return submit();
  }
  [kept.text, kept.number] = [texts.theirs, newest];
  if (choice === "theirs") return putAside(texts.theirs, newest, `v${newest} is in the editor; yours is put aside.`);
  put(texts.merged, newest);
  return say("Both are in the editor. Where both changed the same lines, marks show the two: keep one, take the marks out, save.");
};
const saved = async (sent, { version, message }) => {
  [kept.text, kept.number, newest] = [sent, version, version];
  form.elements.message.value = "";
  hideClash();
  put(editor.get(), version); // what was typed meanwhile is a draft again
  sayDone(message);
  await refresh();
};
const submit = async () => {
  const sent = editor.get();
  if (!mayWrite || busy) return;
  work(true);
  const { kind, answer } = await save(form, sent, base);
  work(false);
  if (kind === "kept") await saved(sent, answer.body);
  else if (kind === "out") signedOut(stored);
  else if (kind === "other") otherPerson();
  else if (kind === "clash") {
    newest = answer.body.error.version;
    hush();
    showClash(answer.body.html, (choice) => choose(choice, answer.body.texts));
    await refresh();
  } else say(`${answer.unsure ? "Not known whether it was saved." : "Not saved."} ${answer.error.message} What you typed is still here.`, "red", "i-critical");
};
const heard = ({ ok, status, body }) => {
  if (status === 401) signedOut(stored);
  if (!ok) return;
  countLines(body.changed);
  redraw();
  if (body.version <= newest) return;
  newest = body.version;
  say(`${body.saved_by} saved v${newest} meanwhile. Saving yours will show both.`, "amber", "i-about", [["Load the page with it", () => location.reload()]]);
};
const startFromDraft = () => {
  const mine = mayWrite ? draft.read() : null, back = draft.readAside();
  if (mine && mine.text !== kept.text) {
    const came = mine.base < kept.number ? ` v${kept.number} came since; saving will show both.` : "";
    put(mine.text, mine.base);
    say(`Restored: what you wrote until ${mine.at.slice(0, 10)} ${clock(Date.parse(mine.at))} UTC, on top of v${mine.base}. It is not saved yet.${came}`, "amber", "i-undo", [[`Put it aside, show v${kept.number}`, discard]]);
  } else if (mayWrite && back) say(`What you put aside at ${clock(Date.parse(back.at))} UTC is still kept.`, "", "i-undo", [["Bring it back", bringBack], ["Forget it", draft.forgetAside]]);
};
const discard = () => putAside(kept.text, kept.number, "Your changes are put aside.");

startFromDraft();
changed();
checkSoon = keepChecks(form, editor, heard);
export { form, editor, mayWrite, draft, submit, discard };

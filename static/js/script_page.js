// What hands and other tabs do on the page of a script: save by button or key, discard, insert, paste, sign in elsewhere.
import { offer as offerKey } from "./keys.js";
import { discard, draft, editor, form, mayWrite, submit } from "./script.js";
import { offer } from "./script_offers.js";
import { say } from "./script_says.js";

if (mayWrite) {
  offer(editor);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  form.querySelector("[data-discard]").addEventListener("click", discard);
  offerKey("mod+s", "Save the script", submit);
  document.addEventListener("paste", (event) => {
    if (form.contains(event.target) && event.clipboardData?.getData("text/plain").includes("\r")) {
      say("What you pasted ended its lines in CRLF, as on Windows. Here they end in LF.");
    }
  }, true);
  draft.elsewhere(() => say("You are writing this script in another tab too. The draft is that of whoever wrote last.", "amber", "i-warning"));
}

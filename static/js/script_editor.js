// The text of a script: in Ace where it loads, else in the plain textarea. Either way the textarea holds it, so a plain form would
// send the same. Tab writes a tab; Esc, then Tab, leaves, so that nobody is caught in here.
const HINT = "Tab writes a tab. Esc, then Tab, leaves the editor. Ctrl+S saves.", LEAVING = "Now Tab leaves the editor.";
const LEVELS = { error: "error", warning: "warning", info: "info", style: "info" };

const plain = (area, changed) => {
  area.addEventListener("input", changed);
  return {
    get: () => area.value,
    set: (text) => { area.value = text; changed(); },
    insert: (text) => { area.setRangeText(text, area.selectionStart, area.selectionEnd, "end"); area.focus(); changed(); },
    go: (line) => {
      const place = area.value.split("\n").slice(0, line - 1).join("\n").length;
      area.focus();
      area.setSelectionRange(place, place);
    },
    mark: () => {},
  };
};

const leavable = (editor, hint) => {
  let leaving = false;
  const turn = (on) => {
    leaving = on;
    hint.textContent = on ? LEAVING : HINT;
  };
  editor.keyBinding.addKeyboardHandler((data, hash, key) => {
    if (key === "esc") turn(true);
    else if (leaving && key === "tab") return { command: "null", passEvent: true }; // the browser's own Tab
    else if (key) turn(false);
    return undefined;
  });
  editor.on("blur", () => turn(false));
  hint.hidden = false;
};

const marker = (editor, Range) => {
  let shown = [];
  return (findings) => {
    const { session } = editor;
    shown.forEach((id) => session.removeMarker(id));
    session.setAnnotations(findings.map((one) => ({ row: one.line - 1, column: 0, type: LEVELS[one.level], text: one.text })));
    const rows = new Set(findings.filter((one) => one.level === "error" || one.level === "warning").map((one) => one.line - 1));
    shown = [...rows].map((row) => session.addMarker(new Range(row, 0, row, 1), "ace-hit", "fullLine"));
  };
};

const inAce = (ace, form, area, changed) => {
  ace.config.set("useStrictCSP", true);
  ace.config.set("basePath", form.dataset.ace);
  const host = document.createElement("div");
  host.className = "ace-host";
  area.before(host);
  area.hidden = true;
  const editor = ace.edit(host, {
    mode: `ace/mode/${form.dataset.shell === "1" ? "sh" : "text"}`, useSoftTabs: false, tabSize: 4, newLineMode: "unix", useWorker: false,
    behavioursEnabled: false, wrapBehavioursEnabled: false, showPrintMargin: false, showFoldWidgets: false, highlightGutterLine: false,
    minLines: 18, maxLines: 44, fontSize: 12, readOnly: area.readOnly, highlightActiveLine: !area.readOnly,
  });
  editor.renderer.setTheme({ cssClass: "ace-halftide", isDark: false, padding: 4 });
  editor.renderer.setScrollMargin(8, 8);
  editor.session.setValue(area.value);
  editor.session.on("change", () => {
    area.value = editor.getValue();
    changed();
  });
  const input = editor.textInput.getElement();
  input.setAttribute("aria-label", `${area.getAttribute("aria-label")}, editor`);
  input.setAttribute("aria-describedby", area.getAttribute("aria-describedby"));
  if (!area.readOnly) leavable(editor, form.querySelector("[data-leave]"));
  return {
    get: () => editor.getValue(),
    set: (text) => {
      const last = editor.session.getLength() - 1; // in place of all of it, so that Ctrl+Z brings back what was there
      editor.session.replace(new (ace.require("ace/range").Range)(0, 0, last, Infinity), text);
      editor.gotoLine(1, 0);
    },
    insert: (text) => { editor.insert(text); editor.focus(); },
    go: (line, column) => { editor.gotoLine(line, column - 1); editor.focus(); },
    mark: marker(editor, ace.require("ace/range").Range),
  };
};

export const openEditor = (form, changed) => {
  const area = form.elements.script;
  return window.ace ? inAce(window.ace, form, area, changed) : plain(area, changed);
};

// What is typed and not saved stays in this browser: for one person, one cluster and one kind, so nobody else is ever shown it.
// It outlives a closed tab and the end of a session; a save takes it away. What somebody discards is put aside, not thrown away.
const PREFIX = "halftide:draft:";
const LONGEST = 30 * 86400 * 1000; // milliseconds a forgotten draft is kept

const read = (key) => {
  try {
    const found = JSON.parse(localStorage.getItem(key));
    return found && typeof found.text === "string" && typeof found.base === "number" ? found : null;
  } catch {
    return null; // none, or no storage here
  }
};
const write = (key, value) => {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify({ ...value, at: new Date().toISOString() }));
    return true;
  } catch {
    return false; // no storage here, or it is full
  }
};
const sweep = () => {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX) && !(Date.now() - Date.parse(read(key)?.at) < LONGEST)) localStorage.removeItem(key);
    }
  } catch { /* no storage here */ }
};

export const openDraft = (name) => {
  const key = `${PREFIX}${name}`, aside = `${key}:aside`;
  sweep();
  return {
    read: () => read(key),
    keep: (text, base) => { // a text that only came back was written when it was written
      const old = read(key);
      return (old?.text === text && old.base === base) || write(key, { text, base });
    },
    forget: () => write(key, null),
    putAside: (text, base) => write(aside, { text, base }),
    readAside: () => read(aside),
    forgetAside: () => write(aside, null),
    elsewhere: (told) => addEventListener("storage", (event) => { if (event.key === key && event.newValue) told(); }),
  };
};

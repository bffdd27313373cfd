// What the gauge shows while it is being moved: the same picture, computed here, nothing sent. Numbers come from [data-now].
const percent = (part, whole) => `${(part / whole) * 100}%`;
const dollars = (amount) => `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

export const facts = (panel) => {
  const now = panel.querySelector("[data-now]").dataset;
  const number = (name) => Number(now[name]);
  return {
    end: number("max"), step: number("step"), desired: number("desired"), allocated: number("allocated"),
    revision: now.revision, setBy: now.setBy, rate: now.rate, onDemand: now.onDemand,
  };
};
export const says = (want, now) => `${want} GPUs wanted, ${want / now.step} nodes; ${now.allocated} allocated`;

export const preview = (panel, want) => {
  const now = facts(panel), find = (name) => panel.querySelector(`[data-${name}]`);
  const shown = Math.min(want, now.end), low = Math.min(shown, now.allocated), high = Math.max(shown, now.allocated);
  find("alloc").setAttribute("width", percent(low, now.end));
  find("wait").setAttribute("x", percent(low, now.end));
  find("wait").setAttribute("width", percent(high - low, now.end));
  find("wait").classList.toggle("give", want < now.allocated);
  find("mark").setAttribute("x", percent(shown, now.end));
  find("mark").classList.toggle("at-end", shown >= now.end * 0.94);
  find("mark").classList.toggle("at-start", shown <= now.end * 0.04);
  const level = find("level");
  level.toggleAttribute("hidden", Math.abs(shown - level.dataset.level) < 0.15 * now.end || +level.dataset.level === 0);
  for (const number of panel.querySelectorAll("[data-want]")) number.textContent = want;
  find("then").textContent = `${want} × $${now.rate} = ${dollars(want * now.rate)}/h`;
  find("on-demand-then").textContent = `${want} × $${now.onDemand} = ${dollars(want * now.onDemand)}/h`;
  const why = find("why").querySelector("div");
  const bold = document.createElement("b"), line = document.createElement("p"), below = document.createElement("p");
  bold.textContent = want === now.desired ? `${want} is what is asked for.` : `Let go to ask for ${want}.`;
  line.append(bold, want === now.desired ? "" : ` Esc puts back ${now.desired}.`);
  below.className = "muted";
  below.textContent = want < now.allocated
    ? `${now.allocated - want} GPUs would go; each pod gets up to 5 min.`
    : `Based on revision ${now.revision}.`;
  why.replaceChildren(line, below);
};

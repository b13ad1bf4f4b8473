// Which event is shown, in which strategy, at which step.
const PACE = 900; // milliseconds a step
const REST = 1600; // at the end of an event
const state = { strategy: 0, event: 0, time: 0 };
const panes = {};
let playing = false, last = 0, rested = 0, remembering;

const lastTime = () => Math.max(scene.events[state.event].runs[state.strategy].steps, 1);

function choose(wanted) {
  Object.assign(state, { time: calm || !playing ? Infinity : 0 }, wanted);
  state.event = Math.min(Math.max(state.event, 0), scene.events.length - 1);
  state.strategy = (state.strategy + scene.strategies.length) % scene.strategies.length;
  state.time = Math.min(Math.max(state.time, 0), lastTime());
  rested = 0;
  const event = scene.events[state.event], strategy = scene.strategies[state.strategy], run = event.runs[state.strategy];
  const reach = arrivals(run, strategy);
  byId("sort").textContent = event.sort;
  byId("title").textContent = event.title;
  byId("words").textContent = run.words;
  panes.zones.begin(event, run, strategy, reach);
  panes.rows.begin(event, state.event);
  panes.overlay.begin(event, run, strategy, reach);
  billPane.begin(event, state.event, state.strategy, reach);
  if (tabs.includes(document.activeElement)) tabs[state.strategy].focus();
  tabs.forEach((tab, i) => { tab.setAttribute("aria-selected", i === state.strategy); tab.tabIndex = i === state.strategy ? 0 : -1; });
  numbers.forEach((button, i) => button.setAttribute("aria-current", i === state.event));
  byId("previous").disabled = state.event === 0;
  byId("next").disabled = state.event === scene.events.length - 1;
  Object.assign(byId("step"), { max: lastTime(), disabled: run.steps === 0 });
  show();
}

function show() {
  const { time } = state;
  panes.zones.at(time, playing);
  panes.overlay.at(time);
  billPane.at(time);
  const run = scene.events[state.event].runs[state.strategy];
  const slider = byId("step");
  slider.value = time;
  const words = stepWords(run, time);
  slider.setAttribute("aria-valuetext", words);
  byId("step-words").textContent = words;
  clearTimeout(remembering);
  remembering = setTimeout(remember, 300);
}

// Not with every frame: browsers refuse an address that changes too often.
function remember() {
  const name = encodeURIComponent(scene.strategies[state.strategy].name);
  history.replaceState(null, "", `#${name}/${state.event + 1}/${Number(state.time.toFixed(2))}`);
}

function stepWords(run, time) {
  if (!run.steps) return "nothing is sent";
  if (time >= run.steps) return `${counted(run.steps, "step")}: ${counted(run.overlay_hops, "message")}, ${counted(run.size, "byte")}`;
  const step = Math.floor(time);
  const now = run.lines.filter(([one]) => one === step);
  const parts = scene.roles
    .map((name, role) => [name, now.filter(([, one]) => one === role).reduce((sum, line) => sum + line[4], 0)])
    .filter(([, count]) => count)
    .map(([name, count]) => `${number.format(count)} ${name}`);
  return `step ${step + 1} of ${run.steps}: ${parts.join(", ")}`;
}

function tick(now) {
  if (!playing) return;
  const passed = Math.min(Math.max(now - last, 0), 100);
  last = now;
  if (state.time < lastTime()) {
    const next = state.time + passed / PACE;
    state.time = Math.min(next, lastTime());
    show();
  } else if ((rested += passed) >= REST) {
    if (state.event + 1 < scene.events.length) choose({ event: state.event + 1, time: 0 });
    else play(false);
  }
  requestAnimationFrame(tick);
}

function play(wanted) {
  playing = wanted;
  byId("play").textContent = playing ? "❚❚ Pause" : "▶ Play";
  byId("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  if (!playing) return;
  const isEnd = state.time >= lastTime();
  if (isEnd) choose({ event: state.event, time: 0 });
  last = performance.now();
  requestAnimationFrame(tick);
}

function step(by) {
  play(false);
  const whole = by > 0 ? Math.floor(state.time + 1e-9) + 1 : Math.ceil(state.time - 1e-9) - 1;
  state.time = Math.min(Math.max(whole, 0), lastTime());
  show();
}

const tabs = scene.strategies.map(({ name, title }, strategy) => {
  const tab = draw(byId("strategies"), "button", { role: "tab", title });
  draw(tab, "b", {}, name);
  draw(tab, "small", {}, title);
  tab.addEventListener("click", () => choose({ strategy }));
  return tab;
});
const numbers = scene.events.map(({ sort, title }, event) => {
  const button = draw(byId("events"), "button", { title: `${sort}: ${title}`, "aria-label": `Event ${event + 1}, ${sort}` }, String(event + 1));
  button.addEventListener("click", () => choose({ event }));
  return button;
});
byId("note").textContent = scene.note;
byId("previous").addEventListener("click", () => choose({ event: state.event - 1 }));
byId("next").addEventListener("click", () => choose({ event: state.event + 1 }));
byId("play").addEventListener("click", () => play(!playing));
byId("step").addEventListener("input", (event) => { play(false); state.time = Number(event.target.value); show(); });
addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || (event.target === byId("step") && event.key.startsWith("Arrow"))) return;
  if (event.key === " " && event.target instanceof HTMLButtonElement) return; // it presses the button
  const keys = {
    ArrowRight: () => choose({ event: state.event + 1 }), ArrowLeft: () => choose({ event: state.event - 1 }),
    ArrowDown: () => choose({ strategy: state.strategy + 1 }), ArrowUp: () => choose({ strategy: state.strategy - 1 }),
    ".": () => step(1), ",": () => step(-1), " ": () => play(!playing),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

function build() {
  Object.assign(panes, { zones: makeZones(), rows: makeRows(), overlay: makeOverlay() });
}
addEventListener("resize", () => { build(); choose({ time: state.time }); });
build();

// The address says where one was: strategy, event, step.
const [name, event, time] = location.hash.slice(1).split("/");
const whole = Math.trunc(Number(event)), moment = Number(time);
choose({
  strategy: Math.max(scene.strategies.findIndex((one) => [one.name, encodeURIComponent(one.name)].includes(name)), 0),
  event: whole ? whole - 1 : 0,
  time: time === undefined || Number.isNaN(moment) ? Infinity : moment,
});

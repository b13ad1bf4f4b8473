// The scene, and what all panes draw with.
const scene = JSON.parse(document.getElementById("scene").textContent);
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
const [ROUTE, SPREAD, ASK, REPLY] = scene.roles.map((_, role) => role);

const byId = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 7 });
const text = (value) => (value === null ? "none" : Array.isArray(value) ? `{${value.join(", ")}}` : number.format(value));
const counted = (count, what) => `${number.format(count)} ${what}${count === 1 ? "" : "s"}`;

function draw(parent, name, attributes = {}, content = null) {
  const element = document.createElementNS(parent.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (content !== null) element.textContent = content;
  return parent.appendChild(element);
}

// The size of a pane as it is laid out, which its drawing then has for good.
function sizeOf(svg) {
  const { width, height } = svg.getBoundingClientRect();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return [width, height];
}

// A linear scale, a little wider than what it shows.
function scale([from, to], [start, end]) {
  const margin = 0.02 * (to - from);
  const low = from - margin, high = to + margin;
  const at = (value) => start + ((value - low) / (high - low)) * (end - start);
  return Object.assign(at, { low, high, within: (value) => at(Math.min(Math.max(value, low), high)) });
}

function ticks([from, to]) {
  const size = 10 ** Math.floor(Math.log10((to - from) / 2));
  const step = [1, 2, 5, 10].map((by) => by * size).find((by) => (to - from) / by <= 6);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to + 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

// When each node is reached by what, counted in steps that are over; `notified` is that of its subscriptions.
function arrivals(run, strategy) {
  const found = new Map();
  const of = (node) => found.get(node) ?? found.set(node, { passed: Infinity, reached: Infinity, asked: Infinity, answered: -1 }).get(node);
  for (const [step, role, sender, receiver] of run.lines) {
    const [from, to] = [of(sender), of(receiver)];
    if (role === SPREAD) {
      to.reached = Math.min(to.reached, step + 1);
      from.spreads = Math.min(from.spreads ?? Infinity, step);
    }
    if (role === ROUTE) to.passed = Math.min(to.passed, step + 1);
    if (role === ASK) to.asked = Math.min(to.asked, step + 1);
    if (role === REPLY) to.answered = Math.max(to.answered, step + 1);
  }
  for (const one of found.values()) {
    if (one.reached === Infinity && one.spreads !== undefined) one.reached = one.spreads;
    // A node on the way hears nothing yet, unless the way ends there.
    const arrival = one.reached === Infinity ? one.passed : one.reached;
    const waits = one.answered >= 0 && (arrival === Infinity || strategy.name === "CN+");
    one.notified = waits ? one.answered : arrival === Infinity ? 0 : arrival;
  }
  return { at: (node) => found.get(node), notified: (node) => found.get(node)?.notified ?? 0, nodes: found };
}

function stateOf(arrival, time) {
  if (!arrival) return "";
  if (arrival.reached <= time) return "reached";
  if (arrival.passed <= time) return "passed";
  return arrival.asked <= time || (arrival.answered >= 0 && arrival.answered <= time) ? "asked" : "";
}

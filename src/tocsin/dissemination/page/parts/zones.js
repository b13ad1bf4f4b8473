// The content-addressable network: zones over (low, high).
function makeZones() {
  const svg = byId("zones");
  svg.replaceChildren();
  const across = scale(scene.domain, [46, 588]), up = scale(scene.domain, [566, 16]);
  const { low, high } = across;
  const box = (left, right, bottom, top) => ({
    x: across.within(left ?? low), y: up.within(top ?? high),
    width: across.within(right ?? high) - across.within(left ?? low),
    height: up.within(bottom ?? low) - up.within(top ?? high),
  });

  // The middle of the part of a zone in which low <= high.
  function middle([low1, high1, low2, high2]) {
    const [l1, h1, l2, h2] = [Math.max(low1 ?? low, low), Math.min(high1 ?? high, high), Math.max(low2 ?? low, low), Math.min(high2 ?? high, high)];
    const corners = [[l1, l2], [h1, l2], [h1, h2], [l1, h2]];
    const kept = [];
    corners.forEach(([x, y], i) => {
      const [nx, ny] = corners[(i + 1) % 4];
      if (y >= x) kept.push([x, y]);
      if ((y - x) * (ny - nx) < 0) {
        const t = (y - x) / (y - x - (ny - nx));
        kept.push([x + t * (nx - x), y + t * (ny - y)]);
      }
    });
    const used = kept.length ? kept : corners;
    const mean = (axis) => used.reduce((sum, point) => sum + point[axis], 0) / used.length;
    return [across(mean(0)), up(mean(1))];
  }

  const places = scene.zones.map(middle);
  const zones = draw(svg, "g");
  const shapes = scene.zones.map((zone, owner) => {
    const shape = draw(zones, "rect", { class: "zone", ...box(...zone) });
    draw(shape, "title", {}, `zone ${owner}`);
    return shape;
  });
  draw(svg, "path", { class: "unused", d: `M${across(low)},${up(low)} L${across(high)},${up(high)} L${across(high)},${up(low)} Z` });
  draw(svg, "path", { class: "diagonal", d: `M${across(low)},${up(low)} L${across(high)},${up(high)}` });
  draw(svg, "text", { class: "unused-name", x: 430, y: 470, "text-anchor": "middle" }, "no range is here: low ≤ high");
  const areas = draw(svg, "g");
  const dots = scene.subscriptions.map(([from, to, gateway], subscription) => {
    const dot = draw(svg, "circle", { class: "dot", cx: across(from), cy: up(to), r: 1.8 });
    draw(dot, "title", {}, `subscription ${subscription}: [${text(from)}, ${text(to)}], at zone ${gateway}`);
    return dot;
  });
  const owners = draw(svg, "g");
  scene.zones.forEach((zone, owner) => {
    const { width, height } = box(...zone);
    if (owner === scene.server || (width > 15 && height > 11))
      draw(owners, "text", { class: "owner", x: places[owner][0], y: places[owner][1] + 3.5 }, String(owner));
  });
  const mark = draw(svg, "path", { class: "server-mark", d: "M0,-17 L3,-10.5 L10,-10 L4.7,-5.4 L6.4,1.5 L0,-2.2 L-6.4,1.5 L-4.7,-5.4 L-10,-10 L-3,-10.5 Z", transform: `translate(${places[scene.server]})` });
  draw(mark, "title", {}, `the server, overlay node ${scene.server}`);
  const arrows = new Arrows(draw(svg, "g"), places);
  const points = draw(svg, "g");

  for (const at of ticks(scene.domain)) {
    draw(svg, "text", { x: across(at), y: 579, "text-anchor": "middle" }, text(at));
    draw(svg, "text", { x: 42, y: up(at) + 3, "text-anchor": "end" }, text(at));
  }
  draw(svg, "text", { class: "axis-name", x: 317, y: 594, "text-anchor": "middle" }, "low end of the range");
  draw(svg, "text", { class: "axis-name", x: 10, y: 291, transform: "rotate(-90 10 291)", "text-anchor": "middle" }, "high end");

  let present, states = [], notified = new Set();

  function begin(event, run, strategy, reach) {
    areas.replaceChildren();
    points.replaceChildren();
    const spreadsRaw = strategy.name.startsWith("CN");
    if (spreadsRaw) for (const x of event.points) draw(areas, "rect", { class: "quadrant", ...box(null, x, x, null) });
    for (const [outerL, innerL, innerR, outerR] of event.rectangles)
      draw(areas, "rect", { class: strategy.name.endsWith("S-CN") ? "rectangle" : "rectangle known", ...box(outerL, innerL, innerR, outerR) });
    for (const x of event.points) {
      const point = draw(points, "path", { class: "event-point", d: "M0,-7 L7,0 L0,7 L-7,0 Z", transform: `translate(${across(x)},${up(x)})` });
      draw(point, "title", {}, `the update, at (${text(x)}, ${text(x)})`);
    }
    mark.classList.toggle("unused-server", !strategy.name.startsWith("S-"));
    for (const subscription of notified) mute(subscription);
    notified = new Set();
    states = [];
    present = { event, reach };
    arrows.begin(run);
  }

  function mute(subscription) {
    dots[subscription].setAttribute("class", "dot");
    dots[subscription].setAttribute("r", 1.8);
  }

  function at(time, playing) {
    shapes.forEach((shape, zone) => {
      const state = stateOf(present.reach.at(zone), time);
      if (states[zone] !== state) shape.setAttribute("class", `zone ${state}`);
      states[zone] = state;
    });
    for (const [subscription] of present.event.answer_changes) {
      const isNotified = present.reach.notified(scene.subscriptions[subscription][2]) <= time && time > 0;
      if (isNotified && !notified.has(subscription)) {
        dots[subscription].setAttribute("class", playing && !calm ? "dot notified flash" : "dot notified");
        dots[subscription].setAttribute("r", 3.4);
        notified.add(subscription);
      } else if (!isNotified && notified.delete(subscription)) mute(subscription);
    }
    arrows.at(time);
  }

  return { begin, at };
}

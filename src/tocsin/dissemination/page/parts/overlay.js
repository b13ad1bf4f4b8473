// The overlay: nodes, and the messages between them.
function makeOverlay() {
  const svg = byId("overlay");
  svg.replaceChildren();
  const [width, height] = sizeOf(svg);
  const places = scene.nodes.map(([x, y]) => [18 + (width - 36) * x, 24 + (height - 40) * y]);
  const arrows = new Arrows(draw(svg, "g"), places, { bend: 0.06, gap: 9 });
  const few = scene.nodes.length <= 80;
  const nodes = places.map(([x, y], node) => {
    const shape = draw(svg, "circle", { class: "node", cx: x, cy: y, r: few ? 6.5 : 3.5 });
    draw(shape, "title", {}, `overlay node ${node}, which owns zone ${node}`);
    if (few) draw(svg, "text", { class: "node-name", x, y: y + 2.8 }, String(node));
    return shape;
  });
  const [x, y] = places[scene.server];
  const mark = draw(svg, "path", { class: "server-mark", d: "M0,-19 L3,-12.5 L10,-12 L4.7,-7.4 L6.4,-0.5 L0,-4.2 L-6.4,-0.5 L-4.7,-7.4 L-10,-12 L-3,-12.5 Z", transform: `translate(${x},${y})` });
  draw(mark, "title", {}, `the server, overlay node ${scene.server}`);
  let reach, gateways;

  function begin(event, run, strategy, arrived) {
    reach = arrived;
    gateways = new Set(event.answer_changes.map(([subscription]) => scene.subscriptions[subscription][2]));
    mark.classList.toggle("unused-server", !strategy.name.startsWith("S-"));
    arrows.begin(run);
  }

  function at(time) {
    nodes.forEach((shape, node) => {
      const notified = gateways.has(node) && reach.notified(node) <= time && time > 0;
      shape.setAttribute("class", `node ${stateOf(reach.at(node), time)}${notified ? " notified" : ""}`);
    });
    arrows.at(time);
  }

  return { begin, at };
}

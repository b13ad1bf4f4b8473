// The table: rows as points, the update as an arrow, and how far it reaches as a band.
function makeRows() {
  const svg = byId("rows");
  svg.replaceChildren();
  const [width, height] = sizeOf(svg);
  const floor = height - 30;
  const across = scale(scene.domain, [42, width - 18]), up = scale(scene.heights, [floor, 10]);
  draw(svg, "path", { class: "axis", d: `M42,10 V${floor} H${width - 18}` });
  for (const at of ticks(scene.domain)) draw(svg, "text", { x: across(at), y: floor + 13, "text-anchor": "middle" }, text(at));
  for (const at of ticks(scene.heights)) draw(svg, "text", { x: 38, y: up(at) + 3, "text-anchor": "end" }, text(at));
  draw(svg, "text", { class: "axis-name", x: width / 2 + 16, y: floor + 25, "text-anchor": "middle" }, "x");
  draw(svg, "text", { class: "axis-name", x: 6, y: 16 }, "y");
  const areas = draw(svg, "g"), points = draw(svg, "g"), change = draw(svg, "g");

  // The rows before an event: all that came before it are made.
  function rowsBefore(index) {
    const rows = scene.rows.map((point) => point);
    scene.events.slice(0, index).forEach(({ row, new: point }) => { rows[row] = point; });
    return rows;
  }

  function begin(event, index) {
    for (const layer of [areas, points, change]) layer.replaceChildren();
    const ends = event.rectangles.flatMap(([from, , , to]) => [from, to]);
    const left = event.rectangles.length ? Math.min(...event.rectangles.map(([from]) => from ?? -Infinity)) : NaN;
    const right = event.rectangles.length ? Math.max(...event.rectangles.map(([, , , to]) => to ?? Infinity)) : NaN;
    if (ends.length) {
      const [x, end] = [across.within(left), across.within(right)];
      const band = draw(areas, "rect", { class: "band", x, y: 10, width: end - x, height: floor - 10 });
      draw(band, "title", {}, `what can change lies between ${Number.isFinite(left) ? text(left) : "the lowest"} and ${Number.isFinite(right) ? text(right) : "the highest"} x`);
    }
    for (const x of event.points) draw(areas, "path", { class: "event-line", d: `M${across(x)},10 V${floor}` });
    const isExtreme = scene.kind === "min" || scene.kind === "max";
    const heights = [event.old, event.new].filter(Boolean).map(([, y]) => y);
    const level = scene.kind === "max" ? Math.max(...heights) : Math.min(...heights);
    const limits = (y) => (scene.kind === "max" ? y >= level : y <= level);
    if (isExtreme && ends.length) draw(areas, "path", { class: "level", d: `M${across.within(left)},${up(level)} H${across.within(right)}` });
    rowsBefore(index).forEach((point, row) => {
      if (!point || row === event.row) return;
      const limit = isExtreme && (point[0] === left || point[0] === right) && limits(point[1]);
      const dot = draw(points, "circle", { class: limit ? "row limit" : "row", cx: across(point[0]), cy: up(point[1]), r: limit ? 4.5 : 2.8 });
      draw(dot, "title", {}, `row ${row}: x = ${text(point[0])}, y = ${text(point[1])}${limit ? ", which limits the update" : ""}`);
    });
    const [was, is] = [event.old, event.new].map((point) => point && [across(point[0]), up(point[1])]);
    if (was && is) {
      draw(change, "path", { class: "change", d: `M${was} L${is}` });
      const angle = (Math.atan2(is[1] - was[1], is[0] - was[0]) * 180) / Math.PI;
      if (Math.hypot(is[1] - was[1], is[0] - was[0]) > 12)
        draw(change, "path", { class: "is", d: "M-5,0 L-13,-4 L-13,4 Z", transform: `translate(${is}) rotate(${angle})` });
    }
    if (was) draw(change, "circle", { class: "was", cx: was[0], cy: was[1], r: 4 });
    if (is) draw(change, "circle", { class: "is", cx: is[0], cy: is[1], r: 5 });
  }

  return { begin };
}

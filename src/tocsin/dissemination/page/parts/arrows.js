// Messages as arrows between places; those of one step travel together.
class Arrows {
  constructor(layer, places, { bend = 0.12, gap = 5 } = {}) {
    Object.assign(this, { layer, places, bend, gap, all: [] });
  }

  begin(run) {
    this.layer.replaceChildren();
    this.all = run.lines.map(([step, role, sender, receiver, messages, size]) => {
      const group = draw(this.layer, "g", { class: scene.roles[role] });
      const curve = this.curve(this.places[sender], this.places[receiver]);
      const width = 1.3 + Math.min(Math.log2(messages), 5) * 0.45;
      const way = draw(group, "path", { class: "way hidden", d: curve.path, pathLength: 1, "stroke-width": width });
      draw(way, "title", {}, `step ${step + 1}: ${scene.roles[role]}, ${sender} → ${receiver}, ${counted(messages, "message")}, ${counted(size, "byte")}`);
      const head = draw(group, "path", { class: "head hidden", d: "M0,0 L-7,-3.4 L-7,3.4 Z", transform: curve.head });
      const traveller = draw(group, "circle", { class: "traveller hidden", r: 3.6 + width / 2 });
      return { step, way, head, traveller, curve };
    });
  }

  at(time) {
    for (const { step, way, head, traveller, curve } of this.all) {
      const done = Math.min(Math.max(time - step, 0), 1);
      const flying = done > 0 && done < 1;
      way.classList.toggle("hidden", done === 0);
      way.classList.toggle("over", time >= step + 2);
      head.classList.toggle("hidden", done < 1);
      head.classList.toggle("over", time >= step + 2);
      traveller.classList.toggle("hidden", !flying);
      way.setAttribute("stroke-dasharray", flying ? `${done} 1` : "none");
      if (flying) {
        const [x, y] = curve.at(done);
        traveller.setAttribute("cx", x);
        traveller.setAttribute("cy", y);
      }
    }
  }

  // A curve that leaves a little room at both ends, bent to its left, so that there and back are two.
  curve([x1, y1], [x2, y2]) {
    const [dx, dy] = [x2 - x1, y2 - y1];
    const length = Math.hypot(dx, dy) || 1;
    const [mx, my] = [(x1 + x2) / 2 + dy * this.bend, (y1 + y2) / 2 - dx * this.bend];
    const cut = Math.min(this.gap / length, 0.3);
    const at = (t) => {
      const s = cut / 2 + t * (1 - 1.5 * cut);
      return [0, 1].map((axis) => (1 - s) ** 2 * [x1, y1][axis] + 2 * s * (1 - s) * [mx, my][axis] + s ** 2 * [x2, y2][axis]);
    };
    const points = Array.from({ length: 13 }, (_, i) => at(i / 12).map((value) => value.toFixed(1)));
    const [[ax, ay], [bx, by]] = [at(0.94), at(1)];
    const angle = (Math.atan2(by - ay, bx - ax) * 180) / Math.PI;
    return { path: `M${points.join(" L")}`, at, head: `translate(${bx.toFixed(1)},${by.toFixed(1)}) rotate(${angle.toFixed(1)})` };
  }
}

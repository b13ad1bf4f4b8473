// What an event costs in each strategy, and whose answers change.
const billPane = (() => {
  const columns = [
    ["overlay_hops", "messages"], ["ip_hops", "IP hops"], ["size", "bytes"], ["stress", "stress"], ["steps", "steps"],
  ];
  const hints = {
    overlay_hops: "messages between overlay nodes", ip_hops: "links that they cross", size: "bytes of all messages",
    stress: "the most messages that one node sends; so far: the highest", steps: "waves of messages, one after another; so far: the most",
  };
  const isHighest = (name) => name === "stress" || name === "steps";
  const head = draw(byId("bill").tHead, "tr");
  draw(head, "th", { scope: "col" }, "");
  for (const [name, words] of columns) draw(head, "th", { scope: "col", title: hints[name] }, words);
  const lines = scene.strategies.map(({ name, holds }, strategy) => {
    const line = draw(byId("bill").tBodies[0], "tr", { title: `State: ${holds}` });
    line.addEventListener("click", () => choose({ strategy }));
    draw(line, "th", { scope: "row" }, name);
    const cells = columns.map(() => {
      const cell = draw(line, "td");
      return { now: draw(cell, "b"), so_far: draw(cell, "small"), bar: draw(cell, "span", { class: "bar" }) };
    });
    return { line, cells };
  });

  for (const [name, words] of [["route", "on its way to a zone"], ["spread", "to those it concerns"], ["ask", "asks for rows"], ["reply", "rows come back"]]) {
    const item = draw(byId("legend"), "li");
    item.insertAdjacentHTML("beforeend", `<svg viewBox="0 0 26 12" class="${name}" aria-hidden="true"><path class="way" d="M1,6 H19" stroke-width="2"/><path class="head" d="M25,6 L17,2 L17,10 Z"/></svg>`);
    item.append(words);
  }
  for (const [shape, words] of [
    ['<rect class="rectangle" x="2" y="1.5" width="22" height="9"/>', "what can change"],
    ['<circle class="dot notified" cx="13" cy="6" r="4"/>', "an answer that changes"],
  ]) {
    const item = draw(byId("legend"), "li");
    item.insertAdjacentHTML("beforeend", `<svg viewBox="0 0 26 12" aria-hidden="true">${shape}</svg>`);
    item.append(words);
  }

  // Of sets only what goes and what comes: a line has no room for all the values that stay.
  function inShort(old, value) {
    if (!Array.isArray(old) || !Array.isArray(value)) return [`${text(old)} → `, text(value)];
    const apart = [["goes", old, value], ["comes", value, old]]
      .map(([way, from, other]) => [way, from.filter((one) => !other.includes(one)).map(text)])
      .filter(([, found]) => found.length);
    return ["", apart.map(([way, found]) => `${found.join(", ")} ${way}`).join(", ")];
  }

  let notified = [];

  function begin(event, index, strategy, reach) {
    columns.forEach(([name], column) => {
      const values = event.runs.map((run) => run[name]);
      const most = Math.max(...values, 1);
      lines.forEach(({ line, cells }, row) => {
        const all = scene.events.slice(0, index + 1).map(({ runs }) => runs[row][name]);
        const so_far = isHighest(name) ? Math.max(...all) : all.reduce((sum, value) => sum + value, 0);
        cells[column].now.textContent = text(values[row]);
        cells[column].so_far.textContent = text(so_far);
        cells[column].bar.style.width = `${(100 * values[row]) / most}%`;
        line.classList.toggle("chosen", row === strategy);
      });
    });
    byId("answers-title").textContent = event.answer_changes.length ? `${counted(event.answer_changes.length, "answer")} ${event.answer_changes.length === 1 ? "changes" : "change"}` : "No answer changes";
    const list = byId("answers-list");
    list.replaceChildren();
    notified = event.answer_changes.map(([subscription, old, value]) => {
      const [from, to, gateway] = scene.subscriptions[subscription];
      const line = draw(list, "li");
      draw(line, "span", {}, `[${text(from)}, ${text(to)}]`);
      const [before, after] = inShort(old, value);
      draw(line, "span", { title: `${text(old)} → ${text(value)}` }, before).appendChild(document.createElement("b")).textContent = after;
      return { line, when: reach.notified(gateway) };
    });
  }

  function at(time) {
    for (const { line, when } of notified) line.classList.toggle("notified", when <= time && time > 0);
  }

  return { begin, at };
})();

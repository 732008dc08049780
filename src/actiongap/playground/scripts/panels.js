"use strict";
// A panel for each operator: which one, its numbers, its table as a picture, and what is measured of it.

const labelOf = name => ABOUT[name]?.[0] ?? name;

/** The labels of several operators: of two with one name, also the numbers that they differ in. */
function labelsOf(operators) {
  return operators.map(({name, numbers}) => {
    const namesakes = operators.filter(other => other.name === name);
    const differing = Object.keys(numbers).filter(key => namesakes.some(other => other.numbers[key] !== numbers[key]));
    return [labelOf(name), ...differing.map(key => `${LABELS[key]} ${numbers[key] === null ? "rule" : inWords(numbers[key])}`)].join(", ");
  });
}

/** Make one panel. `app` is told: change(place, operator), remove(place), select(state).
 *
 * Returns its element, with draw(trace, k, range, selected), and show(operator, app) for new numbers in the same panel.
 */
function makePanel(place, app) {
  const operator = () => app.state.operators[place];
  const choice = element("select", {"aria-label": `Operator of panel ${place + 1}`, change: () => {
    app.change(place, {name: choice.value, numbers: startNumbers(choice.value, operator().numbers)});
  }}, ...Object.keys(FAMILY).map(name => element("option", {value: name}, labelOf(name))));
  const remove = element("button", {type: "button", "aria-label": `Remove panel ${place + 1}`, title: "Remove", click: () => app.remove(place)}, "✕");
  const about = element("p", {class: "about faint"}), sliders = element("div", {class: "sliders"});
  const canvas = element("canvas", {tabindex: 0, role: "img"});
  const reading = element("p", {class: "reading faint"}), figures = element("dl", {class: "figures"});
  const cells = {};
  for (const [key, label] of [["gap", "mean gap"], ["loss", "loss"], ["wrong", "wrong"], ["since", "optimal from"]]) {
    cells[key] = element("dd", {"data-figure": key});
    figures.append(element("div", {}, element("dt", {}, term(label, key)), cells[key]));
  }
  const panel = element("section", {class: "panel card", style: `--own: var(--${PANEL_COLOURS[place]})`},
    element("header", {}, choice, remove), about, canvas, reading, figures, sliders);

  canvas.addEventListener("pointermove", event => app.select(stateAt(app.mdp, canvas.clientWidth, event.offsetX, event.offsetY)));
  canvas.addEventListener("pointerdown", event => app.select(stateAt(app.mdp, canvas.clientWidth, event.offsetX, event.offsetY)));
  canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) app.select(null); });
  canvas.addEventListener("blur", () => app.select(null));
  canvas.addEventListener("keydown", event => {
    const next = neighbour(app.mdp, app.selected, event.key);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    app.select(next);
  });

  panel.show = () => {
    const {name, numbers} = operator();
    choice.value = name;
    remove.disabled = app.state.operators.length === 1;
    panel.setAttribute("aria-label", `Panel ${place + 1}: ${labelOf(name)}`);
    about.textContent = ABOUT[name]?.[1] ?? "";
    const keys = Object.keys(numbers);
    if (keys.join() !== sliders.dataset.keys) {
      sliders.replaceChildren(...keys.map(key => slider(key, {
        say: number => (number === null ? "rule " + inWords(ruleBound(app)) : inWords(number)),
        change: number => app.change(place, {name: operator().name, numbers: {...operator().numbers, [key]: number}}),
      })));
      sliders.dataset.keys = keys.join();
    }
    keys.forEach((key, i) => sliders.children[i].show(numbers[key]));
  };

  panel.draw = (trace, k, range, selected) => {
    drawTable(canvas, trace, k, panelColour(place), range, selected);
    const {states} = trace.mdp, since = trace.optimalFrom;
    cells.gap.textContent = shown(trace.meanGap[k]);
    cells.loss.textContent = shown(trace.loss[k]);
    cells.wrong.replaceChildren(String(trace.wrong[k]), element("small", {}, ` / ${states}`));
    cells.since.textContent = !trace.isDone ? "…" : since === null ? "never" : since;
    reading.textContent = selected === null ? "Point at a state to read its numbers." : readState(trace, k, selected);
    reading.classList.toggle("hint", selected === null);
    canvas.setAttribute("aria-label", `${labelOf(operator().name)} at sweep ${k}: ${trace.wrong[k]} of ${states} greedy actions wrong. `
      + (selected === null ? "The arrow keys read a state." : reading.textContent));
  };
  return panel;
}

const ruleBound = app => +(app.mdp.rewardMin / (1 - app.state.gamma)).toPrecision(4);

/** The numbers of one state, in a line. */
function readState({mdp, tables, solution}, k, s) {
  const {actions, actionNames} = mdp, q = tables[k], start = s * actions, greedy = greedyAction(q, start, actions);
  const where = mdp.kind === "grid" ? `Column ${mdp.cellOf[s] % mdp.width + 1}, row ${Math.floor(mdp.cellOf[s] / mdp.width) + 1}` : `State ${s}`;
  const numbers = actionNames.map((name, a) => `${name} ${shown(q[start + a])}`).join(", ");
  const best = actionNames.filter((_, a) => solution.optimal[start + a]);
  const verdict = isWrong(solution, mdp, s, greedy) ? `${actionNames[greedy]} is greedy, ${best.join(" or ")} would be optimal` : `${actionNames[greedy]} is greedy, and optimal`;
  return `${where}: ${numbers}. Gap ${shown(actionGap(q, start, actions, greedy))}; ${verdict}.`;
}

/** The state that a key leads to from the selected one; undefined where the key is for others. */
function neighbour(mdp, selected, key) {
  const direction = ["ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"].indexOf(key);
  if (key === "Escape" && selected !== null) return null;
  if (direction < 0 || (mdp.kind !== "grid" && direction % 2 === 0)) return undefined;
  if (selected === null) return 0;
  if (mdp.kind !== "grid") return Math.max(0, Math.min(mdp.states - 1, selected + (direction === 1 ? 1 : -1)));
  const [dx, dy] = MOVES[direction], {width, height} = mdp;
  let x = mdp.cellOf[selected] % width + dx, y = Math.floor(mdp.cellOf[selected] / width) + dy;
  for (; x >= 0 && x < width && y >= 0 && y < height; x += dx, y += dy) {
    if (mdp.stateOf[y * width + x] !== null) return mdp.stateOf[y * width + x];
  }
  return selected;
}

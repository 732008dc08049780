"use strict";
// The parts that the page is made of: elements, sliders, a choice of a few, and tooltips.

/** An element with attributes and children. A function among the attributes listens to the event of that name. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, given] of Object.entries(attributes)) {
    if (typeof given === "function") made.addEventListener(key, given);
    else if (typeof given === "boolean") made.toggleAttribute(key, given);
    else made.setAttribute(key, given);
  }
  made.append(...children);
  return made;
}

const term = (words, name) => element("button", {type: "button", class: "term", "data-term": name}, words);

const linear = (low, high, step) => Array.from({length: Math.round((high - low) / step) + 1}, (_, i) => +(low + i * step).toFixed(6));

/** The numbers that a slider stops at. A link may hold any number between; the slider then stands at the nearest. */
const STOPS = {
  alpha: [...linear(0, 0.95, 0.05), 0.97, 0.98, 0.99, 0.995, 0.999],
  clip_ratio: [...linear(0.05, 0.95, 0.05), 0.97, 0.98, 0.99],
  lower_bound: [-1000, -500, -300, -200, -150, -100, -80, -60, -50, -40, -30, -20, -10, -5, -2, -1, 0, 1, 5, 10, 20, 50, 100, null],
  temperature: [0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 20],
  floor: [-100, -50, -20, -10, -5, -2, -1, -0.5, -0.2, -0.1],
  limit: [false, true],
  cap: [0.1, 0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, Infinity],
  gamma: [0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.998, 0.999],
  noise: [0, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5],
  seed: linear(0, 50, 1),
  success: linear(0.5, 1, 0.05),
  slip: linear(0, 0.6, 0.05),
  states: linear(3, 51, 2),
  garnetStates: [2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50],
  actions: linear(2, 4, 1),
  successors: linear(1, 6, 1),
  side: linear(2, 20, 1),
};

function nearestStop(stops, number) {
  if (number === null || number === Infinity) return stops.length - 1;
  const distance = stop => (stop === null || stop === Infinity ? Infinity : Math.abs(stop - number));
  return stops.reduce((best, stop, i) => (distance(stop) < distance(stops[best]) ? i : best), 0);
}

const inWords = number => {
  if (typeof number === "boolean") return number ? "cut" : "dropped";
  return number === Infinity ? "none" : brief(number).replace("-", "−");
};

/** A labelled slider over stops. `say` writes a number; show(number) moves it without a change being told. */
function slider(key, {stops = STOPS[key], say = inWords, change, name = LABELS[key] ?? key}) {
  const output = element("output");
  const input = element("input", {type: "range", min: 0, max: stops.length - 1, step: 1, "aria-label": name, "data-key": key});
  const row = element("div", {class: "slider"}, key in TERMS ? term(name, key) : element("span", {}, name), input, output);
  const show = number => {
    input.value = nearestStop(stops, number);
    output.textContent = say(number);
    input.setAttribute("aria-valuetext", say(number));
    row.classList.toggle("rule", number === null);
  };
  input.addEventListener("input", () => { show(stops[+input.value]); change(stops[+input.value]); });
  return Object.assign(row, {show});
}

/** A choice of a few, as radio buttons in a row: {value: label}. */
function fillSegments(place, group, choices, change) {
  place.replaceChildren(...Object.entries(choices).map(([choice, label]) => element("label", {},
    element("input", {type: "radio", name: group, value: choice, change: () => change(choice)}), label)));
}

function chooseSegment(place, choice) {
  for (const input of place.querySelectorAll("input")) input.checked = input.value === choice;
}

/** Each element with data-term shows what the word means: by pointer, by focus and by touch. Escape hides it. */
function startTips(tip) {
  let owner = null;
  const hide = () => {
    owner?.removeAttribute("aria-describedby");
    owner = null;
    tip.hidden = true;
  };
  const reveal = event => {
    const target = event.target.closest?.("[data-term]");
    if (target === owner) return;
    hide();
    if (!target) return;
    owner = target;
    tip.textContent = TERMS[target.dataset.term];
    tip.hidden = false;
    target.setAttribute("aria-describedby", tip.id);
    const box = target.getBoundingClientRect(), room = document.documentElement.clientWidth - tip.offsetWidth - 16;
    const above = box.bottom + tip.offsetHeight + 90 > window.innerHeight && box.top > tip.offsetHeight + 8;
    tip.style.left = Math.max(16, Math.min(room, box.left)) + "px";
    tip.style.top = (above ? box.top - tip.offsetHeight - 6 : box.bottom + 6) + window.scrollY + "px";
  };
  for (const kind of ["pointerover", "focusin", "click"]) document.addEventListener(kind, reveal);
  document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
}

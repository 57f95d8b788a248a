// The page: asks the service what is new, again and again, and hands it to the map, the lists and the charts.

import { ask, keepToken, Refused } from "./api.js";
import { Charts } from "./charts.js";
import { Colors } from "./colors.js";
import { Details, element } from "./details.js";
import { MapView } from "./map.js";
import { Points } from "./points.js";

const LOOK = 300; // milliseconds between two looks at the map
const PULSE = 1000;
const AGAIN = 2000; // after a failure
const QUIET = 4000; // without a batch: nothing is coming in

const find = (selector) => document.querySelector(selector);
const number = new Intl.NumberFormat("en");

const points = new Points();
const colors = new Colors(points);
const map = new MapView(find("#plane"), points, colors, (id) => details.choose(id));
const details = new Details(document, points, colors, map);
const charts = new Charts(document);
const stream = { paused: false, sequence: -1, changed: performance.now() };

function say(state, text) {
  const status = find("#status");
  if (status.textContent === text && status.dataset.state === state) return;
  status.dataset.state = state;
  status.textContent = text;
}

async function look() {
  const answer = await ask("/v1/map", { epoch: points.epoch, tick: points.tick });
  const news = points.take(answer);
  if (news.changed) {
    map.take(news, answer.whole);
    await details.take(news);
  }
  tell(answer.model);
}

function tell(model) {
  for (const name of ["vertices", "edges", "sequence", "anchors"]) {
    find(`#${name}`).textContent = number.format(model[name]);
  }
  const sampled = points.size < 0.98 * model.vertices && model.ready;
  find("#note").textContent = sampled ? `${number.format(points.size)} of ${number.format(model.vertices)} vertices are shown` : "";
  find("#empty").hidden = points.size > 0;
  const now = performance.now();
  if (model.sequence !== stream.sequence) [stream.sequence, stream.changed] = [model.sequence, now];
  if (now - stream.changed < QUIET) say("live", "live");
  else say("quiet", "nothing is coming in");
}

function legend() {
  const items = map.dots.groups.filter((group) => group.slots.length || group.name).map((group) => {
    const dot = element("span", { className: "dot" });
    dot.style.background = group.color;
    const item = element("li", { title: group.name });
    item.append(dot);
    if (group.name) item.append(element("span", { textContent: group.name }));
    return item;
  });
  const shown = map.dots.groups.map((group) => `${group.name} ${group.color}`).join();
  if (shown === legend.shown) return;
  legend.shown = shown;
  find("#legend").replaceChildren(...items);
}

/** Do something again and again, each time after the last one is over; not while nobody looks. */
async function repeat(action, pause) {
  for (;;) {
    let wait = pause;
    try {
      if (!document.hidden && !stream.paused) await action();
    } catch (error) {
      wait = AGAIN;
      await failed(error);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function failed(error) {
  if (error instanceof Refused && error.status === 401) {
    say("waiting", "a token is needed");
    await token();
  } else if (error instanceof Refused) {
    say("waiting", error.message);
  } else if (error instanceof TypeError && error.message.includes("fetch")) {
    say("lost", "the service cannot be reached");
  } else {
    say("lost", "something went wrong");
    console.error(error);
  }
}

/** Ask for a token, once for everybody who needs it. */
function token() {
  const dialog = find("#ask");
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
}

find("#ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(find("#token").value);
  find("#ask").close();
});

for (const radio of document.querySelectorAll("input[name=color]")) {
  radio.addEventListener("change", () => {
    colors.by = radio.value;
    map.dots.refresh(true);
  });
}
find("#pause").addEventListener("click", (event) => {
  stream.paused = !stream.paused;
  event.currentTarget.setAttribute("aria-pressed", String(stream.paused));
  if (stream.paused) say("waiting", "paused");
});
find("#closer").addEventListener("click", () => map.view.zoom(0.7));
find("#farther").addEventListener("click", () => map.view.zoom(1.4));
find("#all").addEventListener("click", () => map.all());
map.dots.done = legend;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  map.dots.refresh(true);
  if (charts.latest) charts.draw(charts.latest);
});

repeat(look, LOOK);
repeat(async () => charts.draw(await ask("/v1/map/pulse")), PULSE);

// Entry point of the live page: polls the service and passes updates to the map, the vertex panel and the charts.

import { authorization, getJson, RequestError, storeToken } from "./api.js";
import { Charts } from "./charts.js";
import { ColorScheme } from "./colors.js";
import { showHealth } from "./health.js";
import { MapView } from "./map_view.js";
import { PointStore } from "./point_store.js";
import { createElement, VertexPanel } from "./vertex_panel.js";

// Milliseconds.
const MAP_INTERVAL = 300;
const CHARTS_INTERVAL = 800; // below a second, so that every second is read
const HEALTH_INTERVAL = 2000;
const RETRY_INTERVAL = 2000;
const IDLE_AFTER = 4000; // without a new batch
const FIGURES = [
  ["vertices", "vertex", "vertices"],
  ["edges", "edge", "edges"],
  ["sequence", "batch", "batches"],
  ["anchors", "anchor", "anchors"],
];

const find = (selector) => document.querySelector(selector);
const numberFormat = new Intl.NumberFormat("en");

const points = new PointStore();
const colors = new ColorScheme(points);
const map = new MapView(find("#map"), points, colors, (id) => panel.select(id));
const panel = new VertexPanel(document, points, colors, map);
const charts = new Charts(document);
const stream = { paused: false, sequence: -1, changedAt: performance.now() };

function setStatus(state, text) {
  const status = find("#status");
  if (status.textContent === text && status.dataset.state === state) return;
  status.dataset.state = state;
  status.textContent = text;
}

async function updateMap() {
  const response = await getJson("/v1/map", { epoch: points.epoch, tick: points.tick });
  const changes = points.update(response);
  if (changes.changed) {
    chooseDefaultColors();
    map.update(changes, response.whole);
    await panel.update(changes);
  }
  showModelStats(response.model);
}

/** Color by label as soon as there are labels, unless the user has chosen. */
function chooseDefaultColors() {
  if (colors.isChosen || colors.mode === "label" || !points.hasLabels()) return;
  colors.mode = "label";
  find("input[name=color][value=label]").checked = true;
}

async function updateCharts() {
  charts.draw(await getJson("/v1/map/pulse"));
}

async function updateHealth() {
  showHealth(document, await getJson("/v1/stats"));
  find("#metrics-link").hidden = "Authorization" in authorization(); // a link cannot send the token
}

function showModelStats(model) {
  for (const [name, one, many] of FIGURES) {
    find(`#${name}`).textContent = numberFormat.format(model[name]);
    find(`#${name}-name`).textContent = model[name] === 1 ? one : many;
  }
  const isSampled = points.size < 0.98 * model.vertices && model.started;
  const counts = `${numberFormat.format(points.size)} of ${numberFormat.format(model.vertices)}`;
  find("#sample-note").textContent = isSampled ? `Showing ${counts} vertices` : "";
  find("#empty").hidden = points.size > 0;
  find("#empty-text").textContent = describeProgress(model);
  const now = performance.now();
  if (model.sequence !== stream.sequence) [stream.sequence, stream.changedAt] = [model.sequence, now];
  if (now - stream.changedAt < IDLE_AFTER) setStatus("live", "live");
  else setStatus("idle", "no new data");
}

/** Say how many vertices with edges are still missing until the model gets its start, and with it a map. */
function describeProgress(model) {
  if (model.started || !model.vertices) return "Waiting for vertices";
  return `${numberFormat.format(model.connected)} of ${numberFormat.format(model.start_size)} vertices until the first map`;
}

function updateLegend() {
  const groups = map.pointLayer.groups;
  const signature = groups.map((group) => `${group.name} ${group.color}`).join();
  if (signature === updateLegend.signature) return;
  updateLegend.signature = signature;
  const items = groups.filter((group) => group.slots.length || group.name).map((group) => {
    const dot = createElement("span", { className: "dot" });
    dot.style.background = group.color;
    const item = createElement("li", { title: group.name });
    item.append(dot);
    if (group.name) item.append(createElement("span", { textContent: group.name }));
    return item;
  });
  find("#legend").replaceChildren(...items);
}

/** Repeat an action with a pause after each run; skip it while the page is hidden or paused. */
async function poll(action, interval) {
  for (;;) {
    let pause = interval;
    try {
      if (!document.hidden && !stream.paused) await action();
    } catch (error) {
      pause = RETRY_INTERVAL;
      await handleError(error);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

async function handleError(error) {
  if (error instanceof RequestError && error.status === 401) {
    setStatus("waiting", "token required");
    await askForToken();
  } else if (error instanceof RequestError) {
    setStatus("waiting", error.message);
  } else if (error instanceof TypeError && error.message.includes("fetch")) {
    setStatus("error", "service unreachable");
  } else {
    setStatus("error", "something went wrong");
    console.error(error);
  }
}

/** Show the token dialog, once for all requests that need a token, and wait until it is closed. */
function askForToken() {
  const dialog = find("#token-dialog");
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
}

find("#token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  storeToken(find("#token").value);
  find("#token-dialog").close();
});

for (const radio of document.querySelectorAll("input[name=color]")) {
  radio.addEventListener("change", () => {
    [colors.mode, colors.isChosen] = [radio.value, true];
    map.pointLayer.refresh(true);
  });
}
find("#pause").addEventListener("click", (event) => {
  stream.paused = !stream.paused;
  event.currentTarget.setAttribute("aria-pressed", String(stream.paused));
  if (stream.paused) setStatus("waiting", "paused");
});
find("#zoom-in").addEventListener("click", () => map.viewport.zoom(0.7));
find("#zoom-out").addEventListener("click", () => map.viewport.zoom(1.4));
find("#show-all").addEventListener("click", () => map.showAll());
map.pointLayer.onPaint = updateLegend;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.pointLayer.refresh(true));

find("#commands").textContent = `ripplevec replay edges.csv --rate 100 --to ${location.origin}
curl -X POST ${location.origin}/v1/edges \\
     -H 'Content-Type: application/json' -d '{"edges": [["ann", "bob"]]}'`;

poll(updateMap, MAP_INTERVAL);
poll(updateCharts, CHARTS_INTERVAL);
poll(updateHealth, HEALTH_INTERVAL);

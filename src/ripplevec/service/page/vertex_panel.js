// Search box, details of the selected vertex, and list of recent arrivals. Ids are inserted as text only.

import { getJson, idParameters } from "./api.js";

const MAX_SUGGESTIONS = 12;
const MAX_ARRIVALS = 7;
const REFRESH_INTERVAL = 1500; // milliseconds between two reads of a selected vertex that keeps moving
const numberFormat = new Intl.NumberFormat("en");

export class VertexPanel {
  constructor(root, points, colors, map) {
    this.root = root;
    this.points = points;
    this.colors = colors;
    this.map = map;
    this.selected = null;
    this.readAt = 0;
    this.arrivals = [];
    this.find("#search-form").addEventListener("submit", (event) => this.search(event));
    this.find("#search").addEventListener("input", (event) => this.suggest(event.target.value));
    this.find("#close-selected").addEventListener("click", () => this.close());
    this.find("#export-selected").addEventListener("click", () => this.exportSelected());
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.selected && this.close());
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  search(event) {
    event.preventDefault();
    const text = this.find("#search").value.trim();
    if (text) this.select(text, "auto", true);
  }

  suggest(text) {
    const ids = text ? this.points.searchIds(text, MAX_SUGGESTIONS) : [];
    this.find("#suggestions").replaceChildren(...ids.map((id) => createElement("option", { value: id })));
  }

  /** Read and show a vertex, by its id or by a typed text. */
  async select(id, kind = idParameters(id).kind, isTyped = false) {
    const message = this.find("#search-message");
    try {
      const vertex = await getJson("/v1/map/around", { id, kind });
      message.textContent = vertex.id === null ? `Vertex ${id} not found.` : isTyped ? `Showing ${vertex.id}.` : "";
      if (vertex.id !== null) this.open(vertex, isTyped);
    } catch (error) {
      message.textContent = `Cannot show the vertex: ${error.message}`;
    }
  }

  open(vertex, isTyped) {
    this.show(vertex);
    this.map.reveal(vertex);
    if (isTyped) this.find("#selected-id").focus({ preventScroll: matchMedia("(min-width: 861px)").matches });
  }

  show(vertex) {
    this.selected = vertex;
    this.readAt = performance.now();
    this.find("#selected").hidden = false;
    this.find("#selected-id").textContent = vertex.id;
    const label = vertex.label === null ? "" : `${vertex.label} · `;
    const degree = `${numberFormat.format(vertex.degree)} neighbor${vertex.degree === 1 ? "" : "s"}`;
    const arrival = `arrival ${numberFormat.format(vertex.arrival + 1)}`;
    const status = vertex.x === undefined ? " · not placed yet" : "";
    this.find("#selected-summary").textContent = `${label}${degree} · ${arrival}${status}`;
    this.fillList("#nearest", vertex.nearest, ({ cosine }) => cosine.toFixed(3));
    this.find("#by-attributes").hidden = !vertex.nearest_by_attributes.length;
    this.fillList("#nearest-by-attributes", vertex.nearest_by_attributes, ({ cosine }) => cosine.toFixed(3));
    this.fillList("#neighbors", vertex.neighbors, ({ weight }) => (weight === 1 ? "" : `× ${numberFormat.format(weight)}`));
    this.map.highlights.select(vertex);
  }

  close() {
    this.selected = null;
    this.find("#selected").hidden = true;
    this.map.highlights.select(null);
    this.find("#search").focus();
  }

  /** Download the selected vertex as JSON, with its neighbors and nearest vertices as they are shown. */
  exportSelected() {
    const file = new Blob([JSON.stringify(this.selected, null, 1)], { type: "application/json" });
    const name = String(this.selected.id).replace(/[^\w.-]+/g, "_");
    const link = createElement("a", { href: URL.createObjectURL(file), download: `vertex-${name}.json` });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  /** List added points, and read the selected vertex again if it has moved. */
  async update({ added, moved }) {
    const latest = added.slice(-MAX_ARRIVALS).map((slot) => this.vertexAt(slot));
    this.arrivals = [...this.arrivals, ...latest].slice(-MAX_ARRIVALS);
    if (added.length && !this.isInUse("#recent-arrivals")) {
      this.fillList("#recent-arrivals", [...this.arrivals].reverse(), ({ label }) => label ?? "");
      this.find("#no-arrivals").hidden = true;
    }
    const slot = this.selected && this.points.slotByArrival.get(this.selected.arrival);
    const isDue = performance.now() - this.readAt > REFRESH_INTERVAL && !this.isInUse("#selected");
    if (!this.selected || !isDue || !moved.includes(slot)) return;
    const vertex = await getJson("/v1/map/around", idParameters(this.selected.id));
    if (vertex.id !== null) this.show(vertex);
  }

  /** Return whether the user is about to click in a list, which must not change then. */
  isInUse(selector) {
    return this.find(selector).matches(":hover, :has(button:focus)");
  }

  vertexAt(slot) {
    const { id, label, community } = this.points;
    return { id: id[slot], label: label[slot], community: community[slot] };
  }

  fillList(selector, vertices, formatValue) {
    const items = vertices.map((vertex) => {
      const dot = createElement("span", { className: "dot" });
      dot.style.background = this.colors.colorOf(vertex);
      const name = createElement("span", { className: "name", textContent: vertex.id });
      const button = createElement("button", { type: "button", title: String(vertex.id) });
      button.append(dot, name, createElement("span", { className: "value", textContent: formatValue(vertex) }));
      button.addEventListener("click", () => this.select(vertex.id));
      const item = createElement("li");
      item.append(button);
      return item;
    });
    this.find(selector).replaceChildren(...items);
  }
}

/** Create an element with these properties. */
export function createElement(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

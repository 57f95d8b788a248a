// Find a vertex, see who is near it and who it is connected to. Ids are only ever put in as text.

import { ask, named } from "./api.js";

const SUGGESTED = 12;
const ARRIVED = 7;
const SLOWLY = 1500; // milliseconds between two readings of a vertex that keeps moving
const number = new Intl.NumberFormat("en");

export class Details {
  constructor(root, points, colors, map) {
    this.root = root;
    this.points = points;
    this.colors = colors;
    this.map = map;
    this.chosen = null;
    this.read = 0;
    this.arrived = [];
    this.find("#search-form").addEventListener("submit", (event) => this.search(event));
    this.find("#search").addEventListener("input", (event) => this.suggest(event.target.value));
    this.find("#unchoose").addEventListener("click", () => this.close());
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.chosen && this.close());
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  search(event) {
    event.preventDefault();
    const text = this.find("#search").value.trim();
    if (text) this.choose(text, "auto", true);
  }

  suggest(text) {
    const options = text ? this.points.like(text, SUGGESTED) : [];
    this.find("#suggestions").replaceChildren(...options.map((id) => element("option", { value: id })));
  }

  /** Show a vertex: by what was typed, or by its own id. */
  async choose(id, kind = named(id).kind, typed = false) {
    const said = this.find("#search-said");
    try {
      const around = await ask("/v1/map/around", { id, kind });
      said.textContent = around.id === null ? `There is no vertex ${id}.` : typed ? `Showing ${around.id}.` : "";
      if (around.id !== null) this.present(around, typed);
    } catch (error) {
      said.textContent = `It cannot be shown: ${error.message}`;
    }
  }

  present(around, typed) {
    this.show(around);
    this.map.reveal(around);
    if (typed) this.find("#chosen-id").focus({ preventScroll: matchMedia("(min-width: 861px)").matches });
  }

  show(around) {
    this.chosen = around;
    this.read = performance.now();
    this.find("#chosen").hidden = false;
    this.find("#chosen-id").textContent = around.id;
    const label = around.label === null ? "" : `${around.label} · `;
    const degree = `${number.format(around.degree)} neighbor${around.degree === 1 ? "" : "s"}`;
    const place = around.x === undefined ? " · not placed yet" : "";
    this.find("#chosen-about").textContent = `${label}${degree} · arrival ${number.format(around.arrival + 1)}${place}`;
    this.list("#nearest", around.nearest, (point) => point.cosine.toFixed(3));
    this.list("#neighbors", around.neighbors, (point) => (point.weight === 1 ? "" : `× ${number.format(point.weight)}`));
    this.map.glow.choose(around);
  }

  close() {
    this.chosen = null;
    this.find("#chosen").hidden = true;
    this.map.glow.choose(null);
    this.find("#search").focus();
  }

  /** Points have come or moved: newcomers are listed, the chosen vertex is read again if it is among them. */
  async take({ fresh, moved }) {
    this.arrived = [...this.arrived, ...fresh.slice(-ARRIVED).map((slot) => this.pointAt(slot))].slice(-ARRIVED);
    if (fresh.length && !this.busy("#arrived")) {
      this.list("#arrived", [...this.arrived].reverse(), (point) => point.label ?? "");
      this.find("#arrived-none").hidden = true;
    }
    const slot = this.chosen && this.points.slot.get(this.chosen.arrival);
    const due = performance.now() - this.read > SLOWLY && !this.busy("#chosen");
    if (!this.chosen || !due || !moved.includes(slot)) return;
    const around = await ask("/v1/map/around", named(this.chosen.id));
    if (around.id !== null) this.show(around);
  }

  /** Somebody is at a list just now: it shall not change under their hands. */
  busy(selector) {
    return this.find(selector).matches(":hover, :has(button:focus)");
  }

  pointAt(slot) {
    const { id, label, community } = this.points;
    return { id: id[slot], label: label[slot], community: community[slot] };
  }

  list(selector, points, value) {
    const items = points.map((point) => {
      const dot = element("span", { className: "dot" });
      dot.style.background = this.colors.of(point);
      const name = element("span", { className: "name", textContent: point.id });
      const button = element("button", { type: "button", title: String(point.id) });
      button.append(dot, name, element("span", { className: "value", textContent: value(point) }));
      button.addEventListener("click", () => this.choose(point.id));
      const item = element("li");
      item.append(button);
      return item;
    });
    this.find(selector).replaceChildren(...items);
  }
}

/** A new element with these properties. */
export function element(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

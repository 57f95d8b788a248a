// The map: points (dots.js), what moves above them (glow.js), the window onto them (view.js).

import { Dots } from "./dots.js";
import { Glow } from "./glow.js";
import { View } from "./view.js";

const NEAR = { mouse: 9, touch: 22, pen: 14 }; // pixels from a point that still mean it

export class MapView {
  constructor(plane, points, colors, choose) {
    this.plane = plane;
    this.points = points;
    this.choose = choose;
    this.view = new View(plane);
    this.dots = new Dots(plane.querySelector("#dots"), points, colors, this.view);
    this.glow = new Glow(plane.querySelector("#glow"), points, this.view);
    this.view.changed = () => this.moved();
    this.view.tapped = (at, kind) => this.tap(at, kind);
    this.view.hovered = (at) => this.hover(at);
    this.plane.addEventListener("keydown", (event) => this.key(event));
    this.plane.addEventListener("focus", () => this.setCross(this.plane.matches(":focus-visible")));
    this.plane.addEventListener("blur", () => this.setCross(false));
  }

  /** Points have come, moved or gone. */
  take(news, whole) {
    if (!whole) this.dots.add(news.fresh);
    this.glow.add(news);
    this.dots.refresh(whole);
  }

  moved() {
    this.tip(null);
    this.dots.draw();
    this.glow.draw();
  }

  all() {
    this.view.all(this.points.box());
  }

  /** Bring a vertex into sight, if it is not. */
  reveal(point) {
    if (point.x !== undefined && !this.view.sees(point)) this.view.center(point);
  }

  // Hands and keys.

  tap(at, kind) {
    const slot = this.slotAt(at, NEAR[kind] ?? NEAR.mouse);
    if (slot !== undefined) this.choose(this.points.id[slot]);
  }

  hover(at) {
    const slot = at ? this.slotAt(at, NEAR.mouse) : undefined;
    this.plane.classList.toggle("over", slot !== undefined);
    this.tip(slot ?? null);
  }

  slotAt(at, pixels) {
    return this.points.nearest(...this.view.place(...at), pixels * this.view.unit);
  }

  key(event) {
    if (event.target !== this.plane || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 0.12 * Math.min(this.view.width, this.view.height);
    const actions = {
      ArrowLeft: () => this.view.shift(-step, 0),
      ArrowRight: () => this.view.shift(step, 0),
      ArrowUp: () => this.view.shift(0, -step),
      ArrowDown: () => this.view.shift(0, step),
      "+": () => this.view.zoom(0.8),
      "=": () => this.view.zoom(0.8),
      "-": () => this.view.zoom(1.25),
      0: () => this.all(),
      Enter: () => this.tapMiddle(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    this.setCross(true);
    actions[event.key]();
  }

  tapMiddle() {
    const slot = this.points.nearest(this.view.x, this.view.y, Infinity);
    if (slot !== undefined) this.choose(this.points.id[slot]);
  }

  setCross(on) {
    this.glow.cross = on;
    this.glow.draw();
  }

  tip(slot) {
    const tip = this.plane.querySelector("#tip");
    tip.hidden = slot === null;
    if (slot === null) return;
    const label = this.points.label[slot];
    tip.textContent = label === null ? String(this.points.id[slot]) : `${this.points.id[slot]} · ${label}`;
    const [x, y] = this.view.pixels(this.points.x[slot], this.points.y[slot]);
    const left = Math.max(Math.min(x + 12, this.view.width - tip.offsetWidth - 6), 6);
    tip.style.transform = `translate(${left}px, ${Math.max(y - tip.offsetHeight - 10, 4)}px)`;
  }
}

// The map: points (point_layer.js), highlights above them (highlight_layer.js) and the visible part (viewport.js).

import { HighlightLayer } from "./highlight_layer.js";
import { PointLayer } from "./point_layer.js";
import { Viewport } from "./viewport.js";

const HIT_RADIUS = { mouse: 9, touch: 22, pen: 14 }; // pixels around a point that select it

export class MapView {
  constructor(container, points, colors, onSelect) {
    this.container = container;
    this.points = points;
    this.onSelect = onSelect;
    this.viewport = new Viewport(container);
    this.pointLayer = new PointLayer(container.querySelector("#point-canvas"), points, colors, this.viewport);
    this.highlights = new HighlightLayer(container.querySelector("#highlight-canvas"), points, this.viewport);
    this.viewport.onChange = () => this.repaint();
    this.viewport.onTap = (at, pointerType) => this.handleTap(at, pointerType);
    this.viewport.onHover = (at) => this.handleHover(at);
    container.addEventListener("keydown", (event) => this.handleKey(event));
    container.addEventListener("focus", () => this.setCrosshair(container.matches(":focus-visible")));
    container.addEventListener("blur", () => this.setCrosshair(false));
  }

  /** Show an update of the points; `whole` if all of them were replaced. */
  update(changes, whole) {
    if (!whole) this.pointLayer.add(changes.added);
    this.highlights.add(changes);
    this.pointLayer.refresh(whole);
  }

  repaint() {
    this.showTooltip(null);
    this.pointLayer.requestPaint();
    this.highlights.requestPaint();
  }

  showAll() {
    this.viewport.reset(this.points.boundingBox());
  }

  /** Move the viewport to a vertex that is not visible. */
  reveal(vertex) {
    if (vertex.x !== undefined && !this.viewport.isVisible(vertex)) this.viewport.centerOn(vertex);
  }

  // Mouse, touch and keyboard.

  handleTap(at, pointerType) {
    const slot = this.findSlot(at, HIT_RADIUS[pointerType] ?? HIT_RADIUS.mouse);
    if (slot !== undefined) this.onSelect(this.points.id[slot]);
  }

  handleHover(at) {
    const slot = at ? this.findSlot(at, HIT_RADIUS.mouse) : undefined;
    this.container.classList.toggle("over-point", slot !== undefined);
    this.showTooltip(slot ?? null);
  }

  findSlot(at, radius) {
    const { unit, stretch } = this.viewport;
    return this.points.findNearest(...this.viewport.toPosition(...at), radius * unit, stretch);
  }

  handleKey(event) {
    if (event.target !== this.container || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 0.12 * Math.min(this.viewport.width, this.viewport.height);
    const actions = {
      ArrowLeft: () => this.viewport.pan(-step, 0),
      ArrowRight: () => this.viewport.pan(step, 0),
      ArrowUp: () => this.viewport.pan(0, -step),
      ArrowDown: () => this.viewport.pan(0, step),
      "+": () => this.viewport.zoom(0.8),
      "=": () => this.viewport.zoom(0.8),
      "-": () => this.viewport.zoom(1.25),
      0: () => this.showAll(),
      Enter: () => this.selectCenter(),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    this.setCrosshair(true);
    actions[event.key]();
  }

  selectCenter() {
    const slot = this.points.findNearest(this.viewport.x, this.viewport.y, Infinity, this.viewport.stretch);
    if (slot !== undefined) this.onSelect(this.points.id[slot]);
  }

  setCrosshair(isShown) {
    this.highlights.showCrosshair = isShown;
    this.highlights.requestPaint();
  }

  showTooltip(slot) {
    const tooltip = this.container.querySelector("#tooltip");
    tooltip.hidden = slot === null;
    if (slot === null) return;
    const label = this.points.label[slot];
    tooltip.textContent = label === null ? String(this.points.id[slot]) : `${this.points.id[slot]} · ${label}`;
    const [x, y] = this.viewport.toPixels(this.points.x[slot], this.points.y[slot]);
    const left = Math.max(Math.min(x + 12, this.viewport.width - tooltip.offsetWidth - 6), 6);
    tooltip.style.transform = `translate(${left}px, ${Math.max(y - tooltip.offsetHeight - 10, 4)}px)`;
  }
}

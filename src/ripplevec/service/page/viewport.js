// The visible part of the map, and how mouse, touch and pinch gestures move it.

const MARGIN = 1.08; // factor around the bounding box of all points
const MAX_STRETCH = 1.6; // of the map in one direction, so that it uses a wide or a high container
const TAP_TOLERANCE = 4; // pixels that a pointer may move and still tap

export class Viewport {
  constructor(container) {
    this.container = container;
    this.movedByUser = false;
    this.pointers = new Map();
    this.onChange = () => {}; // called when the visible part has changed
    this.onTap = () => {}; // called with the pixels of a click or tap, and the pointer type
    this.onHover = () => {}; // called with the pixels under the mouse, or null when it has left
    this.show({ left: -1, right: 1, bottom: -1, top: 1 });
    container.addEventListener("wheel", (event) => this.handleWheel(event), { passive: false });
    container.addEventListener("pointerdown", (event) => this.handlePointerDown(event));
    container.addEventListener("pointermove", (event) => this.handlePointerMove(event));
    container.addEventListener("pointerup", (event) => this.handlePointerUp(event, true));
    container.addEventListener("pointercancel", (event) => this.handlePointerUp(event, false));
    container.addEventListener("pointerleave", () => this.onHover(null));
    new ResizeObserver(() => this.onChange()).observe(container);
  }

  get width() {
    return Math.max(this.container.clientWidth, 1);
  }

  get height() {
    return Math.max(this.container.clientHeight, 1);
  }

  // Conversion between map positions and pixels, [left, top] from the corner of the container. `unit` is the height of
  // a pixel on the map, and `unit / stretch` its width.

  toPixels(x, y) {
    return [((x - this.x) * this.stretch) / this.unit + this.width / 2, (this.y - y) / this.unit + this.height / 2];
  }

  toPosition(left, top) {
    const right = ((left - this.width / 2) * this.unit) / this.stretch;
    return [this.x + right, this.y - (top - this.height / 2) * this.unit];
  }

  isVisible({ x, y }) {
    const [left, top] = this.toPixels(x, y);
    return left > 0 && left < this.width && top > 0 && top < this.height;
  }

  // Moving the viewport.

  show(box) {
    Object.assign(this, this.fit(box));
  }

  fit({ left, right, bottom, top }) {
    const pixelWidth = MARGIN * Math.max((right - left) / this.width, 1e-9);
    const pixelHeight = MARGIN * Math.max((top - bottom) / this.height, 1e-9);
    const stretch = Math.min(Math.max(pixelHeight / pixelWidth, 1 / MAX_STRETCH), MAX_STRETCH);
    return { x: (left + right) / 2, y: (bottom + top) / 2, unit: Math.max(pixelHeight, pixelWidth * stretch), stretch };
  }

  /** Show all points, but stay if that would change little: one moving point must not move the map. */
  follow(box) {
    if (this.movedByUser) return;
    const target = this.fit(box);
    const distance = Math.hypot(target.x - this.x, target.y - this.y) / (target.unit * this.width);
    const ratios = [target.unit / this.unit, (target.unit / target.stretch) / (this.unit / this.stretch)];
    if (distance > 0.06 || Math.max(...ratios) > 1.06 || Math.min(...ratios) < 0.8) Object.assign(this, target);
  }

  reset(box) {
    this.movedByUser = false;
    this.show(box);
    this.onChange();
  }

  centerOn({ x, y }) {
    Object.assign(this, { x, y, movedByUser: true });
    this.onChange();
  }

  pan(right, down) {
    this.x += (right * this.unit) / this.stretch;
    this.y -= down * this.unit;
    this.movedByUser = true;
    this.onChange();
  }

  /** Zoom by a factor, above 1 out and below 1 in; the position at these pixels stays in place. */
  zoom(factor, left = this.width / 2, top = this.height / 2) {
    const [x, y] = this.toPosition(left, top);
    this.unit = Math.min(Math.max(this.unit * factor, 1e-6), 1);
    const [newX, newY] = this.toPosition(left, top);
    this.x += x - newX;
    this.y += y - newY;
    this.movedByUser = true;
    this.onChange();
  }

  // Mouse and touch.

  handleWheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -60), 60) * 0.004), ...this.pixelsOf(event));
  }

  handlePointerDown(event) {
    if (event.button !== 0 || event.target.closest("button")) return;
    this.container.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { at: this.pixelsOf(event), start: this.pixelsOf(event), moved: false });
    this.onHover(null);
  }

  handlePointerMove(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType === "mouse") this.onHover(this.pixelsOf(event));
      return;
    }
    const [before, now] = [pointer.at, this.pixelsOf(event)];
    pointer.moved ||= Math.hypot(now[0] - pointer.start[0], now[1] - pointer.start[1]) > TAP_TOLERANCE;
    if (!pointer.moved) return;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointer.at = now;
    if (!other) {
      this.pan(before[0] - now[0], before[1] - now[1]);
      return;
    }
    const [oldDistance, newDistance] = [before, now].map((at) => Math.hypot(at[0] - other.at[0], at[1] - other.at[1]));
    this.pan((before[0] - now[0]) / 2, (before[1] - now[1]) / 2);
    this.zoom(oldDistance / Math.max(newDistance, 1), (now[0] + other.at[0]) / 2, (now[1] + other.at[1]) / 2);
  }

  handlePointerUp(event, mayTap) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (mayTap && pointer && !pointer.moved && !this.pointers.size) this.onTap(pointer.at, event.pointerType);
  }

  pixelsOf(event) {
    const box = this.container.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

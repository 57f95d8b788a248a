// The window onto the map: which part of the plane is seen, and how hands and keys move it.

const MARGIN = 1.12; // around all points
const SLACK = 4; // pixels a finger may move and still have tapped

export class View {
  constructor(plane) {
    this.plane = plane;
    this.byHand = false;
    this.pointers = new Map();
    this.changed = () => {}; // the window is another
    this.tapped = () => {}; // somebody pointed at a place
    this.hovered = () => {}; // a pointer is over a place, or has left (null)
    this.around({ left: -1, right: 1, bottom: -1, top: 1 });
    plane.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    plane.addEventListener("pointerdown", (event) => this.down(event));
    plane.addEventListener("pointermove", (event) => this.move(event));
    plane.addEventListener("pointerup", (event) => this.up(event, true));
    plane.addEventListener("pointercancel", (event) => this.up(event, false));
    plane.addEventListener("pointerleave", () => this.hovered(null));
    new ResizeObserver(() => this.changed()).observe(plane);
  }

  get width() {
    return Math.max(this.plane.clientWidth, 1);
  }

  get height() {
    return Math.max(this.plane.clientHeight, 1);
  }

  // Places and pixels. `unit` is how much of the plane a pixel covers.

  pixels(x, y) {
    return [(x - this.x) / this.unit + this.width / 2, (this.y - y) / this.unit + this.height / 2];
  }

  place(left, top) {
    return [this.x + (left - this.width / 2) * this.unit, this.y - (top - this.height / 2) * this.unit];
  }

  sees({ x, y }) {
    const [left, top] = this.pixels(x, y);
    return left > 0 && left < this.width && top > 0 && top < this.height;
  }

  // Where to look.

  around(box) {
    Object.assign(this, this.fitting(box));
  }

  fitting({ left, right, bottom, top }) {
    const unit = MARGIN * Math.max((right - left) / this.width, (top - bottom) / this.height, 1e-9);
    return { x: (left + right) / 2, y: (bottom + top) / 2, unit };
  }

  /** Look at all points, but stay where that is nearly the same: the map shall not move because one point did. */
  follow(box) {
    if (this.byHand) return;
    const wanted = this.fitting(box);
    const apart = Math.hypot(wanted.x - this.x, wanted.y - this.y) / (wanted.unit * this.width);
    const ratio = wanted.unit / this.unit;
    if (apart > 0.06 || ratio > 1.06 || ratio < 0.8) Object.assign(this, wanted);
  }

  all(box) {
    this.byHand = false;
    this.around(box);
    this.changed();
  }

  center({ x, y }) {
    Object.assign(this, { x, y, byHand: true });
    this.changed();
  }

  shift(right, down) {
    this.x += right * this.unit;
    this.y -= down * this.unit;
    this.byHand = true;
    this.changed();
  }

  /** Make everything smaller by a factor; what is at these pixels stays there. */
  zoom(factor, left = this.width / 2, top = this.height / 2) {
    const [x, y] = this.place(left, top);
    this.unit = Math.min(Math.max(this.unit * factor, 1e-6), 1);
    const [nowX, nowY] = this.place(left, top);
    this.x += x - nowX;
    this.y += y - nowY;
    this.byHand = true;
    this.changed();
  }

  // Hands.

  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -60), 60) * 0.004), ...this.at(event));
  }

  down(event) {
    if (event.button !== 0 || event.target.closest("button")) return;
    this.plane.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { at: this.at(event), from: this.at(event), moved: false });
    this.hovered(null);
  }

  move(event) {
    const pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType === "mouse") this.hovered(this.at(event));
      return;
    }
    const [before, now] = [pointer.at, this.at(event)];
    pointer.moved ||= Math.hypot(now[0] - pointer.from[0], now[1] - pointer.from[1]) > SLACK;
    if (!pointer.moved) return;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointer.at = now;
    if (!other) {
      this.shift(before[0] - now[0], before[1] - now[1]);
      return;
    }
    const [old, young] = [before, now].map((at) => Math.hypot(at[0] - other.at[0], at[1] - other.at[1]));
    this.shift((before[0] - now[0]) / 2, (before[1] - now[1]) / 2);
    this.zoom(old / Math.max(young, 1), (now[0] + other.at[0]) / 2, (now[1] + other.at[1]) / 2);
  }

  up(event, meant) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (meant && pointer && !pointer.moved && !this.pointers.size) this.tapped(pointer.at, event.pointerType);
  }

  at(event) {
    const box = this.plane.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

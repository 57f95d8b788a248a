// All points of the map on one canvas. Newcomers are added to the picture at once; whatever else changes has it drawn
// again, as often as the time that takes allows.

import { channels } from "./colors.js";

const OFTEN = 250; // milliseconds between two pictures at least
const SHARE = 5; // and this many times as long as the last one took
const ALPHA = 0.8;
const GOING = 600; // milliseconds on the way from one place to another
const SMOOTH = 20; // milliseconds for a picture beyond which the way is not shown

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Dots {
  constructor(canvas, points, colors, view) {
    this.canvas = canvas;
    this.points = points;
    this.colors = colors;
    this.view = view;
    this.groups = [];
    this.drawn = this.cost = 0;
    this.waiting = this.frame = 0;
    this.done = () => {}; // a picture is finished
  }

  /** Points have changed: draw them soon. */
  refresh(soon = false) {
    if (soon) clearTimeout(this.waiting);
    else if (this.waiting) return;
    const due = soon ? 0 : this.drawn + Math.max(OFTEN, SHARE * this.cost) - performance.now();
    this.waiting = setTimeout(() => this.gather(), Math.max(0, due));
  }

  gather() {
    this.waiting = 0;
    this.view.follow(this.points.box());
    this.groups = this.colors.groups();
    this.draw();
  }

  /** Draw with the next frame: the window has moved. */
  draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  /** Put new points onto the picture as it is. */
  add(slots) {
    const ink = this.canvas.getContext("2d");
    const scale = devicePixelRatio;
    for (const slot of slots) {
      const [left, top] = this.view.pixels(this.points.x[slot], this.points.y[slot]);
      ink.globalAlpha = ALPHA;
      ink.fillStyle = this.colors.color(slot);
      ink.beginPath();
      ink.arc(left * scale, top * scale, this.radius * scale, 0, 2 * Math.PI);
      ink.fill();
    }
  }

  paint() {
    const began = performance.now();
    this.frame = 0;
    const { canvas, view } = this;
    const way = this.way(began);
    canvas.width = Math.round(view.width * devicePixelRatio);
    canvas.height = Math.round(view.height * devicePixelRatio);
    const ink = canvas.getContext("2d");
    const image = ink.createImageData(canvas.width, canvas.height);
    const stamp = disc(this.radius * devicePixelRatio, canvas.width);
    for (const group of this.groups) this.stampAll(group, image, stamp, way);
    ink.putImageData(image, 0, 0);
    this.drawn = performance.now();
    this.cost = this.drawn - began;
    if (way < 1) this.draw();
    this.done();
  }

  /** Put the points of one color onto an image, pixel by pixel: many times as fast as shapes. */
  stampAll({ color, slots }, { data, width, height }, { size, offsets, covers }, way) {
    const [red, green, blue] = channels(color);
    const { x, y, fromX, fromY } = this.points;
    const scale = devicePixelRatio / this.view.unit;
    const left = width / 2 - this.view.x * scale - size / 2;
    const top = height / 2 + this.view.y * scale - size / 2;
    for (const slot of slots) {
      const going = way < 1 && slot < fromX.length;
      const column = Math.round(left + scale * (going ? fromX[slot] + way * (x[slot] - fromX[slot]) : x[slot]));
      const row = Math.round(top - scale * (going ? fromY[slot] + way * (y[slot] - fromY[slot]) : y[slot]));
      if (!(column >= 0 && row >= 0 && column + size <= width && row + size <= height)) continue;
      const corner = 4 * (row * width + column);
      for (let i = 0; i < offsets.length; i++) {
        const at = corner + offsets[i];
        const cover = covers[i];
        const under = data[at + 3] ? cover : 1; // nothing shines through where there is nothing
        data[at] += (red - data[at]) * under;
        data[at + 1] += (green - data[at + 1]) * under;
        data[at + 2] += (blue - data[at + 2]) * under;
        data[at + 3] = Math.max(data[at + 3], 255 * cover);
      }
    }
  }

  /** How much of the way to their new places the points have gone: slowly away, slowly there. */
  way(now) {
    const share = Math.min(1, (now - this.points.left) / GOING);
    return calm.matches || this.cost > SMOOTH ? 1 : share * share * (3 - 2 * share);
  }

  get radius() {
    const { size } = this.points;
    return size > 30000 ? 1.5 : size > 10000 ? 1.9 : size > 2500 ? 2.4 : 3;
  }
}

/** The pixels of a disc: where they lie in an image of this width, counted in bytes, and how much of each is covered. */
function disc(radius, width) {
  const size = Math.ceil(2 * radius) + 1;
  const offsets = [];
  const covers = [];
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const inside = radius + 0.5 - Math.hypot(column + 0.5 - size / 2, row + 0.5 - size / 2);
      if (inside <= 0) continue;
      offsets.push(4 * (row * width + column));
      covers.push(ALPHA * Math.min(1, inside));
    }
  }
  return { size, offsets, covers };
}

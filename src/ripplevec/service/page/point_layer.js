// Canvas layer with all points. Added points are painted onto the current image immediately; any other change repaints
// the image, at a rate that depends on how long painting takes.

import { parseColor } from "./colors.js";

const MIN_INTERVAL = 250; // milliseconds between two repaints at least
const INTERVAL_FACTOR = 5; // and at least this many times the duration of the last one
const ALPHA = 0.8;
const TRANSITION = 600; // milliseconds of the animation to new positions
const MAX_ANIMATED_DURATION = 20; // milliseconds of a repaint beyond which moves are not animated

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class PointLayer {
  constructor(canvas, points, colors, viewport) {
    this.canvas = canvas;
    this.points = points;
    this.colors = colors;
    this.viewport = viewport;
    this.groups = [];
    this.paintedAt = this.duration = 0;
    this.timer = this.frame = 0;
    this.onPaint = () => {}; // called when the image is complete
  }

  /** Schedule a repaint after the points have changed. */
  refresh(immediately = false) {
    if (immediately) clearTimeout(this.timer);
    else if (this.timer) return;
    const interval = Math.max(MIN_INTERVAL, INTERVAL_FACTOR * this.duration);
    const delay = immediately ? 0 : this.paintedAt + interval - performance.now();
    this.timer = setTimeout(() => this.regroup(), Math.max(0, delay));
  }

  /** Fit the viewport to the points, group them by color, and repaint. */
  regroup() {
    this.timer = 0;
    this.viewport.follow(this.points.boundingBox());
    this.groups = this.colors.groups();
    this.requestPaint();
  }

  /** Repaint with the next frame, for example after the viewport has moved. */
  requestPaint() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  /** Paint added points onto the current image. */
  add(slots) {
    const context = this.canvas.getContext("2d");
    const scale = devicePixelRatio;
    for (const slot of slots) {
      const [left, top] = this.viewport.toPixels(this.points.x[slot], this.points.y[slot]);
      context.globalAlpha = ALPHA;
      context.fillStyle = this.colors.colorOfSlot(slot);
      context.beginPath();
      context.arc(left * scale, top * scale, this.radius * scale, 0, 2 * Math.PI);
      context.fill();
    }
  }

  paint() {
    const startTime = performance.now();
    this.frame = 0;
    const { canvas, viewport } = this;
    const progress = this.transitionProgress(startTime);
    canvas.width = Math.round(viewport.width * devicePixelRatio);
    canvas.height = Math.round(viewport.height * devicePixelRatio);
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const disc = makeDisc(this.radius * devicePixelRatio, canvas.width);
    for (const group of this.groups) this.paintGroup(group, image, disc, progress);
    context.putImageData(image, 0, 0);
    this.paintedAt = performance.now();
    this.duration = this.paintedAt - startTime;
    if (progress < 1) this.requestPaint();
    this.onPaint();
  }

  /** Paint the points of one color pixel by pixel, which is many times as fast as canvas shapes. */
  paintGroup({ color, slots }, { data, width, height }, { size, offsets, coverage }, progress) {
    const [red, green, blue] = parseColor(color);
    const { x, y, previousX, previousY } = this.points;
    const scaleY = devicePixelRatio / this.viewport.unit;
    const scaleX = scaleY * this.viewport.stretch;
    const left = width / 2 - this.viewport.x * scaleX - size / 2;
    const top = height / 2 + this.viewport.y * scaleY - size / 2;
    for (const slot of slots) {
      const isMoving = progress < 1 && slot < previousX.length;
      const pointX = isMoving ? previousX[slot] + progress * (x[slot] - previousX[slot]) : x[slot];
      const pointY = isMoving ? previousY[slot] + progress * (y[slot] - previousY[slot]) : y[slot];
      const column = Math.round(left + scaleX * pointX);
      const row = Math.round(top - scaleY * pointY);
      if (!(column >= 0 && row >= 0 && column + size <= width && row + size <= height)) continue;
      const corner = 4 * (row * width + column);
      for (let i = 0; i < offsets.length; i++) {
        const at = corner + offsets[i];
        const covered = coverage[i];
        const blend = data[at + 3] ? covered : 1; // an empty pixel takes the color as it is
        data[at] += (red - data[at]) * blend;
        data[at + 1] += (green - data[at + 1]) * blend;
        data[at + 2] += (blue - data[at + 2]) * blend;
        data[at + 3] = Math.max(data[at + 3], 255 * covered);
      }
    }
  }

  /** Return the progress of points to their new positions, from 0 to 1, with ease-in and ease-out. */
  transitionProgress(now) {
    const elapsed = Math.min(1, (now - this.points.transitionStart) / TRANSITION);
    const isSkipped = reducedMotion.matches || this.duration > MAX_ANIMATED_DURATION;
    return isSkipped ? 1 : elapsed * elapsed * (3 - 2 * elapsed);
  }

  get radius() {
    const { size } = this.points;
    return size > 30000 ? 1.5 : size > 10000 ? 1.9 : size > 2500 ? 2.4 : 3;
  }
}

/** Return the pixels of a disc: byte offsets in an image of this width, and how much of each pixel is covered. */
function makeDisc(radius, width) {
  const size = Math.ceil(2 * radius) + 1;
  const offsets = [];
  const coverage = [];
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const inside = radius + 0.5 - Math.hypot(column + 0.5 - size / 2, row + 0.5 - size / 2);
      if (inside <= 0) continue;
      offsets.push(4 * (row * width + column));
      coverage.push(ALPHA * Math.min(1, inside));
    }
  }
  return { size, offsets, coverage };
}

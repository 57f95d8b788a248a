// What moves on the map: newcomers light up, those they touched send out a ring, a chosen vertex shows its edges.
// Drawn on a canvas above the points, so that a frame costs what is moving and not what stands still.

import { style } from "./colors.js";

const LIT = 2000;
const RING = 900;
const MOST = 400; // of each kind at a time: more cannot be seen

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Glow {
  constructor(canvas, points, view) {
    this.canvas = canvas;
    this.points = points;
    this.view = view;
    this.lit = new Map();
    this.rings = new Map();
    this.chosen = null;
    this.cross = false;
    this.frame = 0;
  }

  /** New points shine for a while, moved ones send out a ring; with many, some of them. */
  add({ fresh, moved }) {
    const now = performance.now();
    const arrivals = (slots) => slots.map((slot) => this.points.arrival[slot]);
    keep(this.lit, arrivals(fresh), now);
    if (!calm.matches) keep(this.rings, arrivals(moved), now);
    this.draw();
  }

  /** Show a vertex with those around it, or nothing. */
  choose(around) {
    this.chosen = around;
    this.draw();
  }

  draw() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.paint(now));
  }

  paint(now) {
    this.frame = 0;
    const { canvas } = this;
    const { width, height } = this.view;
    const scale = devicePixelRatio;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const ink = canvas.getContext("2d");
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, width, height);
    const accent = style("accent");
    this.paintRings(ink, now, accent);
    this.paintLit(ink, now, accent);
    if (this.chosen) this.paintChosen(ink, accent);
    if (this.cross) this.paintCross(ink, width, height, accent);
    if (this.lit.size || this.rings.size) {
      if (calm.matches) setTimeout(() => this.draw(), 500);
      else this.draw();
    }
  }

  paintRings(ink, now, accent) {
    ink.strokeStyle = accent;
    ink.lineWidth = 1.6;
    for (const [arrival, share] of going(this.rings, now, RING)) {
      ink.globalAlpha = 0.9 * (1 - share);
      disc(ink, this.at(arrival), 3 + 11 * share);
      ink.stroke();
    }
    ink.globalAlpha = 1;
  }

  paintLit(ink, now, accent) {
    ink.fillStyle = accent;
    for (const [arrival, share] of going(this.lit, now, LIT)) {
      const left = calm.matches ? 0.6 : 1 - share;
      const place = this.at(arrival);
      ink.globalAlpha = 0.34 * left;
      disc(ink, place, 4 + 11 * left);
      ink.fill();
      ink.globalAlpha = 0.35 + 0.65 * left;
      disc(ink, place, 3 + 1.5 * left);
      ink.fill();
    }
    ink.globalAlpha = 1;
  }

  paintChosen(ink, accent) {
    const { chosen } = this;
    if (chosen.x === undefined) return;
    const middle = this.view.pixels(chosen.x, chosen.y);
    ink.strokeStyle = accent;
    ink.lineWidth = 1.2;
    ink.globalAlpha = 0.55;
    ink.beginPath();
    for (const point of chosen.neighbors.filter(placed)) {
      ink.moveTo(...middle);
      ink.lineTo(...this.view.pixels(point.x, point.y));
    }
    ink.stroke();
    ink.globalAlpha = 1;
    ink.strokeStyle = style("ink");
    ink.lineWidth = 1.6;
    for (const point of chosen.nearest.filter(placed)) {
      disc(ink, this.view.pixels(point.x, point.y), 5);
      ink.stroke();
    }
    ink.fillStyle = accent;
    disc(ink, middle, 6.5);
    ink.fill();
    ink.strokeStyle = style("card");
    ink.lineWidth = 2;
    ink.stroke();
  }

  paintCross(ink, width, height, accent) {
    ink.strokeStyle = accent;
    ink.lineWidth = 1.5;
    ink.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      ink.moveTo(width / 2 + 5 * dx, height / 2 + 5 * dy);
      ink.lineTo(width / 2 + 13 * dx, height / 2 + 13 * dy);
    }
    ink.stroke();
  }

  at(arrival) {
    const slot = this.points.slot.get(arrival); // none, and so nowhere, where it has gone
    return this.view.pixels(this.points.x[slot], this.points.y[slot]);
  }
}

function* going(started, now, length) {
  for (const [arrival, since] of started) {
    const share = Math.max(0, now - since) / length;
    if (share < 1) yield [arrival, share];
    else started.delete(arrival);
  }
}

function keep(started, arrivals, now) {
  const step = Math.max(1, Math.ceil(arrivals.length / MOST));
  for (let i = 0; i < arrivals.length; i += step) started.set(arrivals[i], now);
  for (const arrival of started.keys()) {
    if (started.size <= MOST) break;
    started.delete(arrival);
  }
}

function placed(point) {
  return point.x !== undefined;
}

function disc(ink, [x, y], radius) {
  ink.beginPath();
  ink.arc(x, y, radius, 0, 2 * Math.PI);
}

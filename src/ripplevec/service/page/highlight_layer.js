// Canvas layer above the points with everything animated: halos of new vertices, rings of moved ones, and the edges of
// the selected vertex. A separate canvas, so that a frame repaints only these and not all points.

import { cssColor } from "./colors.js";

const HALO_DURATION = 2000; // milliseconds
const RING_DURATION = 900;
const RADIUS = 15; // pixels of the largest halo or ring
const MAX_COVERAGE = 0.06; // of the map by the highlights of a kind; more would hide the colors of the points
const MAX_NEW_SHARE = 0.2; // of the highlights that one update may start, so that they do not come in waves

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

export class HighlightLayer {
  constructor(canvas, points, viewport) {
    this.canvas = canvas;
    this.points = points;
    this.viewport = viewport;
    this.halos = new Map(); // arrival number → start time
    this.rings = new Map();
    this.selected = null;
    this.showCrosshair = false;
    this.frame = 0;
  }

  /** Highlight added points with a halo and moved ones with a ring; if there are many, a part of them. */
  add({ added, moved }) {
    const now = performance.now();
    const arrivals = (slots) => slots.map((slot) => this.points.arrival[slot]);
    startHighlights(this.halos, arrivals(added), now, this.maxHighlights);
    if (!reducedMotion.matches) startHighlights(this.rings, arrivals(moved), now, this.maxHighlights);
    this.requestPaint();
  }

  /** Number of highlights of each kind at a time. */
  get maxHighlights() {
    return Math.ceil((MAX_COVERAGE * this.viewport.width * this.viewport.height) / (Math.PI * RADIUS ** 2));
  }

  /** Show a vertex with its neighbors and nearest vertices, or none (null). */
  select(vertex) {
    this.selected = vertex;
    this.requestPaint();
  }

  requestPaint() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.paint(now));
  }

  paint(now) {
    this.frame = 0;
    const { canvas } = this;
    const { width, height } = this.viewport;
    const scale = devicePixelRatio;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const accent = cssColor("accent");
    this.paintRings(context, now, accent);
    this.paintHalos(context, now, accent);
    if (this.selected) this.paintSelected(context, accent);
    if (this.showCrosshair) this.paintCrosshair(context, width, height, accent);
    if (this.halos.size || this.rings.size) {
      if (reducedMotion.matches) setTimeout(() => this.requestPaint(), 500);
      else this.requestPaint();
    }
  }

  paintRings(context, now, accent) {
    context.strokeStyle = accent;
    context.lineWidth = 1.6;
    for (const [arrival, progress] of activeHighlights(this.rings, now, RING_DURATION)) {
      context.globalAlpha = 0.9 * (1 - progress);
      traceCircle(context, this.pixelsOf(arrival), 3 + (RADIUS - 3) * progress);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  paintHalos(context, now, accent) {
    context.fillStyle = accent;
    for (const [arrival, progress] of activeHighlights(this.halos, now, HALO_DURATION)) {
      const strength = reducedMotion.matches ? 0.6 : 1 - progress;
      const center = this.pixelsOf(arrival);
      context.globalAlpha = 0.34 * strength;
      traceCircle(context, center, RADIUS - 11 * (1 - strength));
      context.fill();
      context.globalAlpha = 0.35 + 0.65 * strength;
      traceCircle(context, center, 3 + 1.5 * strength);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  paintSelected(context, accent) {
    const { selected } = this;
    if (!isPlaced(selected)) return;
    const center = this.viewport.toPixels(selected.x, selected.y);
    context.strokeStyle = accent;
    context.lineWidth = 1.2;
    context.globalAlpha = 0.55;
    context.beginPath();
    for (const neighbor of selected.neighbors.filter(isPlaced)) {
      context.moveTo(...center);
      context.lineTo(...this.viewport.toPixels(neighbor.x, neighbor.y));
    }
    context.stroke();
    context.globalAlpha = 1;
    context.strokeStyle = cssColor("text");
    context.lineWidth = 1.6;
    for (const vertex of selected.nearest.filter(isPlaced)) {
      traceCircle(context, this.viewport.toPixels(vertex.x, vertex.y), 5);
      context.stroke();
    }
    context.fillStyle = accent;
    traceCircle(context, center, 6.5);
    context.fill();
    context.strokeStyle = cssColor("card");
    context.lineWidth = 2;
    context.stroke();
  }

  paintCrosshair(context, width, height, accent) {
    context.strokeStyle = accent;
    context.lineWidth = 1.5;
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(width / 2 + 5 * dx, height / 2 + 5 * dy);
      context.lineTo(width / 2 + 13 * dx, height / 2 + 13 * dy);
    }
    context.stroke();
  }

  pixelsOf(arrival) {
    const slot = this.points.slotByArrival.get(arrival); // undefined, and so NaN pixels, for a removed vertex
    return this.viewport.toPixels(this.points.x[slot], this.points.y[slot]);
  }
}

/** Yield the highlights that are still active with their progress from 0 to 1; delete the others. */
function* activeHighlights(highlights, now, duration) {
  for (const [arrival, startTime] of highlights) {
    const progress = Math.max(0, now - startTime) / duration;
    if (progress < 1) yield [arrival, progress];
    else highlights.delete(arrival);
  }
}

/** Highlight some of the vertices, evenly spaced: as many as the limits of all highlights and of one update allow. */
export function startHighlights(highlights, arrivals, now, limit) {
  const allowed = Math.min(limit - highlights.size, Math.ceil(MAX_NEW_SHARE * limit));
  const step = Math.max(1, arrivals.length / allowed);
  for (let i = 0; allowed > 0 && i < arrivals.length; i += step) highlights.set(arrivals[Math.floor(i)], now);
}

function isPlaced(vertex) {
  return vertex.x !== undefined;
}

function traceCircle(context, [x, y], radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

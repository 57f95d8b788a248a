// All points of the map on one canvas. Newcomers are added to the picture at once; whatever else changes has it drawn
// again, as often as the time that takes allows.

const OFTEN = 250; // milliseconds between two pictures at least
const SHARE = 5; // and this many times as long as the last one took
const ALPHA = 0.8;
const GOING = 600; // milliseconds on the way from one place to another
const SMOOTH = 20; // milliseconds for a picture beyond which the way is not shown

const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Dots {
  constructor(canvas, points, colours, view) {
    this.canvas = canvas;
    this.points = points;
    this.colours = colours;
    this.view = view;
    this.groups = [];
    this.stamps = new Map();
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
    this.groups = this.colours.groups();
    this.draw();
  }

  /** Draw with the next frame: the window has moved. */
  draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  /** Put new points onto the picture as it is. */
  add(slots) {
    const ink = this.canvas.getContext("2d");
    for (const slot of slots) this.stamp(ink, slot, this.colours.colour(slot), 1);
  }

  paint() {
    const began = performance.now();
    this.frame = 0;
    const { canvas, view } = this;
    const scale = devicePixelRatio;
    canvas.width = Math.round(view.width * scale); // which also empties it
    canvas.height = Math.round(view.height * scale);
    const ink = canvas.getContext("2d");
    const way = this.way(began);
    for (const { colour, slots } of this.groups) {
      for (const slot of slots) this.stamp(ink, slot, colour, way);
    }
    this.drawn = performance.now();
    this.cost = this.drawn - began;
    if (way < 1) this.draw();
    this.done();
  }

  /** How much of the way to their new places the points have gone: slowly away, slowly there. */
  way(now) {
    const share = Math.min(1, (now - this.points.left) / GOING);
    return calm.matches || this.cost > SMOOTH ? 1 : share * share * (3 - 2 * share);
  }

  stamp(ink, slot, colour, way) {
    const scale = devicePixelRatio;
    const image = this.image(colour, scale);
    let x = this.points.x[slot];
    let y = this.points.y[slot];
    if (way < 1 && slot < this.points.fromX.length) {
      x -= (1 - way) * (x - this.points.fromX[slot]);
      y -= (1 - way) * (y - this.points.fromY[slot]);
    }
    const [left, top] = this.view.pixels(x, y);
    if (left < -9 || top < -9 || left > this.view.width + 9 || top > this.view.height + 9) return;
    ink.drawImage(image, Math.round(left * scale - image.width / 2), Math.round(top * scale - image.height / 2));
  }

  /** A disc of one colour, drawn once. */
  image(colour, scale) {
    const radius = this.radius * scale;
    const key = `${colour} ${radius}`;
    let image = this.stamps.get(key);
    if (!image) {
      const size = Math.ceil(2 * radius) + 2;
      image = Object.assign(document.createElement("canvas"), { width: size, height: size });
      const ink = image.getContext("2d");
      ink.globalAlpha = ALPHA;
      ink.fillStyle = colour;
      ink.beginPath();
      ink.arc(size / 2, size / 2, radius, 0, 2 * Math.PI);
      ink.fill();
      if (this.stamps.size > 100) this.stamps.clear();
      this.stamps.set(key, image);
    }
    return image;
  }

  get radius() {
    const { size } = this.points;
    return size > 30000 ? 1.5 : size > 10000 ? 1.9 : size > 2500 ? 2.4 : 3;
  }
}

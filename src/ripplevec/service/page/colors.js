// What color a point has: by label, by community, or by age. Points of one color are drawn together.

const PALETTE = [
  "#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2",
  "#6cc5b0", "#9c6b4e", "#ff8ab7", "#97bbf5", "#7d8797",
];
const AGES = 8;
const natural = new Intl.Collator(undefined, { numeric: true });

/** A color of the page's style. */
export function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export class Colors {
  constructor(points) {
    this.points = points;
    this.by = "label";
    this.labels = new Map(); // a label keeps the color that it got first
  }

  /** Groups of points: a name, a color, and the slots in it. */
  groups() {
    const group = { label: this.byLabel, community: this.byCommunity, age: this.byAge }[this.by].call(this);
    for (const slot of this.points.slots()) group.of(slot).slots.push(slot);
    return group.all.filter((one) => one.slots.length || group.fixed);
  }

  /** The color of one more point; it may change when all are gathered again. */
  color(slot) {
    const { label, community } = this.points;
    return this.of({ label: label[slot], community: community[slot] });
  }

  /** The color of a vertex that is perhaps not on the map. */
  of(point) {
    if (this.by === "community") return PALETTE[point.community] ?? style("none");
    if (this.by === "label") return PALETTE[this.labels.get(point.label)] ?? style("none");
    return style("accent");
  }

  byCommunity() {
    const all = PALETTE.map((color, number) => made(`community ${number + 1}`, color));
    const none = made("none", style("none"));
    return { all: [...all, none], of: (slot) => all[this.points.community[slot]] ?? none };
  }

  byLabel() {
    const label = this.points.label;
    const found = new Set();
    for (const slot of this.points.slots()) if (label[slot] !== null) found.add(label[slot]);
    for (const name of [...found].filter((name) => !this.labels.has(name)).sort(natural.compare)) {
      if (this.labels.size < PALETTE.length) this.labels.set(name, this.labels.size);
    }
    const names = [...this.labels.keys()];
    const all = names.map((name, number) => made(name, PALETTE[number]));
    const other = made("other labels", style("soft"));
    const none = made("no label", style("none"));
    const of = (slot) => (label[slot] === null ? none : all[this.labels.get(label[slot])] ?? other);
    return { all: [none, other, ...all], of };
  }

  byAge() {
    const arrival = this.points.arrival;
    let [least, most] = [Infinity, 0];
    for (const slot of this.points.slots()) {
      least = Math.min(least, arrival[slot]);
      most = Math.max(most, arrival[slot]);
    }
    const [old, young] = [style("none"), style("accent")];
    const all = Array.from({ length: AGES }, (_, step) => made("", between(old, young, step / (AGES - 1))));
    all[0].name = "oldest";
    all[AGES - 1].name = "newest";
    const width = (most - least + 1) / AGES;
    return { all, of: (slot) => all[Math.floor((arrival[slot] - least) / width)], fixed: true };
  }
}

function made(name, color) {
  return { name, color, slots: [] };
}

/** Red, green and blue of a color written #rrggbb. */
export function channels(color) {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}

function between(one, other, share) {
  const [a, b] = [channels(one), channels(other)];
  const mixed = a.map((value, i) => Math.round(value + (b[i] - value) * share));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

// Color scheme of the points: by label, by community or by age. Points are grouped by color for drawing.

const PALETTE = [
  "#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2",
  "#6cc5b0", "#9c6b4e", "#ff8ab7", "#97bbf5", "#7d8797",
];
const AGE_STEPS = 8;
const collator = new Intl.Collator(undefined, { numeric: true });

/** Return a color variable of the style sheet. */
export function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export class ColorScheme {
  constructor(points) {
    this.points = points;
    this.mode = "community"; // or "label", "age"
    this.isChosen = false; // whether the user has chosen the mode
    this.colorIndexByLabel = new Map(); // a label keeps the color that it got first
  }

  /** Group all points by color; each group has a name, a color and the slots of its points. */
  groups() {
    const makeGrouping = { label: this.groupByLabel, community: this.groupByCommunity, age: this.groupByAge }[this.mode];
    const grouping = makeGrouping.call(this);
    for (const slot of this.points.slots()) grouping.groupOf(slot).slots.push(slot);
    return grouping.groups.filter((group) => group.slots.length || grouping.keepEmpty);
  }

  /** Return the color of one added point; it may change when all points are grouped again. */
  colorOfSlot(slot) {
    const { label, community } = this.points;
    return this.colorOf({ label: label[slot], community: community[slot] });
  }

  /** Return the color of a vertex, whether or not it is on the map. */
  colorOf(vertex) {
    if (this.mode === "community") return PALETTE[vertex.community] ?? cssColor("none");
    if (this.mode === "label") return PALETTE[this.colorIndexByLabel.get(vertex.label)] ?? cssColor("none");
    return cssColor("accent");
  }

  groupByCommunity() {
    const groups = PALETTE.map((color, number) => makeGroup(`community ${number + 1}`, color));
    const none = makeGroup("none", cssColor("none"));
    return { groups: [...groups, none], groupOf: (slot) => groups[this.points.community[slot]] ?? none };
  }

  groupByLabel() {
    const label = this.points.label;
    const indexByLabel = this.colorIndexByLabel;
    const labels = new Set();
    for (const slot of this.points.slots()) if (label[slot] !== null) labels.add(label[slot]);
    for (const name of [...labels].filter((name) => !indexByLabel.has(name)).sort(collator.compare)) {
      if (indexByLabel.size < PALETTE.length) indexByLabel.set(name, indexByLabel.size);
    }
    const groups = [...indexByLabel.keys()].map((name, number) => makeGroup(name, PALETTE[number]));
    const other = makeGroup("other labels", cssColor("soft"));
    const none = makeGroup("no label", cssColor("none"));
    const groupOf = (slot) => (label[slot] === null ? none : groups[indexByLabel.get(label[slot])] ?? other);
    return { groups: [none, other, ...groups], groupOf };
  }

  groupByAge() {
    const arrival = this.points.arrival;
    let [first, last] = [Infinity, 0];
    for (const slot of this.points.slots()) {
      first = Math.min(first, arrival[slot]);
      last = Math.max(last, arrival[slot]);
    }
    const [oldest, newest] = [cssColor("none"), cssColor("accent")];
    const groups = Array.from({ length: AGE_STEPS }, (_, step) =>
      makeGroup("", interpolate(oldest, newest, step / (AGE_STEPS - 1))),
    );
    groups[0].name = "oldest";
    groups[AGE_STEPS - 1].name = "newest";
    const width = (last - first + 1) / AGE_STEPS;
    return { groups, groupOf: (slot) => groups[Math.floor((arrival[slot] - first) / width)], keepEmpty: true };
  }
}

function makeGroup(name, color) {
  return { name, color, slots: [] };
}

/** Return the red, green and blue channels of a color written as #rrggbb. */
export function parseColor(color) {
  return [1, 3, 5].map((start) => parseInt(color.slice(start, start + 2), 16));
}

function interpolate(from, to, fraction) {
  const [start, end] = [parseColor(from), parseColor(to)];
  const mixed = start.map((value, i) => Math.round(value + (end[i] - value) * fraction));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

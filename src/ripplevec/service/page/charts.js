// Charts of the last two minutes as SVG: arrivals, write latency, ripples (changes per arrival) and drift.

const SECONDS = 120;
const MARGIN = { left: 34, right: 12, top: 9, bottom: 18 }; // pixels
const MARK = 4; // pixels, half the width of the mark of a peak that is cut off
const integerFormat = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const shortFormat = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

// For each chart: the value of each line in a second, and the text of these values. A second without a value is null:
// nothing was measured in it, and the line has a gap.
const CHARTS = {
  arrivals: {
    lines: [(second, isRecorded) => second?.arrivals ?? (isRecorded ? 0 : null)],
    format: ([value]) => integerFormat.format(value),
  },
  latency: {
    lines: [(second) => second?.p50 ?? null, (second) => second?.p99 ?? null],
    format: (milliseconds) => formatDurations(milliseconds),
  },
  ripples: {
    lines: [(second) => second?.ripples ?? null],
    format: ([value]) => shortFormat.format(value),
  },
  drift: {
    lines: [(second) => second?.drift ?? null],
    format: ([value]) => `${shortFormat.format(value)}°`,
  },
};

/** Return durations in milliseconds, or in seconds if one has four digits, which a narrow card would cut off. */
function formatDurations(milliseconds) {
  const [divisor, unit] = Math.max(...milliseconds) < 1000 ? [1, "ms"] : [1000, "s"];
  return `${milliseconds.map((value) => shortFormat.format(value / divisor)).join(" · ")} ${unit}`;
}

export class Charts {
  constructor(root) {
    this.root = root;
    this.latest = null;
    this.charts = Object.entries(CHARTS).map(([name, chart]) => new Chart(root.querySelector(`#${name}`), chart));
    new ResizeObserver(() => this.latest && this.draw(this.latest)).observe(root.querySelector("#arrivals > div"));
  }

  /** Draw the statistics of the last seconds; the current second is incomplete and omitted. */
  draw(stats) {
    this.latest = stats;
    const seconds = new Map(stats.seconds.map((second) => [second.second, second]));
    const firstSecond = stats.seconds[0]?.second ?? stats.now;
    const numbers = Array.from({ length: SECONDS - 1 }, (_, i) => stats.now + i - SECONDS + 1);
    for (const chart of this.charts) {
      chart.draw(chart.lines.map((line) => numbers.map((number) => line(seconds.get(number), number >= firstSecond))));
    }
    const caption = stats.since_anchor ? "Drift since last anchor" : "Drift since first view";
    this.root.querySelector("#drift figcaption span").textContent = caption;
  }
}

/** A line chart of one value per second, or of two. */
class Chart {
  constructor(figure, { lines, format }) {
    this.figure = figure;
    this.container = figure.querySelector("div");
    this.output = figure.querySelector("output");
    this.lines = lines;
    this.format = format;
    this.values = [];
    this.pointer = null; // index of the second under the mouse
    this.container.addEventListener("pointermove", (event) => this.point(event));
    this.container.addEventListener("pointerleave", () => this.point(null));
  }

  draw(values) {
    this.values = values;
    this.maximum = scaleMaximum(values);
    const { clientWidth: width, clientHeight: height } = this.container;
    const svg = createSvg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    svg.append(...this.axes(width, height));
    if (values.length === 1) svg.append(createSvg("path", { class: "area", d: this.areaPath(values[0]) }));
    values.forEach((line, i) => svg.append(createSvg("path", { class: `line line-${i + 1}`, d: this.linePath(line) })));
    svg.append(...this.peakMarks());
    if (this.pointer !== null) {
      const x = this.x(this.pointer);
      svg.append(createSvg("path", { class: "pointer", d: `M${x},${MARGIN.top}V${height - MARGIN.bottom}` }));
    }
    this.container.replaceChildren(svg);
    this.output.textContent = this.describe();
  }

  /** Show the values of the second under the mouse, or those of the latest second. */
  point(event) {
    const left = event && event.clientX - this.container.getBoundingClientRect().left;
    const index = event && Math.round(((left - MARGIN.left) / this.plotWidth) * SECONDS);
    this.pointer = event && index >= 0 && index < SECONDS - 1 ? index : null;
    if (this.values.length) this.draw(this.values);
  }

  describe() {
    const last = this.values[0].length - 1;
    for (let i = this.pointer ?? last; i >= 0; i--) {
      const column = this.values.map((line) => line[i]);
      if (!column.includes(null)) return this.format(column);
      if (this.pointer !== null) break;
    }
    return "–";
  }

  // Positions in pixels.

  get plotWidth() {
    return Math.max(this.container.clientWidth - MARGIN.left - MARGIN.right, 1);
  }

  x(index) {
    return round(MARGIN.left + (index / SECONDS) * this.plotWidth);
  }

  y(value) {
    const plotHeight = this.container.clientHeight - MARGIN.top - MARGIN.bottom;
    return round(MARGIN.top + plotHeight * (1 - Math.min(value / this.maximum, 1)));
  }

  // Parts of the picture.

  axes(width, height) {
    const step = niceStep(this.maximum);
    const parts = [];
    for (let tick = 0; tick <= this.maximum; tick += step) {
      const y = this.y(tick);
      parts.push(createSvg("path", { class: "grid", d: `M${MARGIN.left},${y}H${width - MARGIN.right}` }));
      const label = createSvg("text", { x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" });
      label.textContent = shortFormat.format(tick);
      parts.push(label);
    }
    for (const [index, text, anchor] of [[SECONDS / 2, "−1 min", "middle"], [SECONDS, "now", "end"]]) {
      const label = createSvg("text", { x: this.x(index), y: height - 3, "text-anchor": anchor });
      label.textContent = text;
      parts.push(label);
    }
    return parts;
  }

  linePath(line) {
    // A run of one second becomes a line of no length, which its round ends show as a dot.
    return runs(line).map((run) => this.runPath(line, run) + (run.length > 1 ? "" : "h0")).join("");
  }

  areaPath(line) {
    const floor = this.y(0);
    const close = (run) => `L${this.x(run.at(-1))},${floor}L${this.x(run[0])},${floor}Z`;
    return runs(line).map((run) => this.runPath(line, run) + close(run)).join("");
  }

  runPath(line, run) {
    return `M${run.map((i) => `${this.x(i)},${this.y(line[i])}`).join("L")}`;
  }

  /** Return a triangle above each peak that is cut off, with its value as a tooltip. */
  peakMarks() {
    return peaks(this.values, this.maximum).map(({ index, value }) => {
      const x = this.x(index);
      const triangle = `M${x - MARK},${MARGIN.top - 1}h${2 * MARK}L${x},${MARGIN.top - 8}Z`;
      const mark = createSvg("path", { class: "peak", d: triangle });
      const title = createSvg("title");
      title.textContent = `peak: ${shortFormat.format(value)}`;
      mark.append(title);
      return mark;
    });
  }
}

/** Return the indices of consecutive values that are not null, as lists. */
export function runs(line) {
  const found = [];
  line.forEach((value, i) => {
    if (value === null) return;
    if (i && line[i - 1] !== null) found.at(-1).push(i);
    else found.push([i]);
  });
  return found;
}

/** Return where values are above the scale: for each run of such seconds, the second with the highest value. */
export function peaks(values, maximum) {
  const highest = values[0].map((_, i) => Math.max(...values.map((line) => line[i] ?? 0)));
  const above = runs(highest.map((value) => (value > maximum ? value : null)));
  return above.map((run) => {
    const index = run.reduce((best, i) => (highest[i] > highest[best] ? i : best));
    return { index, value: highest[index] };
  });
}

/** Choose the upper end of the scale so that a rare peak does not flatten all other values. */
export function scaleMaximum(values) {
  const sorted = values.flat().filter((value) => value !== null).sort((a, b) => a - b);
  if (!sorted.length) return 1;
  return Math.min(sorted.at(-1) * 1.08, sorted[Math.floor(0.96 * (sorted.length - 1))] * 1.6) || 1;
}

/** Return a round distance between two or three lines of the grid. */
function niceStep(maximum) {
  const power = 10 ** Math.floor(Math.log10(maximum));
  return [5, 2, 1, 0.5].map((factor) => factor * power).find((step) => maximum / step >= 1.6) ?? power / 2;
}

function round(pixels) {
  return Math.round(pixels * 10) / 10;
}

function createSvg(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Charts of the last two minutes: arrivals, write latency, ripples (changes per arrival) and drift.

import { cssColor } from "./colors.js";

const SECONDS = 120;
const integerFormat = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const shortFormat = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

// For each chart: the value of each line in a second, and the text of the latest values.
const CHARTS = {
  arrivals: {
    lines: [(second) => second?.arrivals ?? 0],
    format: ([value]) => integerFormat.format(value),
  },
  latency: {
    lines: [(second) => second?.p50 ?? null, (second) => second?.p99 ?? null],
    format: ([p50, p99]) => `${shortFormat.format(p50)} · ${shortFormat.format(p99)} ms`,
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

export class Charts {
  constructor(root) {
    this.root = root;
    this.latest = null;
    const containers = Object.keys(CHARTS).map((name) => root.querySelector(`#${name} > div`));
    new ResizeObserver(() => this.latest && this.draw(this.latest)).observe(containers[0]);
  }

  /** Draw the statistics of the last seconds; the current second is incomplete and omitted. */
  draw(stats) {
    this.latest = stats;
    const seconds = new Map(stats.seconds.map((second) => [second.second, second]));
    const offsets = Array.from({ length: SECONDS - 1 }, (_, i) => i - SECONDS + 1);
    for (const [name, chart] of Object.entries(CHARTS)) {
      const values = chart.lines.map((line) => offsets.map((offset) => line(seconds.get(stats.now + offset))));
      this.drawChart(name, offsets, values);
      this.root.querySelector(`#${name} output`).textContent = formatLatest(values, chart.format);
    }
    const caption = stats.since_anchor ? "Drift since last anchor" : "Drift since first view";
    this.root.querySelector("#drift figcaption span").textContent = caption;
  }

  drawChart(name, offsets, values) {
    const container = this.root.querySelector(`#${name} > div`);
    const styles = [
      { line: { color: cssColor("accent"), width: 1.8 }, fill: values.length === 1 ? "tozeroy" : "none" },
      { line: { color: cssColor("soft"), width: 1.2, dash: "dot" } },
    ];
    const traces = values.map((y, i) => ({
      x: offsets, y, mode: "lines", hoverinfo: "y", connectgaps: true, ...styles[i],
    }));
    traces[0].fillcolor = `${cssColor("accent")}22`;
    const options = { displayModeBar: false, responsive: false };
    Plotly.react(container, traces, layout(container, scaleMaximum(values)), options);
  }
}

/** Format the values of the latest second that has values. */
function formatLatest(values, format) {
  for (let i = values[0].length - 1; i >= 0; i--) {
    const column = values.map((line) => line[i]);
    if (!column.includes(null)) return format(column);
  }
  return "–";
}

/** Choose the upper end of the scale so that a rare peak does not flatten all other values. */
function scaleMaximum(values) {
  const sorted = values.flat().filter((value) => value !== null).sort((a, b) => a - b);
  if (!sorted.length) return 1;
  return Math.min(sorted.at(-1) * 1.08, sorted[Math.floor(0.96 * (sorted.length - 1))] * 1.6) || 1;
}

function layout(container, maximum) {
  const axis = {
    fixedrange: true,
    zeroline: false,
    gridcolor: cssColor("line"),
    tickfont: { size: 11, color: cssColor("soft") },
    ticklabelposition: "outside",
  };
  return {
    width: container.clientWidth,
    height: container.clientHeight,
    margin: { l: 34, r: 14, t: 6, b: 20 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    font: { family: getComputedStyle(document.body).fontFamily },
    hovermode: "x",
    xaxis: { ...axis, range: [-SECONDS, 0], showgrid: false, tickvals: [-120, -60, 0], ticktext: ["", "−1 min", "now"] },
    yaxis: { ...axis, range: [0, maximum], nticks: 3 },
  };
}

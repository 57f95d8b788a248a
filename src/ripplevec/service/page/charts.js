// Four small charts of the last two minutes.

import { style } from "./colors.js";

const SECONDS = 120;
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

const CHARTS = {
  arrivals: {
    lines: [(second) => second?.arrivals ?? 0],
    shown: ([value]) => whole.format(value),
  },
  latency: {
    lines: [(second) => second?.p50 ?? null, (second) => second?.p99 ?? null],
    shown: ([p50, p99]) => `${short.format(p50)} · ${short.format(p99)} ms`,
  },
  ripples: {
    lines: [(second) => second?.ripples ?? null],
    shown: ([value]) => short.format(value),
  },
  drift: {
    lines: [(second) => second?.drift ?? null],
    shown: ([value]) => `${short.format(value)}°`,
  },
};

export class Charts {
  constructor(root) {
    this.root = root;
    this.latest = null;
    const places = Object.keys(CHARTS).map((name) => root.querySelector(`#${name} > div`));
    new ResizeObserver(() => this.latest && this.draw(this.latest)).observe(places[0]);
  }

  /** Draw what the service said of the last seconds; the one that is not over is left out. */
  draw(pulse) {
    this.latest = pulse;
    const seconds = new Map(pulse.seconds.map((second) => [second.second, second]));
    const ago = Array.from({ length: SECONDS - 1 }, (_, i) => i - SECONDS + 1);
    for (const [name, chart] of Object.entries(CHARTS)) {
      const values = chart.lines.map((line) => ago.map((second) => line(seconds.get(pulse.now + second))));
      this.line(name, ago, values);
      this.root.querySelector(`#${name} output`).textContent = newest(values, chart.shown);
    }
    const since = pulse.since_anchor ? "Drift since last anchor" : "Drift since first look";
    this.root.querySelector("#drift figcaption span").textContent = since;
  }

  line(name, ago, values) {
    const place = this.root.querySelector(`#${name} > div`);
    const looks = [
      { line: { color: style("accent"), width: 1.8 }, fill: values.length === 1 ? "tozeroy" : "none" },
      { line: { color: style("soft"), width: 1.2, dash: "dot" } },
    ];
    const traces = values.map((y, i) => ({ x: ago, y, mode: "lines", hoverinfo: "y", connectgaps: true, ...looks[i] }));
    traces[0].fillcolor = `${style("accent")}22`;
    Plotly.react(place, traces, layout(place, highest(values)), { displayModeBar: false, responsive: false });
  }
}

/** The latest second that has values, as text. */
function newest(values, shown) {
  for (let i = values[0].length - 1; i >= 0; i--) {
    const column = values.map((line) => line[i]);
    if (!column.includes(null)) return shown(column);
  }
  return "–";
}

/** The end of the scale: a rare high value shall not make all others flat. */
function highest(values) {
  const sorted = values.flat().filter((value) => value !== null).sort((a, b) => a - b);
  if (!sorted.length) return 1;
  return Math.min(sorted.at(-1) * 1.08, sorted[Math.floor(0.96 * (sorted.length - 1))] * 1.6) || 1;
}

function layout(place, high) {
  const axis = {
    fixedrange: true,
    zeroline: false,
    gridcolor: style("line"),
    tickfont: { size: 11, color: style("soft") },
    ticklabelposition: "outside",
  };
  return {
    width: place.clientWidth,
    height: place.clientHeight,
    margin: { l: 34, r: 14, t: 6, b: 20 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    font: { family: getComputedStyle(document.body).fontFamily },
    hovermode: "x",
    xaxis: { ...axis, range: [-SECONDS, 0], showgrid: false, tickvals: [-120, -60, 0], ticktext: ["", "−1 min", "now"] },
    yaxis: { ...axis, range: [0, high], nticks: 3 },
  };
}

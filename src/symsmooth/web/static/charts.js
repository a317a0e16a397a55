// Small plots, drawn as SVG in the page's colours.
import { svg, short } from "./dom.js";

const WIDTH = 300;
const HEIGHT = 96;

/** Two histograms over each other: before and, if there is one, after. */
export function histogram(before, after, [low, high]) {
  const rows = [before, after].filter(Boolean);
  const inner = rows.flatMap((row) => row.slice(1, -1)); // the ends hold all that is cut off
  const top = Math.max(...inner, 1);
  const outline = (row) => {
    const step = WIDTH / row.length;
    const points = row.map((n, i) => `${(i * step).toFixed(1)},${(HEIGHT * (1 - Math.min(n / top, 1))).toFixed(1)}`);
    return `M0,${HEIGHT} L${points.join(" L")} L${WIDTH},${HEIGHT} Z`;
  };
  const paths = rows.map((row, i) => svg("path", { d: outline(row), class: i ? "after" : "before" }));
  const name = `Histogram of the noisy picture${after ? " and of the result" : ""}, from ${short(low)} to ${short(high)}`;
  return figure(name, paths, HEIGHT, [[short(low), short(high)]]);
}

const end = (x) => (Math.abs(x) < 1 ? String(Number(x.toPrecision(2))) : short(x));

/** Lines: the first list is x, the others y from 0 up; three of them have the names of what they are. */
export function lines([x, ...ys], xName, yName, names, relative = false) {
  const [left, right] = [x[0], x.at(-1)];
  const top = 1.15 * Math.max(...ys.flat().filter(Number.isFinite), 1e-12);
  const place = (i, y) => `${(WIDTH * (x[i] - left) / (right - left || 1)).toFixed(1)},${(HEIGHT * (1 - y / top)).toFixed(1)}`;
  const paths = ys.map((y, n) => svg("path", { d: `M${y.map((v, i) => place(i, v ?? 0)).join(" L")}`, class: ys.length === 3 ? `line ${names[n]}` : `line c${n % 3}` }));
  const name = `${yName} against ${xName}: ${short(ys[0][0])} at ${short(left)}, ${short(ys[0].at(-1))} at ${short(right)}`;
  return figure(name, paths, HEIGHT, [[end(left), xName, end(right)]], `${yName}${relative ? "" : `, up to ${short(top / 1.15)}`}${ys.length === 3 ? ` (${names.join(", ")})` : ""}`);
}

function figure(name, shapes, height, [below], above = "") {
  const drawn = svg("svg", { viewBox: `0 -2 ${WIDTH} ${height + 4}`, role: "img", "aria-label": name, preserveAspectRatio: "none" },
    svg("path", { d: `M0,${height} H${WIDTH}`, class: "axis" }), ...shapes);
  const made = document.createElement("div");
  made.className = "chart";
  if (above) made.append(Object.assign(document.createElement("p"), { textContent: above }));
  const marks = document.createElement("p");
  marks.className = "marks";
  marks.append(...below.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  made.append(drawn, marks);
  return made;
}

// Elements without markup in strings: text stays text.

export const $ = (selector, root = document) => root.querySelector(selector);

/** Make an element; attributes may be properties, listeners (onclick) and data or aria names. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && !name.includes("-") && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

export function bytes(n) {
  return n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : `${Math.max(Math.round(n / 1e3), 1)} kB`;
}

export function seconds(s) {
  if (s < 9.95) return `${s.toFixed(1)}\u00a0s`;
  return s < 90 ? `${Math.round(s)}\u00a0s` : `${Math.round(s / 60)}\u00a0min`;
}

/** A number with three digits that count. */
export function short(x) {
  if (x === null || x === undefined) return "";
  return Math.abs(x) >= 1000 ? String(Math.round(x)) : String(Number(x.toPrecision(3)));
}

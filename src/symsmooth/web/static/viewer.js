// Pictures that are looked at together: one zoom and place for all, a divider between two, a box on flat ground.
import { $, clamp, h } from "./dom.js";

const MAX_SHOWN = 2 ** 22; // pixels that the server shows at a time (drawing.py)
const LARGEST = 24; // screen pixels for one of the picture
const STEP = 1.5;

export class Viewer {
  #lenses = [];
  #view = { zoom: 1, x: 0.5, y: 0.5 };
  #split = 50;
  #pointers = new Map();
  #moved = false;
  #marking = null; // called with the box once it is drawn
  #timer = null;

  /** `acts` go through frames: step(by) and play(), false where there are none. */
  constructor(root, onScale, acts) {
    Object.assign(this, { root, onScale, acts });
    this.size = [1, 1];
    this.box = null;
    new ResizeObserver(() => this.#place()).observe(root);
  }

  /** Show pictures of one size: [{label, note, address(box or null)}], in one lens with a divider or each in its own.
   *  Once finished they are first seen at 1:1, where noise is seen. */
  show(key, [width, height], panels, divided, finished) {
    if (key !== this.key) Object.assign(this.#view, { zoom: 1, x: 0.5, y: 0.5 });
    this.key = key;
    this.size = [width, height];
    const wanted = JSON.stringify([key, width, height, divided, panels.length]);
    if (wanted !== this.made) {
      this.made = wanted;
      this.#build(divided ? [panels] : panels.map((panel) => [panel]));
    }
    const count = this.#lenses.length;
    this.root.style.setProperty("--columns", count === 4 ? 2 : Math.min(count, 3));
    this.root.style.setProperty("--ratio", clamp(width / height, 0.4, 3).toFixed(4));
    const layers = this.#lenses.flatMap((lens) => lens.layers);
    panels.forEach((panel, n) => this.#fill(layers[n], panel));
    this.#name();
    this.#place();
    if (finished) this.approach();
  }

  /** Lay a picture over the last one, the right half of a divider. */
  overlay(image) { this.#lenses.at(-1).layers.at(-1).world.append(image); }

  /** Whether the whole is shown with fewer pixels than it has. */
  get isLarge() { return this.size[0] * this.size[1] > MAX_SHOWN; }

  /** Go to 1:1, once for each picture. */
  approach() {
    if (this.seen === this.key) return;
    this.seen = this.key;
    if (this.#view.zoom === 1) this.full();
  }

  #build(groups) {
    this.#lenses = groups.map((group) => {
      const layers = group.map((_, n) => {
        const base = h("img", { class: "base", draggable: "false", alt: "" });
        const detail = h("img", { class: "detail", draggable: "false", alt: "", hidden: true });
        const world = h("div", { class: "world" }, base, detail);
        const tag = h("span", { class: `tag ${n ? "right" : "left"}` });
        base.addEventListener("load", () => this.root.classList.remove("loading"));
        return { base, detail, world, tag, clip: h("div", { class: "clip" }, world) };
      });
      const box = h("div", { class: "box", hidden: true });
      const frame = h("div", { class: "lens", tabindex: "0", role: "group" },
        ...layers.toReversed().map((layer) => layer.clip), box, ...layers.map((layer) => layer.tag));
      const lens = { frame, layers, box, divider: null };
      if (layers.length > 1) frame.append(lens.divider = this.#divider(lens));
      this.#listen(frame);
      return lens;
    });
    this.root.replaceChildren(...this.#lenses.map((lens) => lens.frame));
  }

  #fill(layer, panel) {
    const address = panel.address(null);
    if (layer.address !== address) {
      if (layer.address === undefined) this.root.classList.add("loading");
      layer.address = address;
      layer.base.src = address;
      layer.detail.hidden = true;
      layer.detailed = null;
    }
    layer.panel = panel;
    layer.base.alt = panel.label;
    layer.tag.textContent = panel.note ? `${panel.label} · ${panel.note}` : panel.label;
  }

  #name() {
    for (const { frame, layers } of this.#lenses) {
      const names = layers.map((layer) => layer.panel.label).join(" and ");
      frame.setAttribute("aria-label", `${names}; plus and minus zoom, arrows move, 0 shows all`);
    }
  }

  // --- what is visible ----------------------------------------------------------------------

  get #frame() {
    const box = this.#lenses[0]?.frame.getBoundingClientRect();
    return box ? [box.width, box.height] : [1, 1];
  }

  get #fit() {
    const [width, height] = this.#frame;
    return Math.min(width / this.size[0], height / this.size[1]);
  }

  get scale() { return this.#fit * this.#view.zoom; }

  #offset(scale) {
    return [0, 1].map((axis) => {
      const [room, whole] = [this.#frame[axis], this.size[axis] * scale];
      const middle = axis ? this.#view.y : this.#view.x;
      return whole <= room ? (room - whole) / 2 : clamp(room / 2 - middle * whole, room - whole, 0);
    });
  }

  #place() {
    if (!this.#lenses.length) return;
    const scale = this.scale;
    const [left, top] = this.#offset(scale);
    // keep the place inside, so that moving back begins at once
    const [width, height] = this.#frame;
    this.#view.x = clamp((width / 2 - left) / (this.size[0] * scale), 0, 1);
    this.#view.y = clamp((height / 2 - top) / (this.size[1] * scale), 0, 1);
    const coarse = scale * devicePixelRatio >= 1.5;
    this.root.classList.toggle("zoomed", this.#view.zoom > 1);
    for (const { frame, layers, box, divider } of this.#lenses) {
      frame.classList.toggle("pixels", coarse);
      for (const { world } of layers) {
        world.style.width = `${this.size[0]}px`;
        world.style.height = `${this.size[1]}px`;
        world.style.transform = `translate(${left}px, ${top}px) scale(${scale})`;
      }
      if (divider) {
        layers[0].clip.style.clipPath = `inset(0 ${100 - this.#split}% 0 0)`;
        divider.style.left = `${this.#split}%`;
        divider.setAttribute("aria-valuenow", Math.round(this.#split));
      }
      box.hidden = !this.box;
      if (this.box) {
        const [x, y, w, hh] = this.box;
        Object.assign(box.style, { left: `${left + x * scale}px`, top: `${top + y * scale}px`, width: `${w * scale}px`, height: `${hh * scale}px` });
      }
    }
    this.onScale(scale * devicePixelRatio);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#sharpen(), 200);
  }

  /** x, y, width and height of what is visible, in pixels of the picture. */
  get visible() {
    const scale = this.scale;
    const [left, top] = this.#offset(scale);
    const [width, height] = this.#frame;
    const x = clamp(Math.floor(-left / scale), 0, this.size[0] - 1);
    const y = clamp(Math.floor(-top / scale), 0, this.size[1] - 1);
    return [x, y, clamp(Math.ceil(width / scale) + 1, 1, this.size[0] - x), clamp(Math.ceil(height / scale) + 1, 1, this.size[1] - y)];
  }

  /** Ask for what is visible in full where the whole is shown with fewer pixels than it has. */
  #sharpen() {
    const factor = Math.ceil(Math.sqrt((this.size[0] * this.size[1]) / MAX_SHOWN));
    const wanted = factor > 1 && this.scale * devicePixelRatio > 1 / factor ? this.visible : null;
    for (const layer of this.#lenses.flatMap((lens) => lens.layers)) {
      if (!wanted) { layer.detail.hidden = true; layer.detailed = null; continue; }
      const key = wanted.join(".");
      if (layer.detailed === key) continue;
      layer.detailed = key;
      const image = new Image();
      image.onload = () => {
        if (layer.detailed !== key) return;
        layer.detail.src = image.src;
        const [x, y, w, hh] = wanted;
        Object.assign(layer.detail.style, { left: `${x}px`, top: `${y}px`, width: `${w}px`, height: `${hh}px` });
        layer.detail.hidden = false;
      };
      image.src = layer.panel.address(wanted);
    }
  }

  zoomTo(zoom, u = 0.5, v = 0.5) {
    const [width, height] = this.#frame;
    const before = this.scale;
    const [left, top] = this.#offset(before);
    const mark = [(u * width - left) / before, (v * height - top) / before]; // stays where it is
    this.#view.zoom = clamp(zoom, 1, Math.max(LARGEST / this.#fit, 1));
    const after = this.scale;
    this.#view.x = (mark[0] - (u - 0.5) * width / after) / this.size[0];
    this.#view.y = (mark[1] - (v - 0.5) * height / after) / this.size[1];
    this.#place();
  }

  zoomBy(factor, u, v) { this.zoomTo(this.#view.zoom * factor, u, v); }
  fit() { this.zoomTo(1); }
  full() { this.zoomTo(1 / devicePixelRatio / this.#fit); }

  moveBy(dx, dy) { // in parts of the frame
    const [width, height] = this.#frame;
    this.#view.x -= (dx * width) / (this.size[0] * this.scale);
    this.#view.y -= (dy * height) / (this.size[1] * this.scale);
    this.#place();
  }

  // --- divider ------------------------------------------------------------------------------

  #divider(lens) {
    const divider = h("div", { class: "divider", role: "slider", tabindex: "0", "aria-label": "Divider", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "50" });
    const set = (value) => { this.#split = clamp(value, 0, 100); this.#place(); };
    divider.addEventListener("pointerdown", (event) => {
      event.stopPropagation(); // the picture below does not move
      event.preventDefault(); // nor is anything selected
      divider.setPointerCapture(event.pointerId);
      divider.focus({ preventScroll: true, focusVisible: false }); // arrows go on from here
    });
    divider.addEventListener("pointermove", (event) => {
      if (!divider.hasPointerCapture(event.pointerId)) return;
      const box = lens.frame.getBoundingClientRect();
      set((100 * (event.clientX - box.left)) / box.width);
    });
    divider.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -2, ArrowDown: -2, ArrowRight: 2, ArrowUp: 2, PageDown: -10, PageUp: 10, Home: -100, End: 100 };
      if (!(event.key in steps)) return;
      set(this.#split + steps[event.key]);
      event.preventDefault();
      event.stopPropagation();
    });
    return divider;
  }

  // --- a box on flat ground -----------------------------------------------------------------

  /** Let the next drag draw a box; `done` is called with [x, y, width, height]. */
  mark(done) {
    this.#marking = done;
    this.root.classList.toggle("marking", Boolean(done));
  }

  setBox(box) {
    this.box = box;
    this.#place();
  }

  #pixel([u, v]) {
    const [width, height] = this.#frame;
    const [left, top] = this.#offset(this.scale);
    return [clamp(Math.round((u * width - left) / this.scale), 0, this.size[0]), clamp(Math.round((v * height - top) / this.scale), 0, this.size[1])];
  }

  // --- mouse, fingers, keys -----------------------------------------------------------------

  #listen(frame) {
    const place = (event) => {
      const box = frame.getBoundingClientRect();
      return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    };
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && matchMedia("(max-width: 60rem)").matches) return; // there the page scrolls
      this.zoomBy(Math.exp(-clamp(event.deltaY, -80, 80) / 300), ...place(event));
      event.preventDefault();
    }, { passive: false });
    frame.addEventListener("dblclick", (event) => { this.#view.zoom > 1 ? this.fit() : this.zoomTo(3, ...place(event)); });
    frame.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const at = place(event);
      this.#pointers.set(event.pointerId, at);
      this.#moved = false;
      this.start = this.#marking ? this.#pixel(at) : null;
      if (this.#marking || this.#view.zoom > 1 || this.#pointers.size > 1) frame.setPointerCapture(event.pointerId);
      if (this.#marking) event.preventDefault();
    });
    frame.addEventListener("pointermove", (event) => {
      const before = this.#pointers.get(event.pointerId);
      if (!before) return;
      const now = place(event);
      if (this.#marking && this.start) this.#drawBox(this.#pixel(now));
      else if (this.#pointers.size === 2) this.#pinch(event.pointerId, before, now);
      else if (this.#view.zoom > 1) this.moveBy(now[0] - before[0], now[1] - before[1]);
      this.#pointers.set(event.pointerId, now);
      this.#moved = true;
    });
    const end = (event) => {
      this.#pointers.delete(event.pointerId);
      if (event.type === "pointerup" && this.#marking && this.start && this.box) this.#marking(this.box);
      this.start = null;
    };
    frame.addEventListener("pointerup", end);
    frame.addEventListener("pointercancel", end);
    const keys = {
      "+": () => this.zoomBy(STEP), "=": () => this.zoomBy(STEP), "-": () => this.zoomBy(1 / STEP), 0: () => this.fit(), 1: () => this.full(),
      ArrowLeft: () => this.moveBy(0.15, 0), ArrowRight: () => this.moveBy(-0.15, 0), ArrowUp: () => this.moveBy(0, 0.15), ArrowDown: () => this.moveBy(0, -0.15),
    };
    const steps = { ",": -1, ".": 1 };
    frame.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey || event.target !== frame) return;
      const step = steps[event.key] ?? (this.#view.zoom === 1 ? { ArrowLeft: -1, ArrowRight: 1 }[event.key] : undefined);
      if (step !== undefined || event.key === " ") {
        if (step === undefined ? this.acts.play() : this.acts.step(step)) event.preventDefault();
        return;
      }
      if (!act || (event.key.startsWith("Arrow") && this.#view.zoom === 1)) return;
      act();
      event.preventDefault();
    });
  }

  #drawBox([x, y]) {
    const [left, top] = [Math.min(x, this.start[0]), Math.min(y, this.start[1])];
    this.setBox([left, top, Math.abs(x - this.start[0]), Math.abs(y - this.start[1])]);
  }

  #pinch(moving, before, now) {
    const other = [...this.#pointers].find(([id]) => id !== moving)[1];
    const apart = (a, b) => Math.hypot((a[0] - b[0]) * this.#frame[0], (a[1] - b[1]) * this.#frame[1]);
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    this.zoomBy(apart(now, other) / Math.max(apart(before, other), 1), ...middle);
    this.moveBy((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  }
}

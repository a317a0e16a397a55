// The place in a stack: a slider for each axis, and a player that runs along time, or else the first of them.
import { h } from "./dom.js";

const RATE = 8; // frames a second where the file does not say so
const AHEAD = 4; // frames that are asked for before it is their time
const SOON = 60; // milliseconds in which a slider that is dragged moves on

export class Slices {
  #at = [];
  #others = [];
  #turn = 0; // counts plays, so that an old one ends

  /** `moved(at)` shows another place; `load(at)` returns promises of its pictures. */
  constructor(root, { moved, load }) {
    Object.assign(this, { root, moved, load, playing: false });
  }

  /** Show where we are; what is fixed cannot be moved. */
  show(key, { others, rate }, at, fixed) {
    const long = others.map((axis, n) => ({ ...axis, n })).filter((axis) => axis.size > 1);
    this.#at = at;
    this.#others = others;
    this.rate = rate ?? RATE;
    this.axis = fixed ? undefined : (long.find((axis) => axis.letter === "T") ?? long[0])?.n;
    const made = JSON.stringify([key, long, fixed]);
    if (this.made !== made) {
      this.made = made;
      this.pause();
      this.root.replaceChildren(...long.map((axis) => this.#row(axis, fixed)));
    }
    for (const input of this.root.querySelectorAll("input")) {
      const n = Number(input.dataset.axis);
      if (this.playing || document.activeElement !== input) input.value = at[n] ?? 0;
      input.nextElementSibling.value = `${(at[n] ?? 0) + 1} of ${others[n].size}`;
    }
  }

  #row({ letter, name, size, n }, fixed) {
    const readout = h("output", {});
    const frames = letter === "T" ? "frames" : "slices";
    const input = h("input", { type: "range", min: "0", max: String(size - 1), step: "1", disabled: fixed, "aria-label": `${name}, ${size} ${frames}`, oninput: () => {
      this.pause();
      readout.value = `${Number(input.value) + 1} of ${size}`;
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.#go(n, Number(input.value)), SOON);
    } });
    input.dataset.axis = n;
    const play = n === this.axis ? h("button", { type: "button", id: "play", "aria-pressed": "false", title: "Play and pause (space); one frame back and on: comma, full stop", onclick: () => this.toggle() }, "Play") : null;
    return h("div", { class: "slice" }, h("span", { "aria-hidden": "true" }, name), input, readout, play);
  }

  #go(n, place) {
    const at = [...this.#at];
    at[n] = place;
    this.moved(at);
  }

  /** Go on by some frames; false where there is nowhere to go. */
  step(by) {
    if (this.axis === undefined) return false;
    this.pause();
    const { size } = this.#others[this.axis];
    this.#go(this.axis, ((this.#at[this.axis] ?? 0) + by + size) % size);
    return true;
  }

  toggle() {
    if (this.axis === undefined) return false;
    if (this.playing) this.pause();
    else this.#play();
    return true;
  }

  pause() { this.#reflect(false); }

  #reflect(playing) {
    const was = this.playing;
    this.playing = playing;
    this.#turn += 1;
    const button = this.root.querySelector("#play");
    if (button) {
      button.textContent = playing ? "Pause" : "Play";
      button.setAttribute("aria-pressed", String(playing));
    }
    for (const output of this.root.querySelectorAll("output")) output.setAttribute("aria-live", playing ? "off" : "polite");
    if (was && !playing) this.moved(this.#at); // all that was left out while it played
  }

  /** Each frame is shown once its pictures are there, but not sooner than its time; the next are on their way. */
  async #play() {
    this.#reflect(true);
    const turn = this.#turn;
    const queue = [];
    while (turn === this.#turn) {
      while (queue.length < AHEAD) queue.push(this.#frame(queue.at(-1)?.at ?? this.#at));
      const { at, pictures } = queue.shift();
      const time = new Promise((resolve) => setTimeout(resolve, 1000 / this.rate));
      this.held = await pictures; // until they are shown
      await time;
      if (turn !== this.#turn) return;
      if (!this.held) return this.pause(); // one did not come
      this.moved(at);
    }
  }

  /** The frame after a place, and a promise of its pictures. */
  #frame(before) {
    const at = [...before];
    at[this.axis] = ((at[this.axis] ?? 0) + 1) % this.#others[this.axis].size;
    return { at, pictures: Promise.all(this.load(at)).catch(() => null) };
  }
}

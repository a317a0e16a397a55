// The settings: what can be chosen for the picture that is shown, and what was found in it.
import { h } from "./dom.js";

const START = { method: "denoise", quality: "balanced", noise: "auto", level: null, box: null, strength: 1, chroma_strength: null, grain: 0, third: "auto", channels: "auto", model: null };
const SMALLEST = 16; // pixels a side of a box

export class Controls {
  constructor(root, about, acts) {
    this.root = root;
    this.about = about;
    this.acts = acts; // start, compare, mark, changed, clean, model
    this.models = [];
    this.settings = { ...START };
    this.mode = "denoise";
    this.methods = new Set(["denoise", "bm3d"]);
    this.picture = null;
    this.#build();
    this.#reflect();
  }

  // --- building -----------------------------------------------------------------------------

  #build() {
    const parts = this.parts = {};
    parts.found = h("section", { class: "found", "aria-label": "What was found" });
    parts.tabs = this.#choice("mode", "What to do", { denoise: ["Denoise"], compare: ["Compare"] }, (mode) => { this.mode = mode; this.#reflect(); });
    parts.method = h("select", { id: "method", onchange: (event) => this.set({ method: event.target.value }) },
      this.about.methods.map((method) => h("option", { value: method.name }, method.title)));
    parts.methodAbout = h("p", { class: "note", id: "method-note" });
    parts.method.setAttribute("aria-describedby", "method-note");
    parts.one = h("div", { class: "field" }, h("label", { for: "method" }, "Method"), parts.method, parts.methodAbout);
    parts.mosaic = h("p", { class: "note", id: "mosaic" }, "A raw file: its mosaic is denoised before it is developed. The result is a DNG for your raw converter; what you see is developed from it.");
    parts.many = h("fieldset", { id: "methods" }, h("legend", {}, `Methods, ${this.about.compare[0]} to ${this.about.compare[1]}`),
      h("div", { class: "checks" }, this.about.methods.map((method) => h("label", { title: method.about },
        h("input", { type: "checkbox", value: method.name, checked: this.methods.has(method.name), onchange: (event) => this.#pick(event.target) }), method.title))));
    parts.clean = h("div", { class: "field", id: "clean" });
    parts.quality = this.#choice("quality", "Quality", Object.fromEntries(Object.entries(this.about.qualities).map(([name, text]) => [name, [name[0].toUpperCase() + name.slice(1), text]])), (quality) => this.set({ quality }));
    parts.noise = this.#choice("noise", "Kind of noise", this.about.noises, (noise) => this.set({ noise }));
    parts.level = h("input", { id: "level", type: "number", min: "0", step: "any", placeholder: "automatic", onchange: (event) => this.set({ level: event.target.value === "" ? null : Number(event.target.value) }) });
    parts.levelRow = h("div", { class: "field row" }, h("label", { for: "level" }, "Level σ"), parts.level);
    parts.box = this.#boxRow();
    parts.modelNote = h("p", { class: "note" });
    parts.model = h("div", { class: "field", id: "model" }, h("button", { type: "button", onclick: () => this.acts.model() }, "Open noise model"), parts.modelNote);
    parts.strength = this.#slider("strength", "Strength", [0.2, 3], ["keeps more", "removes more"]);
    parts.chroma = this.#slider("chroma_strength", "Colour strength", [0, 3], ["keeps all", "removes more"]);
    parts.grain = this.#slider("grain", "Grain", [0, 1], ["none", "all that was there"]);
    parts.taste = h("details", { id: "taste" }, h("summary", {}, "To taste"), parts.chroma, parts.grain,
      h("button", { type: "button", onclick: () => { this.set({ chroma_strength: null, grain: 0 }); this.acts.changed(); } }, "Reset"));
    parts.third = h("div");
    parts.channels = this.#choice("channels", "Channels", { auto: ["Auto", "Together where they show the same things."], together: ["Together", "All help each other, as the colours of a photograph do."], apart: ["Apart", "Each by itself, as stains that show different things."] }, (channels) => this.set({ channels }));
    parts.start = h("button", { id: "go", class: "primary", type: "button", onclick: () => (this.mode === "compare" && !this.mosaic ? this.acts.compare([...this.methods]) : this.acts.start()) });
    parts.go = h("div", { class: "go" }, parts.start);
    parts.why = h("div", { id: "why" });
    this.root.replaceChildren(parts.found, h("div", { class: "settings" }, parts.tabs, parts.mosaic, parts.one, parts.many, parts.clean, parts.quality, parts.noise, parts.levelRow, parts.box, parts.model,
      parts.strength, parts.taste, parts.third, parts.channels), parts.go, parts.why);
  }

  /** A slider for a setting; null is shown in words, and stands where the strength does. */
  #slider(name, label, [min, max], [low, high]) {
    const id = name.replace("_", "-");
    const readout = h("output", { for: id });
    const input = h("input", { id, type: "range", min: String(min), max: String(max), step: "0.05", oninput: () => { readout.value = Number(input.value).toFixed(2); }, onchange: () => { this.set({ [name]: Number(input.value) }); this.acts.changed(); } });
    const made = h("div", { class: "field" }, h("div", { class: "between" }, h("label", { for: id }, label), readout), input,
      h("div", { class: "between note" }, h("span", {}, low), h("span", {}, high)));
    made.update = () => {
      const value = this.settings[name];
      input.value = value ?? this.settings.strength;
      readout.value = value === null ? "as strength" : value.toFixed(2);
    };
    return made;
  }

  /** Radio buttons that look like one control; {value: [title, about]}. */
  #choice(name, legend, options, chosen) {
    const note = h("p", { class: "note" });
    const made = h("fieldset", { id: name, class: "choice" }, h("legend", {}, legend),
      h("div", { class: "segments" }, Object.entries(options).map(([value, [title]]) => h("label", {},
        h("input", { type: "radio", name, value, onchange: () => { chosen(value); } }), h("span", {}, title)))), note);
    made.update = (value) => {
      for (const input of made.querySelectorAll("input")) input.checked = input.value === value;
      note.textContent = options[value]?.[1] ?? "";
      note.hidden = !note.textContent;
    };
    return made;
  }

  #boxRow() {
    const names = ["x", "y", "width", "height"];
    const inputs = names.map((name) => h("input", { id: `box-${name}`, type: "number", min: "0", step: "1", onchange: () => {
      const box = inputs.map((input) => Math.round(Number(input.value)));
      this.set({ box: inputs.some((input) => input.value === "") ? null : box });
      this.acts.boxed(this.settings.box);
    } }));
    this.boxInputs = inputs;
    this.markButton = h("button", { id: "mark", type: "button", "aria-pressed": "false", onclick: () => this.acts.mark() }, "Mark a part");
    this.boxNote = h("p", { class: "note" });
    return h("div", { class: "field" }, this.markButton, this.boxNote,
      h("div", { class: "numbers" }, names.map((name, n) => h("label", {}, name, inputs[n]))));
  }

  #pick(input) {
    if (input.checked) this.methods.add(input.value);
    else this.methods.delete(input.value);
    this.#reflect();
  }

  // --- settings -----------------------------------------------------------------------------

  set(changed) {
    Object.assign(this.settings, changed);
    const method = this.about.methods.find((each) => each.name === this.settings.method);
    if (!method.noise && !["auto", "white"].includes(this.settings.noise)) this.settings.noise = "auto";
    this.#reflect();
    this.acts.noiseChosen(this.settings.noise);
  }

  marking(on) {
    this.markButton.setAttribute("aria-pressed", String(on));
    this.boxNote.textContent = this.#boxTold();
  }

  #boxTold() {
    const { box } = this.settings;
    if (!box) return `A part without structure, at least ${SMALLEST} pixels a side.`;
    return Math.min(box[2], box[3]) < SMALLEST ? `Too small: it must have at least ${SMALLEST} pixels a side.` : `${box[2]} × ${box[3]} pixels; the larger, the surer.`;
  }

  /** What is sent with a run. */
  get given() {
    const rest = { ...this.settings, third: this.#third };
    if (!(this.picture?.info?.channels > 1)) rest.channels = "auto";
    if (this.mosaic) Object.assign(rest, { method: START.method, noise: this.#noise, chroma_strength: null });
    if (rest.noise !== "file") rest.model = null;
    return rest;
  }

  /** What a stack is taken for; frames of a video are a series only for methods that know of time. */
  get #third() {
    const { info } = this.picture ?? {};
    const possible = info?.thirds ?? [];
    if (info?.rate && !this.#method.time) return "none";
    return possible.includes(this.settings.third) ? this.settings.third : "auto";
  }

  /** The kind of noise: of a raw file that of its sensor, or of a file. */
  get #noise() { return this.mosaic && this.settings.noise !== "file" ? "auto" : this.settings.noise; }

  get #method() { return this.about.methods.find((each) => each.name === this.settings.method); }

  /** Whether the picture has yet to be developed: then there is less to choose. */
  get mosaic() { return Boolean(this.picture?.info?.mosaic); }

  /** Whether the result that is shown is of these settings. */
  get #isDone() {
    const { result } = this.picture ?? {};
    return result?.kind === "denoise" && this.mode === "denoise" && Object.entries(this.given).every(([name, value]) => JSON.stringify(value) === JSON.stringify(result.settings[name]));
  }

  #reflect() {
    const { parts, settings, mosaic } = this;
    const comparing = this.mode === "compare" && !mosaic;
    const method = this.about.methods.find((each) => each.name === (mosaic ? START.method : settings.method));
    const chosen = this.about.methods.filter((each) => (comparing ? this.methods.has(each.name) : each === method));
    parts.tabs.update(this.mode);
    parts.tabs.hidden = mosaic;
    parts.mosaic.hidden = !mosaic;
    parts.one.hidden = comparing || mosaic;
    parts.many.hidden = parts.clean.hidden = !comparing;
    parts.method.value = settings.method;
    parts.methodAbout.textContent = method.about;
    parts.quality.update(settings.quality);
    parts.quality.hidden = !chosen.some((each) => each.quality);
    parts.noise.update(this.#noise);
    const kinds = mosaic ? ["auto", "file"] : chosen.some((each) => each.noise) ? null : ["auto", "white"];
    for (const input of parts.noise.querySelectorAll("input")) input.disabled = Boolean(kinds) && !kinds.includes(input.value);
    parts.model.hidden = settings.noise !== "file";
    const model = this.models.find((each) => each.id === settings.model);
    parts.modelNote.textContent = model ? `${model.name}: ${model.words}` : "A file of Save noise model, or of symsmooth noise --save.";
    parts.levelRow.hidden = mosaic || settings.noise !== "white";
    parts.level.value = settings.level ?? "";
    parts.box.hidden = mosaic || settings.noise !== "box";
    this.boxInputs.forEach((input, n) => { input.value = settings.box?.[n] ?? ""; });
    this.boxNote.textContent = this.#boxTold();
    for (const slider of [parts.strength, parts.chroma, parts.grain]) slider.update();
    parts.taste.hidden = !chosen.some((each) => each.strength);
    parts.chroma.hidden = mosaic || !(this.picture?.info?.channels > 1);
    parts.channels.hidden = !(this.picture?.info?.channels > 1) || mosaic || settings.method !== START.method || comparing;
    parts.channels.update(settings.channels);
    parts.third.hidden = this.mode === "compare";
    parts.thirdChoice?.update(this.#third === "auto" ? this.picture?.info?.thirds[0] : this.#third);
    for (const input of parts.thirdChoice?.querySelectorAll("input") ?? []) input.disabled = input.value === "time" && Boolean(this.picture?.info?.rate) && !this.#method.time;
    const count = this.methods.size;
    parts.start.textContent = comparing ? `Compare ${count} method${count === 1 ? "" : "s"}` : this.#isDone ? "Denoise again" : "Denoise";
    parts.start.classList.toggle("primary", !this.#isDone);
    const [min, max] = this.about.compare;
    parts.start.disabled = !this.picture?.info || (comparing && (count < min || count > max)) || (!mosaic && settings.noise === "box" && !this.#boxIsGood()) || (settings.noise === "file" && !model);
  }

  #boxIsGood() {
    const { box } = this.settings;
    return Boolean(box) && Math.min(box[2], box[3]) >= SMALLEST;
  }

  // --- the picture --------------------------------------------------------------------------

  /** Fit the controls to a picture; settings of its last run are taken over when it is first shown. */
  show(picture, models) {
    this.models = models;
    const fresh = picture?.id !== this.picture?.id;
    this.picture = picture;
    if (fresh && picture?.result) {
      Object.assign(this.settings, START, picture.result.settings);
      this.mode = picture.result.kind;
    }
    this.#showThirds(picture?.info?.thirds ?? []);
    this.#showClean(picture);
    this.#reflect();
  }

  #showThirds(possible) {
    const key = possible.join();
    if (this.thirdKey !== key) {
      this.thirdKey = key;
      this.parts.thirdChoice = this.#choice("third", "Stack", Object.fromEntries(possible.map((name) => [name, this.about.thirds[name]])), (third) => this.set({ third }));
      this.parts.third.replaceChildren(...(possible.length > 1 ? [this.parts.thirdChoice] : []));
    }
  }

  #showClean(picture) {
    const [name, error] = picture?.reference ?? ["", ""];
    this.parts.clean.replaceChildren(
      h("span", { class: "label" }, "Clean picture, if known"),
      h("button", { type: "button", disabled: !picture?.info, onclick: () => this.acts.clean() }, name ? "Choose another" : "Choose a file"),
      h("p", { class: error ? "note bad" : "note" }, error || (name ? `${name}: PSNR and SSIM are shown.` : "Without it there is no PSNR or SSIM.")));
  }
}

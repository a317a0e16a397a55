// The page: one session, its pictures, what is shown of them and what is done.
import { api, Listener } from "./api.js";
import { Controls } from "./controls.js";
import { $, h } from "./dom.js";
import { filesTable, foundIn, statusOf, why } from "./details.js";
import { Slices } from "./slices.js";
import { Viewer } from "./viewer.js";

const about = await api.about();
const COLOURS = ["red", "green", "blue"];
const page = {
  session: null, state: null, listener: null, chosen: null, // the id of the picture that is shown
  mode: "divider", at: {}, channel: null, sides: {}, shares: {}, // of results: [brightness, colour] in percent
  sending: null, error: "", hint: "",
};
const viewer = new Viewer($("#lenses"), (scale) => { $("#scale").value = `${Math.round(100 * scale)} %`; }, { step: (by) => slices.step(by), play: () => slices.toggle() });
const slices = new Slices($("#slices"), {
  moved: (at) => {
    page.at[page.chosen] = at;
    if (slices.playing) renderViewer(picture());
    else render();
  },
  load: (at) => drawn(picture(), at).panels.map(async (panel) => {
    const image = new Image();
    image.src = panel.address(null);
    await image.decode();
    return image;
  }),
});
const controls = new Controls($("#panel"), about, {
  start: () => run(),
  compare: (methods) => act(() => api.compare(page.session, { picture: page.chosen, methods, at: slice(), settings: controls.given })),
  changed: () => { if (picture()?.result?.kind === "denoise" && controls.mode === "denoise") run(); },
  noiseChosen: (kind) => { viewer.setBox(kind === "box" ? controls.settings.box : null); if (kind !== "box") mark(false); },
  boxed: (box) => viewer.setBox(box),
  mark: () => mark($("#mark").getAttribute("aria-pressed") !== "true"),
  clean: () => $("#clean-picker").click(),
  model: () => $("#noise-picker").click(),
});

const picture = () => page.state?.pictures.find((each) => each.id === page.chosen) ?? null;
const progress = (id) => page.state?.progress[id] ?? null;
const slice = () => page.at[page.chosen] ?? picture()?.info?.middle ?? [];

async function act(what) {
  page.error = "";
  try {
    await what();
  } catch (error) {
    page.error = error.message;
  }
  render();
}

// --- sessions ---------------------------------------------------------------------------------

const sessionIn = (path) => path.match(/^\/session\/([\w-]+)$/)?.[1] ?? null;

async function open(session) {
  page.listener?.close();
  Object.assign(page, { session, state: null, listener: null, chosen: null, error: "" });
  if (!session) return render();
  try {
    hear("state", await api.state(session));
  } catch (error) {
    const gone = error.status === 404;
    Object.assign(page, { session: gone ? null : session, error: gone ? "This session has ended, or began in another browser. Its pictures are deleted." : error.message });
    if (gone) history.replaceState(null, "", "/");
    return render();
  }
  page.listener = new Listener(session, hear);
}

function begin(session) {
  if (session === page.session) return;
  page.listener?.close();
  Object.assign(page, { session, state: { pictures: [], progress: {} } });
  history.pushState(null, "", `/session/${session}`);
  page.listener = new Listener(session, hear);
}

function hear(kind, data) {
  if (kind === "gone") {
    page.listener?.close();
    history.replaceState(null, "", "/");
    Object.assign(page, { session: null, state: null, chosen: null, error: "This session has ended; its pictures are deleted." });
  } else if (kind === "progress") {
    page.state.progress = data;
    return renderProgress();
  } else {
    page.state = data;
    if (!picture()) choose(decodeURIComponent(location.hash.slice(1)), false);
    if (!picture()) choose(data.pictures.at(-1)?.id ?? null, false);
  }
  render();
}

function choose(id, draw = true) {
  page.chosen = page.state?.pictures.some((each) => each.id === id) ? id : null;
  if (page.chosen) history.replaceState(null, "", `/session/${page.session}#${page.chosen}`);
  if (draw) render();
}

addEventListener("popstate", () => open(sessionIn(location.pathname)));

// --- pictures that come ---------------------------------------------------------------------

async function take(files) {
  page.error = "";
  for (const file of files) {
    if (page.session && file.name.toLowerCase().endsWith(".json")) {
      await takeNoise(file);
      continue;
    }
    if (file.size > about.max_bytes) {
      page.error = `${file.name} is larger than the ${limit()} allowed here.`;
      continue;
    }
    try {
      const onProgress = (fraction) => { page.sending = { name: file.name, fraction }; renderProgress(); };
      onProgress(0);
      const { session, picture: id } = await api.upload(page.session, file, {}, onProgress);
      begin(session);
      await known(id);
      choose(id, false);
    } catch (error) {
      page.error = error.message;
    }
  }
  page.sending = null;
  render();
}

/** Open a noise model, and choose it. */
async function takeNoise(file) {
  try {
    const { model } = await api.upload(page.session, file, { noise: true }, () => {});
    await known(model, "models");
    controls.set({ noise: "file", model });
  } catch (error) {
    page.error = error.message;
  }
}

/** Wait until the state has a picture, or a noise model. */
async function known(id, list = "pictures") {
  for (let n = 0; n < 50 && !page.state?.[list]?.some((each) => each.id === id); n++) await new Promise((resolve) => setTimeout(resolve, 40));
}

/** Make one series of pictures, and show it. */
function joined(ids) {
  return act(async () => {
    const { picture: id } = await api.join(page.session, ids);
    await known(id);
    choose(id, false);
  });
}

const limit = () => `${+(about.max_bytes / 2 ** 20).toPrecision(3)} MB`;

async function takeExample(name) {
  await act(async () => {
    const { session, picture: id } = await api.example(page.session, name);
    begin(session);
    await known(id);
    choose(id, false);
  });
}

const picker = $("#picker");
picker.accept = $("#clean-picker").accept = about.endings.join();
for (const button of [$("#choose"), $("#add")]) button.addEventListener("click", () => picker.click());
picker.addEventListener("change", () => { const files = [...picker.files]; picker.value = ""; take(files); });
$("#clean-picker").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file) act(() => api.upload(page.session, file, { cleanOf: page.chosen }, () => {}));
});
$("#noise-picker").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file) act(() => takeNoise(file));
});
addEventListener("keydown", (event) => { if (event.key === "Escape") mark(false); });
addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dragging"); });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dragging"); });
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  take([...event.dataTransfer.files]);
});
$("#limit").textContent = limit();
$("#examples").replaceChildren(...Object.entries(about.examples).map(([name, title]) => h("button", { type: "button", onclick: () => takeExample(name) }, title)));
$("#leave").addEventListener("click", () => sure($("#leave"), () => act(async () => {
  const { session } = page;
  page.listener?.close();
  await api.end(session);
  history.pushState(null, "", "/");
  await open(null);
})));

/** Do something that cannot be undone at the second press of its button. */
function sure(button, what) {
  clearTimeout(button.asking);
  if (button.classList.toggle("sure")) {
    button.asking = setTimeout(() => { button.classList.remove("sure"); button.replaceChildren(...button.words); }, 4000);
    button.words ??= [...button.childNodes];
    button.replaceChildren("Really delete?");
  } else {
    button.replaceChildren(...button.words);
    what();
  }
}

// --- runs -----------------------------------------------------------------------------------

function run(ids = [page.chosen]) {
  if (matchMedia("(max-width: 60rem)").matches) scrollTo({ top: 0 });
  mark(false);
  if (viewer.isLarge) viewer.approach(); // what is visible comes first: so much that it can be judged
  return act(() => api.denoise(page.session, { pictures: ids, at: slice(), visible: viewer.visible, settings: controls.given }));
}

function mark(on) {
  controls.marking(on);
  page.hint = on ? "Drag over a part of the picture that is nothing but noise; Escape ends this." : "";
  renderProgress();
  viewer.mark(on ? (box) => { controls.set({ box, noise: "box" }); mark(false); } : null);
  if (on && matchMedia("(max-width: 60rem)").matches) $("#viewer").scrollIntoView();
}

// --- what is shown --------------------------------------------------------------------------

/** All that can be looked at: noisy, clean, results, what was removed. */
function panels(shown, at) {
  const { result, part } = shown;
  const where = result?.kind === "compare" ? result.at : at;
  const base = { at: where.join("."), ...(page.channel === null ? {} : { channel: page.channel }) };
  const make = (label, note, wanted) => ({ label, note, address: (box) => api.view(page.session, shown.id, { ...wanted, ...base, ...(box ? { box: box.join(".") } : {}) }) });
  const score = (each) => (each?.psnr ? `${each.psnr.toFixed(2)} dB` : "");
  const every = [make("Noisy", score(result?.noisy), { what: "noisy" })];
  const blend = blendOf(shown);
  const less = blend ? { blend } : {};
  result?.panels.forEach((panel, n) => every.push(make(blend ? `${panel.label}, blended` : panel.label, blend ? "" : score(panel), { what: "result", of: result.number, panel: n, ...less })));
  const removed = (result?.panels ?? []).map((panel, n) => make(`${panel.label}: removed`, "", { what: "removed", of: result.number, panel: n, ...less }));
  if (part && !result) every.push(make("Denoised where you look", "a first look", { what: "noisy" })); // see renderPart
  if (result?.clean) every.push(make("Clean", "", { what: "clean" }));
  return { every, removed };
}

/** What is drawn of all that at a place of a stack, and how. */
function drawn(shown, at) {
  const { every, removed } = panels(shown, at);
  const mode = every.length === 1 ? "side" : page.mode;
  const sides = [page.sides.left ?? 0, page.sides.right ?? 1].map((n) => (n < every.length ? n : every.length - 1));
  return { every, mode, sides, panels: { divider: sides.map((n) => every[n]), side: every, removed }[mode] };
}

function renderViewer(shown) {
  const { every, mode, sides, panels: wanted } = drawn(shown, slice());
  const { info } = shown;
  $("#modes").hidden = every.length === 1;
  for (const button of $("#modes").children) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  renderSides(mode === "divider" && every.length > 2 ? every : [], sides);
  const fixed = shown.result?.kind === "compare";
  renderBlend(shown); // before the viewer, which measures the room that is left
  slices.show(`${page.session} ${page.chosen}`, info, fixed ? shown.result.at : slice(), fixed);
  viewer.show(`${page.session} ${shown.id}`, [info.width, info.height], wanted, mode === "divider", Boolean(shown.result));
  if (!page.hint) viewer.setBox(controls.settings.noise === "box" && !info.mosaic ? controls.settings.box : null); // else one is drawn
  renderPart(shown);
  const names = info.channels > 1 ? ["all", ...Array(info.channels).keys()] : [];
  $("#channel-choice").hidden = !names.length;
  const select = $("#channel");
  const isColour = info.channels === 3 && !info.apart;
  const key = `${names.length} ${isColour} ${info.tints}`;
  if (select.dataset.key !== key) select.replaceChildren(...names.map((n) => h("option", { value: n }, n === "all" ? (isColour ? "colour" : "all channels") : isColour ? COLOURS[n] : `channel ${n + 1}${info.tints[n] ? `, ${info.tints[n]}` : ""}`)));
  select.dataset.key = key;
  if (names.length) select.value = page.channel ?? "all";
}

function renderSides(every, sides) {
  $("#sides").replaceChildren(...every.length ? ["left", "right"].map((side, n) => h("label", {}, side[0].toUpperCase() + side.slice(1), " ",
    h("select", { onchange: (event) => { page.sides[side] = Number(event.target.value); render(); } },
      every.map((panel, i) => h("option", { value: i, selected: i === sides[n] }, panel.label))))) : []);
}

/** What is done already of a run: laid over the picture. */
function renderPart(shown) {
  document.querySelectorAll(".part").forEach((old) => old.remove());
  const { part } = shown;
  if (!part || part.at.join() !== slice().join()) return;
  const [x, y, width, height] = part.box;
  const image = h("img", { class: "part", alt: "The part you look at, done", draggable: "false" });
  Object.assign(image.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
  const wanted = { what: "result", of: part.number, panel: part.panel, ...(page.channel === null ? {} : { channel: page.channel }) };
  image.src = api.view(page.session, shown.id, wanted);
  viewer.overlay(image);
}

// --- strength after the fact ----------------------------------------------------------------

const canBlend = ({ result, info }) => result?.kind === "denoise" && info.blends;
const resultKey = (shown) => `${page.session} ${shown.id} ${shown.result.number}`;

/** How much of a result is wanted, "70.40" percent of brightness and colour; "" is all of it. */
function blendOf(shown) {
  const shares = shown && canBlend(shown) ? page.shares[resultKey(shown)] : null;
  return shares && shares.some((share) => share < 100) ? shares.join(".") : "";
}

/** Two sliders between the picture and its result; colour follows brightness until it is moved. */
function renderBlend(shown) {
  const root = $("#blend");
  root.hidden = !canBlend(shown);
  const key = root.hidden ? "" : resultKey(shown);
  if (root.dataset.key === key) return;
  root.dataset.key = key;
  const shares = page.shares[key] ?? [100, 100];
  let tied = shares[0] === shares[1];
  const isColour = shown.info.channels === 3 && !shown.info.apart;
  const slider = (name, n) => {
    const readout = h("output", {}, `${shares[n]} %`);
    const input = h("input", { type: "range", min: "0", max: "100", step: "1", value: String(shares[n]), id: n ? "share-colour" : "share", "aria-label": `${name}: how much of the noise reduction is kept` });
    return { input, readout, row: h("label", { class: "slice", title: "Blends the result with the original; nothing is computed again" }, h("span", {}, name), input, readout) };
  };
  const rows = (isColour ? ["Blend brightness", "Blend colour"] : ["Blend"]).map(slider);
  rows.forEach(({ input }, n) => input.addEventListener("input", () => {
    if (n) tied = false;
    const now = rows.map((each) => Number(each.input.value));
    const colour = tied ? now[0] : now[1] ?? now[0];
    page.shares[key] = [now[0], colour];
    rows.forEach((each, i) => { each.input.value = page.shares[key][i]; each.readout.value = `${page.shares[key][i]} %`; });
    clearTimeout(page.blending);
    page.blending = setTimeout(render, 60);
  }));
  root.replaceChildren(...(root.hidden ? [] : rows.map((each) => each.row)));
}

function renderProgress() {
  const shown = picture();
  const list = page.state?.pictures ?? [];
  const busy = list.map((each) => progress(each.id)).filter(Boolean);
  statusOf($("#status"), { page, shown, busy, progress: shown && progress(shown.id), slice: slice(), blend: blendOf(shown), cancel: () => act(() => api.cancel(page.session)), retry: (kind) => controls.set({ noise: kind }) });
  const running = busy.filter((each) => !each.inspecting);
  const first = running.find((each) => each.fraction);
  document.title = first ? `${Math.round(100 * first.fraction)} % · symsmooth` : shown ? `${shown.name} · symsmooth` : "symsmooth";
  filesTable($("#files"), { page, list, progress, choose, join: (ids) => joined(ids), split: (id) => act(() => api.split(page.session, id)), remove: (id) => act(() => api.remove(page.session, id)), runAll: () => run(list.filter((each) => each.info).map((each) => each.id)), blendOf });
}

function render() {
  const shown = picture();
  const list = page.state?.pictures ?? [];
  const unread = shown && !shown.info && shown.ended[0] === "bad"; // there is nothing to set
  document.body.dataset.state = unread ? "unread" : list.length ? "here" : "empty";
  $("#start").hidden = Boolean(list.length);
  $("#viewer").hidden = !shown?.info;
  controls.show(shown, page.state?.models ?? []);
  foundIn($("#panel .found"), shown);
  why($("#why"), shown);
  if (shown?.info) renderViewer(shown);
  renderProgress();
}

for (const button of $("#modes").children) button.addEventListener("click", () => { page.mode = button.dataset.mode; render(); });
$("#channel").addEventListener("change", (event) => { page.channel = event.target.value === "all" ? null : Number(event.target.value); render(); });
const zooms = { in: () => viewer.zoomBy(1.5), out: () => viewer.zoomBy(1 / 1.5), fit: () => viewer.fit(), full: () => viewer.full() };
for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", zooms[button.dataset.do]);

await open(sessionIn(location.pathname));
document.body.dataset.ready = "true";

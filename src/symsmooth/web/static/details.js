// What the page shows of pictures: what was found, how far a run is, what came of it, and why.
import { api } from "./api.js";
import { histogram, lines } from "./charts.js";
import { bytes, h, seconds, short } from "./dom.js";

/** What a picture is, and its noise. */
export function foundIn(root, picture) {
  if (!picture?.info) return root.replaceChildren();
  const { info, name } = picture;
  const noise = picture.result?.noise ?? info.noise;
  const more = info.images > 1 ? `; the first of ${info.images} images is shown, all are denoised` : "";
  root.replaceChildren(
    h("h2", { title: name }, name),
    h("dl", {},
      h("dt", {}, "Picture"), h("dd", {}, `${kindOf(info)}${more}`),
      h("dt", {}, "Noise"), h("dd", {}, `${noise.short}${noise.level ? ` (${noise.percent < 0.01 ? "under 0.01" : Number(noise.percent.toPrecision(2))}\u00a0%)` : ""}`)),
    histogram(info.histogram, picture.result?.histogram, info.ranges.all));
}

const FORMATS = { NIFTI: "NIfTI", "NIFTI.GZ": "NIfTI", WEBP: "WebP", NPY: ".npy", RAW: "Camera RAW" };

function kindOf({ format, width, height, others, channels, dtype, mosaic }) {
  const [, kind, bits] = dtype.match(/^([a-z]+)(\d+)$/) ?? ["", "", dtype];
  const stack = others.filter((axis) => axis.size > 1).map((axis) => `${axis.name.toLowerCase()} ${axis.size}`);
  const depth = kind === "uint" ? `${bits} bit` : `${bits} bit ${kind === "float" ? "float" : "signed"}`;
  const colours = mosaic || (channels > 1 ? `${channels} channels` : null);
  return [FORMATS[format] ?? format, `${width} × ${height} pixels`, ...stack, colours, depth].filter(Boolean).join(", ");
}

/** What was decided and why. */
export function why(root, picture) {
  const noise = picture?.result?.noise ?? picture?.info?.noise;
  const key = noise ? `${picture.id} ${noise.detail} ${picture.result?.number ?? ""}` : "";
  if (root.dataset.key === key) return;
  root.dataset.key = key;
  if (!noise) return root.replaceChildren();
  const coarse = noise.kind === "correlated"; // given in channels that have nothing in common
  const names = coarse ? ["brightness", "hue", "tint"] : picture.info.apart ? ["channel 1", "channel 2", "channel 3"] : ["red", "green", "blue"];
  const was = root.querySelector("details")?.open ?? false;
  const { tone, quality, hot_pixels: hot, ...others } = picture.result?.parameters ?? {};
  const parameters = Object.entries(others);
  root.replaceChildren(h("details", { open: was },
    h("summary", {}, "What was decided and why"),
    h("p", {}, noise.detail[0].toUpperCase() + noise.detail.slice(1), "."),
    noise.reasons?.length ? h("ul", {}, noise.reasons.map((reason) => h("li", {}, reason[0].toUpperCase() + reason.slice(1), "."))) : null,
    noise.confidence === null || noise.confidence === undefined ? null : h("p", { class: "note" }, `Confidence ${Math.round(100 * noise.confidence)} %.`),
    lines(noise.levels, "pixel value", "Noise level", names),
    lines(noise.spectrum, "cycles a pixel", coarse ? "Noise by frequency" : "Noise by frequency: the same at all", names, !coarse),
    picture.result?.check ? h("p", {}, `Checked afterwards: ${picture.result.check}.`) : null,
    tone ? h("p", {}, `Noise darkens the shadows of pictures with a tone curve; ${Math.round(100 * tone)} % of that was put right.`) : null,
    hot ? h("p", {}, `${hot} hot or dead pixel${hot > 1 ? "s were" : " was"} replaced.`) : null,
    parameters.length ? h("p", { class: "note" }, parameters.map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? short(value) : value}`).join(", ").replace(/^./, (first) => first.toUpperCase())) : null));
}

/** One line and one bar: what happens, or how it ended.  What is there stays there while just numbers change. */
export function statusOf(root, { page, shown, busy, progress, slice, cancel, retry, blend }) {
  const running = busy.filter((each) => !each.inspecting);
  const now = progress ?? running[0] ?? busy[0] ?? null;
  const sends = page.sending !== null;
  const key = JSON.stringify([page.error, page.hint, sends, Boolean(now), running.length > 0, shown?.id, shown?.ended, shown?.result?.number, slice, blend]);
  if (root.dataset.key !== key) {
    root.dataset.key = key;
    root.replaceChildren(
      ...(page.error ? [note("bad", page.error)] : []),
      ...(page.hint ? [note("hint", page.hint)] : []),
      ...(sends || now ? [bar()] : shown ? ending(shown, retry) : []),
      ...(running.length ? [h("button", { id: "cancel", type: "button", onclick: cancel }, "Cancel")] : []),
      ...(shown?.result && !now ? [downloads(page.session, shown, slice, blend)] : []));
  }
  if (!sends && !now) return;
  const of = running.length > 1 ? `${running.length} pictures to do. ` : "";
  const [text, made] = root.querySelector(".bar").children;
  text.textContent = sends ? `Sending ${page.sending.name}` : of + words(now);
  const fraction = sends ? page.sending.fraction : now.state === "running" && !now.inspecting ? now.fraction : null;
  if (fraction === null) made.removeAttribute("value");
  else made.value = fraction;
  const button = root.querySelector("#cancel");
  if (button) button.disabled = now?.state === "stopping";
}

function words(now) {
  if (now.state === "stopping") return "Stopping";
  if (now.inspecting) return "Inspecting the picture";
  if (now.state === "waiting") return now.ahead ? `Waiting: ${now.ahead} run${now.ahead > 1 ? "s" : ""} before yours` : "Starting";
  const what = now.what[0].toUpperCase() + now.what.slice(1);
  const left = now.left === null ? "" : `, about ${seconds(now.left)} left`;
  return `${what}: ${Math.round(100 * now.fraction)} %${left}`;
}

const bar = () => h("div", { class: "bar" }, h("span"), h("progress", { max: "1", "aria-label": "Progress" }));

const note = (kind, ...text) => h("p", { class: `message ${kind}`, role: kind === "bad" ? "alert" : null }, ...text);

function ending({ ended: [kind, text], result, info }, retry) {
  if (kind === "bad") return [note("bad", text)];
  const parts = [];
  if (kind === "plain") parts.push(note("plain", text));
  if (!result) return parts.length || !info ? parts : [note("plain", "Ready.")];
  if (kind !== "plain") {
    const done = result.kind === "compare" ? `Compared ${result.panels.length} methods` : "Done";
    const removed = result.kind === "denoise" ? ` · noise removed: σ ${short(result.panels[0].removed)}` : "";
    parts.push(note("good", `${done} in ${seconds(result.seconds)}${removed}`));
  }
  for (const { text: doubt, try: kinds } of result.warnings) {
    parts.push(note("doubt", doubt, " ", kinds.map((each) => h("button", { type: "button", class: "link", onclick: () => retry(each) },
      { coarse: "Choose Coarse", box: "Measure it", white: "Choose White" }[each]))));
  }
  if (result.kind === "compare") parts.push(comparison(result));
  return parts;
}

function comparison({ panels, noisy, clean }) {
  const cell = (tag, text) => h(tag, {}, text);
  const heads = ["Method", ...(clean ? ["PSNR, dB", "SSIM"] : []), "Time", "Noise assumed", "Removed"];
  const scores = (each) => (clean ? [each.psnr === null ? "same" : each.psnr.toFixed(2), each.ssim === null ? "too small" : each.ssim.toFixed(4)] : []);
  const best = clean ? Math.max(...panels.map((each) => each.psnr)) : null;
  const rows = panels.map((each) => h("tr", { class: each.psnr === best && clean ? "best" : null },
    h("th", { scope: "row" }, each.label), ...[...scores(each), seconds(each.seconds), each.noise, short(each.removed)].map((text) => cell("td", text))));
  if (clean) rows.unshift(h("tr", {}, h("th", { scope: "row" }, "Noisy"), ...[...scores(noisy), "", "", ""].map((text) => cell("td", text))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" },
    h("table", { id: "numbers" }, h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows)));
}

/** What can be taken home. */
function downloads(session, picture, slice, blend) {
  const file = picture.result.bytes;
  return h("div", { class: "downloads" },
    file ? h("a", { class: "button primary", id: "download", href: api.result(session, picture.id, blend), download: "" }, blend ? "Download blend" : `Download ${picture.info.mosaic ? "DNG" : "result"}, ${bytes(file)}`) : null,
    file && picture.info.mosaic ? h("a", { class: "button", id: "developed", title: "What you see, 16 bit a colour", href: api.developed(session, picture.id), download: "" }, "Developed TIFF") : null,
    picture.result.model ? h("a", { class: "button", id: "save-noise", title: "For other pictures of the same camera: choose Saved as the kind of noise", href: api.noise(session, picture.id), download: "" }, "Save noise model") : null,
    h("a", { class: "button", id: "report", title: "What is shown as one page that needs no server", href: api.report(session, picture.id, slice), download: "" }, "Report"));
}

/** The table of several pictures. */
export function filesTable(root, { page, list, progress, ...acts }) {
  root.hidden = list.length < 2 && !list.some((each) => each.frames || (each.ended[0] === "bad" && !each.info));
  const key = root.hidden ? "" : JSON.stringify([page.session, page.chosen, list.map((each) => [each.id, each.name, each.ended, Boolean(each.info), each.result?.number, acts.blendOf(each)])]);
  if (root.dataset.key !== key) {
    root.dataset.key = key;
    const keep = root.contains(document.activeElement) ? document.activeElement.dataset.name : null;
    root.replaceChildren(...(root.hidden ? [] : table({ page, list, ...acts })));
    if (keep) root.querySelector(`[data-name="${keep}"]`)?.focus();
  }
  if (root.hidden) return;
  list.forEach((each, n) => {
    const cell = root.querySelectorAll(".state")[n];
    const now = progress(each.id);
    cell.textContent = now ? (now.state === "running" && !now.inspecting ? `${Math.round(100 * now.fraction)} %` : words(now)) : stateOf(each);
    cell.classList.toggle("bad", !now && each.ended[0] === "bad");
  });
}

function stateOf({ ended: [kind, text], result, info }) {
  if (kind === "bad") return info ? "failed" : "cannot be read";
  if (kind === "plain") return text;
  if (!result) return info ? "ready" : "";
  return result.kind === "compare" ? "compared" : `done in ${seconds(result.seconds)}`;
}

/** The pictures that can be frames of one series with the one that is shown. */
function framesLike(list, id) {
  const flat = ({ info, frames }) => info && (frames || !info.others.length) && !info.mosaic && info.images === 1;
  const kind = ({ info: { width, height, channels, dtype } }) => [width, height, channels, dtype].join();
  const shown = list.find((each) => each.id === id);
  return shown && flat(shown) ? list.filter((each) => flat(each) && kind(each) === kind(shown)) : [];
}

function table({ page, list, choose, remove, runAll, join, split, blendOf }) {
  const alike = framesLike(list, page.chosen);
  const nFrames = alike.reduce((sum, each) => sum + (each.frames || 1), 0);
  const done = list.filter((each) => each.result?.bytes).length;
  const blends = Object.fromEntries(list.map((each) => [each.id, blendOf(each)]).filter(([, blend]) => blend));
  const rows = list.map((each) => h("tr", { "aria-current": each.id === page.chosen ? "true" : null },
    h("th", { scope: "row" }, h("button", { type: "button", class: "link", "data-name": each.id, onclick: () => choose(each.id) }, each.name)),
    h("td", {}, each.info ? short((each.result?.noise ?? each.info.noise).level) : ""),
    h("td", { class: "state" }),
    h("td", {}, each.result?.panels.length === 1 ? short(each.result.panels[0].removed) : ""),
    h("td", { class: "acts" }, each.result?.bytes ? h("a", { href: api.result(page.session, each.id, blendOf(each)), download: "", "aria-label": `Download ${each.name}` }, "Download") : null,
      each.frames ? h("button", { type: "button", class: "link", "data-name": `split-${each.id}`, "aria-label": `Split ${each.name}`, onclick: () => split(each.id) }, "Split") : null,
      h("button", { type: "button", class: "link", "data-name": `remove-${each.id}`, "aria-label": `Remove ${each.name}`, onclick: () => remove(each.id) }, "Remove"))));
  const heads = ["Picture", "Noise σ", "State", "Removed σ"].map((text) => h("th", { scope: "col" }, text));
  return [
    h("div", { class: "between" }, h("h2", {}, `${list.length} picture${list.length > 1 ? "s" : ""}`), h("div", { class: "downloads" },
      alike.length > 1 ? h("button", { type: "button", id: "join", "data-name": "join", title: "These pictures are frames in time, in the order of their names: they help each other", onclick: () => join(alike.map((each) => each.id)) }, `One series of ${nFrames} frames`) : null,
      list.length > 1 ? h("button", { type: "button", id: "all", "data-name": "all", onclick: runAll }, "Denoise all") : null,
      done > 1 ? h("a", { class: "button", id: "zip", href: api.zip(page.session, blends), download: "" }, `Download ${done} results (zip)`) : null)),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of pictures" },
      h("table", {}, h("thead", {}, h("tr", {}, ...heads, h("td"))), h("tbody", {}, rows)))];
}

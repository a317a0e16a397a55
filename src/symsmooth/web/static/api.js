// What the page asks of its server.

async function answer(response) {
  const text = await response.text();
  let data = {};
  try { data = JSON.parse(text); } catch { /* not ours */ }
  if (!response.ok) throw Object.assign(new Error(data.error ?? `The server answered ${response.status}.`), { status: response.status });
  return data;
}

async function ask(path, method = "GET", body) {
  const options = { method, headers: {} };
  if (method === "POST") {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body ?? {});
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer; is it still running?");
  }
  return answer(response);
}

const at = (visit, rest = "") => `/api/visits/${encodeURIComponent(visit)}${rest}`;

export const api = {
  about: () => ask("/api/about"),
  state: (visit) => ask(at(visit, "/state")),
  example: (visit, example) => ask("/api/examples", "POST", { visit, example }),
  denoise: (visit, given) => ask(at(visit, "/denoise"), "POST", given),
  compare: (visit, given) => ask(at(visit, "/compare"), "POST", given),
  join: (visit, pictures) => ask(at(visit, "/join"), "POST", { pictures }),
  split: (visit, picture) => ask(at(visit, `/${picture}/split`), "POST"),
  cancel: (visit) => ask(at(visit, "/cancel"), "POST"),
  alive: (visit) => ask(at(visit, "/alive"), "POST"),
  remove: (visit, picture) => ask(at(visit, `/${picture}`), "DELETE"),
  end: (visit) => ask(at(visit), "DELETE"),
  zip: (visit, blends) => at(visit, `/results.zip?${new URLSearchParams(blends)}`), // {picture: blend}
  result: (visit, picture, blend = "") => at(visit, `/${picture}/result${blend ? `?blend=${blend}` : ""}`),
  developed: (visit, picture) => at(visit, `/${picture}/result?developed`),
  noise: (visit, picture) => at(visit, `/${picture}/noise`),
  report: (visit, picture, slice) => at(visit, `/${picture}/report?at=${slice.join(".")}`),
  view: (visit, picture, wanted) => at(visit, `/${picture}/view?${new URLSearchParams(wanted)}`),

  /** Send one file as the body of a request; `onProgress` gets the fraction that is sent. */
  upload: (visit, file, { cleanOf, noise }, onProgress) => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/api/pictures");
    request.setRequestHeader("content-type", "application/octet-stream");
    request.setRequestHeader("x-file-name", encodeURIComponent(file.name));
    if (visit) request.setRequestHeader("x-visit", visit);
    if (noise) request.setRequestHeader("x-noise", "yes");
    if (cleanOf) request.setRequestHeader("x-clean-of", cleanOf);
    request.upload.onprogress = (event) => onProgress(event.loaded / Math.max(event.total, 1));
    request.onload = () => answer(new Response(request.responseText, { status: request.status })).then(resolve, reject);
    request.onerror = () => reject(new Error(`${file.name} could not be sent; is the server still running?`));
    request.send(file);
  }),
};

/** Receive what happens in a visit while the page is visible; in the background say now and then that it is there. */
export class Listener {
  #source = null;
  #timer = null;

  constructor(visit, onEvent) {
    this.visit = visit;
    this.onEvent = onEvent;
    document.addEventListener("visibilitychange", this.#change);
    this.#change();
  }

  #change = () => {
    this.#source?.close();
    clearInterval(this.#timer);
    this.#source = null;
    if (document.hidden) { // a browser opens six connections to a server: tabs nobody sees need none
      this.#timer = setInterval(() => api.alive(this.visit).catch(() => this.close()), 120_000);
      return;
    }
    this.#source = new EventSource(at(this.visit, "/events"));
    for (const kind of ["state", "progress", "gone"]) {
      this.#source.addEventListener(kind, (event) => this.onEvent(kind, JSON.parse(event.data)));
    }
  };

  close() {
    document.removeEventListener("visibilitychange", this.#change);
    clearInterval(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}

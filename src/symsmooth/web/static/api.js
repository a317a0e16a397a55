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

const at = (session, rest = "") => `/api/sessions/${encodeURIComponent(session)}${rest}`;

export const api = {
  about: () => ask("/api/about"),
  state: (session) => ask(at(session, "/state")),
  example: (session, example) => ask("/api/examples", "POST", { session, example }),
  denoise: (session, given) => ask(at(session, "/denoise"), "POST", given),
  compare: (session, given) => ask(at(session, "/compare"), "POST", given),
  join: (session, pictures) => ask(at(session, "/join"), "POST", { pictures }),
  split: (session, picture) => ask(at(session, `/${picture}/split`), "POST"),
  cancel: (session) => ask(at(session, "/cancel"), "POST"),
  remove: (session, picture) => ask(at(session, `/${picture}`), "DELETE"),
  end: (session) => ask(at(session), "DELETE"),
  zip: (session, blends) => at(session, `/results.zip?${new URLSearchParams(blends)}`), // {picture: blend}
  result: (session, picture, blend = "") => at(session, `/${picture}/result${blend ? `?blend=${blend}` : ""}`),
  developed: (session, picture) => at(session, `/${picture}/result?developed`),
  noise: (session, picture) => at(session, `/${picture}/noise`),
  report: (session, picture, slice) => at(session, `/${picture}/report?at=${slice.join(".")}`),
  view: (session, picture, wanted) => at(session, `/${picture}/view?${new URLSearchParams(wanted)}`),

  /** Send one file as the body of a request; `onProgress` gets the fraction that is sent. */
  upload: (session, file, { cleanOf, noise }, onProgress) => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/api/pictures");
    request.setRequestHeader("content-type", "application/octet-stream");
    request.setRequestHeader("x-file-name", encodeURIComponent(file.name));
    if (session) request.setRequestHeader("x-session", session);
    if (noise) request.setRequestHeader("x-noise", "yes");
    if (cleanOf) request.setRequestHeader("x-clean-of", cleanOf);
    request.upload.onprogress = (event) => onProgress(event.loaded / Math.max(event.total, 1));
    request.onload = () => answer(new Response(request.responseText, { status: request.status })).then(resolve, reject);
    request.onerror = () => reject(new Error(`${file.name} could not be sent; is the server still running?`));
    request.send(file);
  }),
};

/** Receive what happens in a session while the page is visible; in the background say now and then that it is there. */
export class Listener {
  #source = null;
  #timer = null;

  constructor(session, onEvent) {
    this.session = session;
    this.onEvent = onEvent;
    document.addEventListener("visibilitychange", this.#change);
    this.#change();
  }

  #change = () => {
    this.#source?.close();
    clearInterval(this.#timer);
    this.#source = null;
    if (document.hidden) { // a browser opens six connections to a server: tabs nobody sees need none
      this.#timer = setInterval(() => api.state(this.session).catch(() => this.close()), 120_000);
      return;
    }
    this.#source = new EventSource(at(this.session, "/events"));
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

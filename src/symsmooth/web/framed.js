// In a page that is shown inside the server's: looks like its host, grows as high as it must, and
// begins where one looked before.  Runs before viewer.js.
"use strict";

(() => {
  const host = window.parent;
  if (host === window) return;
  const memory = (host.symsmooth ??= { looking: "", split: "" });
  const root = document.documentElement;
  root.classList.add("framed");
  document.querySelector("main").setAttribute("aria-label", "Pictures"); // the host has a main of its own
  const follow = () => { root.dataset.theme = host.document.body.classList.contains("dark") ? "dark" : "light"; };
  follow();
  new host.MutationObserver(follow).observe(host.document.body, { attributeFilter: ["class"] });

  const whole = [...document.querySelectorAll("[data-viewer]")].at(-1);
  if (whole && !location.search.includes("part")) {
    if (memory.looking) whole.dataset.looking = memory.looking;
    new MutationObserver(() => { memory.looking = whole.dataset.looking; }).observe(whole, { attributeFilter: ["data-looking"] });
  }
  const range = document.querySelector(".overlay input");
  if (range) {
    if (memory.split) range.value = memory.split;
    range.addEventListener("input", () => { memory.split = range.value; });
    document.addEventListener("pointerup", () => { memory.split = range.value; });
  }
  const room = () => root.style.setProperty("--room", `${host.innerHeight}px`);
  room();
  host.addEventListener("resize", room);
  const grow = () => { if (window.frameElement) window.frameElement.style.height = `${document.body.offsetHeight}px`; };
  new ResizeObserver(grow).observe(document.body);
})();

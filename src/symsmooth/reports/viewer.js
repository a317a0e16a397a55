// Linked zoom, switching and divider of picture strips; theme; the current entry of the contents.
// Every page works without it: it only adds.
"use strict";

(() => {
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  const view = (strip) => {
    const lenses = [...strip.querySelectorAll(".lens")];
    const images = [...strip.querySelectorAll(".panels img")];
    const overlay = strip.querySelector(".overlay");
    const state = { zoom: 1, x: 0.5, y: 0.5, swapped: false };

    const show = () => {
      strip.style.setProperty("--zoom", state.zoom);
      strip.style.setProperty("--x", state.x);
      strip.style.setProperty("--y", state.y);
      strip.classList.toggle("zoomed", state.zoom > 1);
      const shown = lenses[0].clientWidth * state.zoom * devicePixelRatio;
      strip.classList.toggle("reduced", shown < images[0].naturalWidth);
    };
    // The point (u, v) of the frame, 0 to 1, stays where it is.
    const zoom = (factor, u = 0.5, v = 0.5) => {
      const next = clamp(state.zoom * factor, 1, 16);
      const fix = (at, mark) => {
        if (next === 1) return 0.5;
        const seen = at + (mark - at) / state.zoom; // the part of the picture under the mark
        return clamp((seen * next - mark) / (next - 1), 0, 1);
      };
      [state.x, state.y] = [fix(state.x, u), fix(state.y, v)];
      state.zoom = next;
      show();
    };
    const move = (dx, dy) => {
      if (state.zoom === 1) return;
      const reach = state.zoom - 1;
      state.x = clamp(state.x - dx / reach, 0, 1);
      state.y = clamp(state.y - dy / reach, 0, 1);
      show();
    };
    const reset = () => { Object.assign(state, { zoom: 1, x: 0.5, y: 0.5 }); show(); };

    const layers = () => {
      if (!overlay) return;
      for (const side of ["left", "right"]) {
        const chosen = images[Number(overlay.querySelector(`[data-side=${side}]`).value)];
        const layer = overlay.querySelector(`[data-layer=${side}]`);
        layer.src = chosen.src;
        layer.alt = chosen.alt;
        overlay.querySelector(`.tag.${side}`).textContent = chosen.closest("figure").querySelector("b").textContent;
      }
    };
    const swap = (button) => {
      state.swapped = !state.swapped;
      button.setAttribute("aria-pressed", state.swapped);
      for (const image of images) {
        if (!image.dataset.other) continue;
        [image.src, image.dataset.other] = [image.dataset.other, image.src];
      }
      layers();
    };
    const actions = {
      "zoom-in": () => zoom(1.6),
      "zoom-out": () => zoom(1 / 1.6),
      reset,
      swap,
      overlay: (button) => {
        overlay.hidden = !overlay.hidden;
        button.setAttribute("aria-expanded", !overlay.hidden);
        layers();
      },
    };
    for (const button of strip.querySelectorAll("[data-do]")) {
      button.addEventListener("click", () => actions[button.dataset.do](button));
    }
    strip.querySelector(".tools").hidden = false;

    const keys = {
      "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), 0: reset,
      ArrowLeft: () => move(0.2, 0), ArrowRight: () => move(-0.2, 0), ArrowUp: () => move(0, 0.2), ArrowDown: () => move(0, -0.2),
    };
    for (const lens of lenses) {
      let last = null;
      let moved = false;
      const place = (event) => {
        const box = lens.getBoundingClientRect();
        return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
      };
      lens.addEventListener("keydown", (event) => {
        const act = keys[event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        if (event.key.startsWith("Arrow") && state.zoom === 1) return;
        act();
        event.preventDefault();
      });
      lens.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && state.zoom === 1 && event.deltaY > 0) return; // let the page scroll
        if (!event.ctrlKey && document.activeElement !== lens) return;      // click first, or hold Ctrl
        zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, ...place(event));
        event.preventDefault();
      }, { passive: false });
      lens.addEventListener("pointerdown", (event) => {
        last = place(event);
        moved = false;
        if (state.zoom > 1) lens.setPointerCapture(event.pointerId);
      });
      lens.addEventListener("pointermove", (event) => {
        if (!last || state.zoom === 1) return;
        const now = place(event);
        if (Math.hypot(now[0] - last[0], now[1] - last[1]) < 0.004) return;
        move(now[0] - last[0], now[1] - last[1]);
        last = now;
        moved = true;
      });
      lens.addEventListener("pointerup", (event) => {
        if (last && !moved && state.zoom === 1 && event.button === 0) zoom(3, ...place(event));
        last = null;
      });
      lens.addEventListener("pointercancel", () => { last = null; });
    }

    if (overlay) {
      const left = overlay.querySelector("[data-layer=left]");
      const right = overlay.querySelector("[data-layer=right]");
      const clip = document.createElement("div"); // clips the frame, not the zoomed picture
      clip.className = "clip";
      left.before(clip);
      clip.append(left);
      clip.before(right);
      for (const side of ["left", "right"]) {
        const tag = document.createElement("span");
        tag.className = `tag ${side}`;
        right.parentElement.append(tag);
      }
      const range = overlay.querySelector("input");
      const divider = overlay.querySelector(".divider");
      const split = () => {
        overlay.style.setProperty("--split", `${range.value}%`);
        clip.style.clipPath = `inset(0 ${100 - range.value}% 0 0)`;
      };
      range.addEventListener("input", split);
      divider.addEventListener("pointerdown", (event) => {
        event.stopPropagation(); // the picture below neither zooms nor moves
        event.preventDefault();
        divider.setPointerCapture(event.pointerId);
        range.focus({ preventScroll: true, focusVisible: false }); // arrows go on from here
      });
      divider.addEventListener("pointermove", (event) => {
        if (!divider.hasPointerCapture(event.pointerId)) return;
        const box = right.parentElement.getBoundingClientRect();
        range.value = clamp((100 * (event.clientX - box.left)) / box.width, 0, 100);
        split();
      });
      for (const select of overlay.querySelectorAll("select")) select.addEventListener("change", layers);
      split();
      if ("open" in strip.dataset) actions.overlay(strip.querySelector("[data-do=overlay]"));
    }
    images[0].addEventListener("load", show);
    addEventListener("resize", show);
    strip.closest("details")?.addEventListener("toggle", show); // inside, nothing had a size
    show();
  };
  document.querySelectorAll("[data-viewer]").forEach(view);

  const theme = document.querySelector(".theme");
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();

  const contents = document.querySelector("nav details");
  if (contents && matchMedia("(max-width: 56rem)").matches) contents.open = false;
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((a) => a.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  document.querySelectorAll("main > section[id]").forEach((section) => watch.observe(section));
})();

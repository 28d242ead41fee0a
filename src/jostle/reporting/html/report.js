"use strict";
// The page is whole without this: it adds saving, copying and keys.
(() => {
  const texts = JSON.parse(document.getElementById("texts").textContent);
  const told = document.getElementById("told");
  let fading;

  function tell(words) {
    told.textContent = words;
    told.classList.add("shown");
    clearTimeout(fading);
    fading = setTimeout(() => told.classList.remove("shown"), 1800);
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not every browser lets a page from disk use the clipboard directly.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw new Error("refused");
    }
  }

  const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight",
    "font-family", "text-anchor"];

  // A copy with its colours written into it, in the light theme, for a paper is white.
  function standalone(svg) {
    const made = svg.cloneNode(true);
    document.documentElement.setAttribute("data-light", "");
    const before = [svg, ...svg.querySelectorAll("*")];
    const after = [made, ...made.querySelectorAll("*")];
    before.forEach((element, i) => {
      const style = getComputedStyle(element);
      for (const name of KEPT) {
        const value = style.getPropertyValue(name);
        if (value && value !== "none" || name === "fill") after[i].setAttribute(name, value);
      }
      after[i].removeAttribute("class");
    });
    document.documentElement.removeAttribute("data-light");
    for (const link of made.querySelectorAll("a")) link.replaceWith(...link.childNodes);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    made.setAttribute("width", width);
    made.setAttribute("height", height);
    return { text: new XMLSerializer().serializeToString(made), width, height };
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function save(figure, name, kind) {
    const { text, width, height } = standalone(figure.querySelector(".canvas > svg"));
    const blob = new Blob([text], { type: "image/svg+xml" });
    if (kind === "svg") {
      download(blob, `${name}.svg`);
      return;
    }
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      const brush = canvas.getContext("2d");
      brush.fillStyle = "white";
      brush.fillRect(0, 0, canvas.width, canvas.height);
      brush.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((png) => download(png, `${name}.png`), "image/png");
    };
    image.onerror = () => tell("This browser cannot turn the figure into a PNG; save the SVG.");
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy], button[data-save]");
    if (!button) return;
    if (button.dataset.copy) {
      const table = button.closest("[data-table]").dataset.table;
      try {
        await copy(texts[table][button.dataset.copy]);
        tell(`Copied as ${button.textContent}`);
      } catch {
        tell("The browser did not allow copying.");
      }
    } else {
      save(button.closest("figure"), button.closest("[data-figure]").dataset.figure, button.dataset.save);
    }
  });

  // An opened square: the detail takes the focus, Escape closes it, arrows step through.
  function opened() {
    return document.querySelector(".detail:target");
  }

  window.addEventListener("hashchange", () => opened()?.focus({ preventScroll: true }));
  document.addEventListener("keydown", (event) => {
    const detail = opened();
    if (!detail || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = [...detail.querySelectorAll(".tools > a")];
    const wanted = { Escape: "close", ArrowLeft: "← before", ArrowRight: "next →" }[event.key];
    const link = links.find((one) => one.textContent === wanted);
    if (link && (event.key === "Escape" || !event.target.closest(".canvas"))) link.click();
  });

  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.fold:not([open])")].filter((one) => one.querySelector("table"));
    for (const one of closed) one.open = true;
  });
  window.addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
})();

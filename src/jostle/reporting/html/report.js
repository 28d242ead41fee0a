"use strict";
// Saving of figures, copying of tables and keys of the report, which is complete without scripts.
(() => {
  const texts = JSON.parse(document.getElementById("texts").textContent);
  const status = document.getElementById("status");
  let hideTimer;

  function showStatus(text) {
    status.textContent = text;
    status.classList.add("visible");
    clearTimeout(hideTimer);
    hideTimer = setTimeout(() => status.classList.remove("visible"), 1800);
  }

  async function copyText(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not every browser lets a page from disk use the clipboard directly.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const copied = document.execCommand("copy");
      area.remove();
      if (!copied) throw new Error("refused");
    }
  }

  const INLINED_PROPERTIES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size",
    "font-weight", "font-family", "text-anchor"];

  // Return a copy with its styles inlined, in the light theme, as papers are white.
  function standaloneSvg(svg) {
    const copy = svg.cloneNode(true);
    document.documentElement.setAttribute("data-light", "");
    const originals = [svg, ...svg.querySelectorAll("*")];
    const copies = [copy, ...copy.querySelectorAll("*")];
    originals.forEach((element, i) => {
      const style = getComputedStyle(element);
      for (const name of INLINED_PROPERTIES) {
        const value = style.getPropertyValue(name);
        if (value && value !== "none" || name === "fill") copies[i].setAttribute(name, value);
      }
      copies[i].removeAttribute("class");
    });
    document.documentElement.removeAttribute("data-light");
    for (const link of copy.querySelectorAll("a")) link.replaceWith(...link.childNodes);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  function saveFigure(figure, name, format) {
    const { text, width, height } = standaloneSvg(figure.querySelector(".canvas > svg"));
    const blob = new Blob([text], { type: "image/svg+xml" });
    if (format === "svg") {
      download(blob, `${name}.svg`);
      return;
    }
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      const context = canvas.getContext("2d");
      context.fillStyle = "white";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((png) => download(png, `${name}.png`), "image/png");
    };
    image.onerror = () => showStatus("This browser cannot convert the figure to PNG; save the SVG.");
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy], button[data-save]");
    if (!button) return;
    if (button.dataset.copy) {
      const table = button.closest("[data-table]").dataset.table;
      try {
        await copyText(texts[table][button.dataset.copy]);
        showStatus(`Copied as ${button.textContent}`);
      } catch {
        showStatus("The browser did not allow copying.");
      }
    } else {
      saveFigure(button.closest("figure"), button.closest("[data-figure]").dataset.figure, button.dataset.save);
    }
  });

  // The detail of the open square takes the focus; Escape closes it, arrow keys go to its neighbours.
  function currentDetail() {
    return document.querySelector(".detail:target");
  }

  window.addEventListener("hashchange", () => currentDetail()?.focus({ preventScroll: true }));
  document.addEventListener("keydown", (event) => {
    const detail = currentDetail();
    if (!detail || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = [...detail.querySelectorAll(".tools > a")];
    const label = { Escape: "close", ArrowLeft: "← previous", ArrowRight: "next →" }[event.key];
    const link = links.find((candidate) => candidate.textContent === label);
    if (link && (event.key === "Escape" || !event.target.closest(".canvas"))) link.click();
  });

  // Folded tables are opened for printing.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.fold:not([open])")].filter((details) => details.querySelector("table"));
    for (const details of folded) details.open = true;
  });
  window.addEventListener("afterprint", () => folded.forEach((details) => { details.open = false; }));
})();

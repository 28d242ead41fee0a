"use strict";
// Sorting of the leaderboard's tables, and unfolding of the article that a link leads to; the page is complete without it.
(() => {
  const isMissing = (cell) => cell.dataset.order === "";

  function sortRows(table, column, numeric, ascending) {
    const body = table.tBodies[0];
    const sign = ascending ? 1 : -1;
    const entries = [...body.rows].map((row) => ({ row, cell: row.cells[column] }));
    entries.sort((a, b) => {
      if (!numeric) return sign * a.cell.firstChild.textContent.localeCompare(b.cell.firstChild.textContent, "en");
      if (isMissing(a.cell) || isMissing(b.cell)) return isMissing(a.cell) - isMissing(b.cell);
      return sign * (Number(a.cell.dataset.order) - Number(b.cell.dataset.order));
    });
    body.append(...entries.map((entry) => entry.row));
  }

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const numeric = heading.classList.contains("num");
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const order = heading.getAttribute("aria-sort");
        const ascending = order ? order === "descending" : !numeric;
        for (const cell of headings) cell.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sortRows(table, column, numeric, ascending);
      });
    });
  }

  function openLinkTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const details = target && target.closest("details");
    if (!details) return;
    details.open = true;
    target.scrollIntoView();
  }

  window.addEventListener("hashchange", openLinkTarget);
  openLinkTarget();
})();

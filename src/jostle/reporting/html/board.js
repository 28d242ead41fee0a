"use strict";
// The page is whole without this: it adds sorting, and opens what a link leads to.
(() => {
  const none = (cell) => cell.dataset.order === "";

  function sort(table, column, numeric, ascending) {
    const body = table.tBodies[0];
    const sign = ascending ? 1 : -1;
    const rows = [...body.rows].map((row) => ({ row, cell: row.cells[column] }));
    rows.sort((a, b) => {
      if (!numeric) return sign * a.cell.firstChild.textContent.localeCompare(b.cell.firstChild.textContent, "en");
      if (none(a.cell) || none(b.cell)) return none(a.cell) - none(b.cell);
      return sign * (Number(a.cell.dataset.order) - Number(b.cell.dataset.order));
    });
    body.append(...rows.map((one) => one.row));
  }

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const numeric = head.classList.contains("num");
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const ascending = before ? before === "descending" : !numeric;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        sort(table, column, numeric, ascending);
      });
    });
  }

  function open() {
    const wanted = location.hash && document.getElementById(location.hash.slice(1));
    const fold = wanted && wanted.closest("details");
    if (!fold) return;
    fold.open = true;
    wanted.scrollIntoView();
  }

  window.addEventListener("hashchange", open);
  open();
})();

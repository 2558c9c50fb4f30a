// Sorting of tables: a button in every column head, arrows tell the order.

const NOTHING = "\u2013";

// What a cell sorts by: its number, else its words. Empty cells have neither.
function sortValue(cell) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = cell.textContent.trim();
  return text === NOTHING || text === "" ? null : text;
}

function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortTable(table, column, order) {
  const body = table.tBodies[0];
  const sign = order === "descending" ? -1 : 1;
  const rows = Array.from(body.rows, (row) => [sortValue(row.cells[column]), row]);
  rows.sort(([a], [b]) => {
    // Empty cells stay last in either order.
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * compareValues(a, b);
  });
  body.append(...rows.map(([, row]) => row));
  for (const [place, head] of Array.from(table.tHead.rows[0].cells).entries()) {
    if (place === column) head.setAttribute("aria-sort", order);
    else head.removeAttribute("aria-sort");
  }
}

function makeSortable(table) {
  for (const [column, head] of Array.from(table.tHead.rows[0].cells).entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = "Sort by this column";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") === "ascending";
      sortTable(table, column, ascending ? "descending" : "ascending");
    });
  }
}

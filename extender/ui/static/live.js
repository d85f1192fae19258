// The pages Queue and Decisions: replaces their texts, rows and lines when the server sends a new document.

import { followEvents, setCurrent, setStaleTime } from "./events.js";

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");

function makeContent({ text, kind }) {
  if (!kind) return document.createTextNode(text);
  const link = document.createElement("a");
  link.href = `${PREFIX}/${kind}/${text.split("/").map(encodeURIComponent).join("/")}`;
  const name = document.createElement("bdi");
  name.textContent = text;
  link.append(name);
  return link;
}

function makeRow(cells) {
  const row = document.createElement("tr");
  for (const cell of cells) {
    const element = document.createElement("td");
    element.append(makeContent(cell));
    row.append(element);
  }
  return row;
}

/** The newest row of what a row shows. An attempt never changes, and a pod of a queue is in the first cell. */
function findRow(row, rows) {
  const address = row.cells[0]?.querySelector("a")?.href;
  const isSame = (other) => address !== undefined && other.cells[0]?.querySelector("a")?.href === address;
  return rows.find((other) => other.textContent === row.textContent) ?? rows.find(isSame);
}

/** Fill a table. A row with the focus stays in the page, so that a reader with a keyboard can follow its link. */
function fillTable(body, cells) {
  const rows = cells.map(makeRow);
  const oldRows = [...body.rows];
  const kept = oldRows.find((row) => row.contains(document.activeElement));
  if (!kept) {
    body.replaceChildren(...rows);
    return;
  }
  const newest = findRow(kept, rows);
  if (newest) {
    [...kept.cells].forEach((cell, index) => {
      if (!cell.contains(document.activeElement)) cell.replaceChildren(...newest.cells[index].childNodes);
    });
  } else if (kept.cells[0].contains(document.activeElement)) {
    kept.cells[kept.cells.length - 1].textContent = "no longer in this table";
  }
  const position = newest ? rows.indexOf(newest) : oldRows.indexOf(kept);
  for (const row of oldRows) if (row !== kept) row.remove();
  kept.before(...rows.slice(0, position));
  kept.after(...rows.slice(newest ? position + 1 : position));
}

/** Show the problems of the process. Equal lines are not replaced, since a screen reader would read them again. */
function showProblems(lines) {
  const problems = document.getElementById("problems");
  const newest = problems.cloneNode();
  for (const line of lines) {
    const paragraph = document.createElement("p");
    paragraph.className = "warning";
    paragraph.textContent = line;
    newest.append(paragraph);
  }
  if (!problems.isEqualNode(newest)) problems.replaceChildren(...newest.childNodes);
}

function show({ texts, rows, lines, problems, staleTime }) {
  setStaleTime(staleTime);
  showProblems(problems);
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = texts[element.dataset.text];
  for (const element of document.querySelectorAll("[data-rows]")) fillTable(element, rows[element.dataset.rows]);
  for (const element of document.querySelectorAll("[data-line]")) {
    element.setAttribute("points", lines[element.dataset.line]);
  }
}

followEvents(location.pathname.split("/").pop(), (text, time) => {
  show(JSON.parse(text));
  setCurrent(time);
});

// The pages Queue and Decisions: replaces their texts, rows and lines when the server sends a new document.

import { followEvents, setStatus } from "./events.js";

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");
const button = document.getElementById("pause");

let paused = false;
let received = null; // the newest document, also while the page is paused

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

// A row with the focus is not replaced, so that a reader with a keyboard can follow its link.
function fillTable(body, rows) {
  if (!body.contains(document.activeElement)) body.replaceChildren(...rows.map(makeRow));
}

function show({ texts, rows, lines }) {
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = texts[element.dataset.text];
  for (const element of document.querySelectorAll("[data-rows]")) fillTable(element, rows[element.dataset.rows]);
  for (const element of document.querySelectorAll("[data-line]")) {
    element.setAttribute("points", lines[element.dataset.line]);
  }
}

const getLiveText = () => (paused ? "Paused." : "Live.");

function receive(text) {
  received = text;
  if (!paused) show(JSON.parse(text));
}

followEvents(location.pathname.split("/").pop(), receive, getLiveText);
button.hidden = false;
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Continue" : "Pause";
  if (!document.querySelector("#connection.lost")) setStatus(getLiveText());
  if (!paused && received) show(JSON.parse(received)); // the next one may come later
});

// The pages Queue and Decisions: replaces their texts, rows and lines when the server sends a new document.

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");
const button = document.getElementById("pause");
const connection = document.getElementById("connection");

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

let lastContact = performance.timeOrigin;

function setStatus(text, isLost = false) {
  if (connection.textContent === text) return;
  connection.textContent = text;
  connection.classList.toggle("lost", isLost);
}

const events = new EventSource(`${PREFIX}/events/${location.pathname.split("/").pop()}`);
events.addEventListener("message", (event) => {
  received = event.data;
  lastContact = Date.now();
  if (paused) return;
  show(JSON.parse(received));
  setStatus("Live.");
  document.documentElement.dataset.live = "true";
});
events.addEventListener("error", () => {
  const next = events.readyState === EventSource.CLOSED ? "Reload the page to try again." : "Connecting again.";
  setStatus(`Not live, as of ${new Date(lastContact).toISOString().slice(11, 19)} UTC. ${next}`, true);
});
events.addEventListener("open", () => {
  if (paused) setStatus("Paused.");
});
button.hidden = false;
setStatus("Connecting.");
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Continue" : "Pause";
  setStatus(paused ? "Paused." : "Live.");
  if (!paused && received) show(JSON.parse(received)); // the next one may come later
});

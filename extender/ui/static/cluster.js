// The page Cluster: reads the document of the cluster, draws the map, and handles pointer, keyboard and options.

import { setStatus } from "./events.js";
import {
  closeWithEscape, drawCells, drawMark, formatPods, isMoveKey, layOut, listenForColours, makeHitTest, moveByKey,
  readColours, readJson, revealCell, showControls, showLegend,
} from "./node_map.js";
import { followChanges, replaceElement } from "./refresh.js";

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");
const MAX_PODS = 8;
const HOVER_DELAY = 120;

const cells = document.getElementById("cells");
const mark = document.getElementById("mark");
const map = document.getElementById("map");
const selected = document.getElementById("selected");
const options = document.getElementById("options");
const resource = document.getElementById("resource");
const group = document.getElementById("group");
const find = document.getElementById("find");
const found = document.getElementById("found");
const isLive = "live" in map.dataset;

let cluster;
let layout;
let hitTest;
let colours;
let matches = null;
let current = -1;
let timer = 0;
const details = new Map();

/** Fill a list of choices. The one in the address is chosen, also after a document that did not have it. */
function fillChoices(select, choices) {
  const old = [...select.options].map((option) => option.value);
  const names = choices.map(([name]) => name);
  if (old.length === names.length && old.every((name, index) => name === names[index])) return; // it may be open
  const wanted = [new URLSearchParams(location.search).get(select.name), ...(old.length ? [select.value] : [])];
  select.replaceChildren();
  for (const [name, text] of choices) {
    const option = document.createElement("option");
    option.value = name;
    option.textContent = text;
    select.append(option);
  }
  const value = wanted.find((name) => names.includes(name));
  if (value !== undefined) select.value = value;
}

function showChoices() {
  fillChoices(resource, cluster.totals.map(({ resource: name }) => [name, name]));
  fillChoices(group, [...Object.keys(cluster.groups).map((key) => [key, key]), ["", "nothing"]]);
}

function updateAddress() {
  const query = new URLSearchParams({ resource: resource.value, group: group.value });
  if (find.value) query.set("find", find.value);
  history.replaceState(null, "", `?${query}`);
}

function draw() {
  const nodeCount = cluster.nodes.length;
  const noGroup = { values: ["all nodes"], index: new Uint8Array(nodeCount) };
  layout = layOut(cluster.groups[group.value] ?? noGroup, nodeCount, map.clientWidth);
  hitTest = makeHitTest(layout);
  colours = readColours();
  const text = find.value.trim().toLowerCase();
  matches = text ? cluster.nodes.map((name) => name.includes(text)) : null;
  const count = matches ? `${matches.filter(Boolean).length} found` : "";
  if (found.textContent !== count) found.textContent = count; // a screen reader reads equal text again
  const { nodes: names, unschedulable: cordoned } = cluster;
  drawCells(cells, layout, { names, use: cluster.use[resource.value] ?? [], cordoned, matches }, colours);
  drawMark(mark, layout, current, colours);
  showLegend(document.getElementById("legend"), colours, layout.named);
}

function formatUse(node) {
  return Object.entries(cluster.use)
    .filter(([, use]) => use[node] >= 0)
    .map(([name, use]) => `${name} ${Math.round(use[node] / 10)}%`)
    .join(", ");
}

/**
 * Show the use and the pods of a node. Equal text is not replaced, and pods that come later are added, since a screen
 * reader would read the whole text again.
 */
function showSelected(node, pods = details.get(cluster.nodes[node]) ?? []) {
  const focused = selected.contains(document.activeElement);
  if (node < 0) {
    selected.replaceChildren();
    if (focused) cells.focus({ preventScroll: true });
    return;
  }
  const name = cluster.nodes[node];
  const link = document.createElement("a");
  link.href = `${PREFIX}/nodes/${encodeURIComponent(name)}`;
  link.textContent = name;
  const cordoned = cluster.unschedulable[node] ? ", cordoned" : "";
  const text = `: ${formatUse(node)}; ${formatPods(cluster.pods[node])}${cordoned}`;
  const added = pods.length ? [document.createElement("br"), pods.join(", ")] : [];
  if (selected.textContent === `${name}${text}${pods.join(", ")}`) return;
  if (selected.textContent === `${name}${text}`) {
    selected.append(...added);
    return;
  }
  selected.replaceChildren(link, text, ...added);
  if (focused) link.focus({ preventScroll: true });
}

async function readPods(name) {
  const shown = cluster;
  let pods;
  let failure = "";
  try {
    ({ pods } = await readJson(`${PREFIX}/data/nodes/${encodeURIComponent(name)}`));
  } catch (error) {
    failure = `The pods cannot be read: ${error.message}.`;
  }
  if (shown !== cluster) return; // the answer is older than the map
  if (failure) details.delete(name);
  else {
    const more = pods.length > MAX_PODS ? [`and ${pods.length - MAX_PODS} more`] : [];
    details.set(name, [...pods.slice(0, MAX_PODS).map(({ pod }) => pod), ...more]);
  }
  if (cluster.nodes[current] === name) showSelected(current, failure ? [failure] : details.get(name));
}

function select(node) {
  if (node === current) return;
  current = node;
  drawMark(mark, layout, node, colours);
  showSelected(node);
  clearTimeout(timer);
  const name = cluster.nodes[node];
  if (node >= 0 && !details.has(name)) timer = setTimeout(() => void readPods(name), HOVER_DELAY);
}

function open(node) {
  if (node >= 0) location.assign(`${PREFIX}/nodes/${encodeURIComponent(cluster.nodes[node])}`);
}

function findNode(event) {
  const box = cells.getBoundingClientRect();
  return hitTest(event.clientX - box.left, event.clientY - box.top);
}

function handleKey(event) {
  if (event.key === "Enter") open(current);
  else if (isMoveKey(event.key)) {
    event.preventDefault();
    const shown = matches === null ? layout.order : layout.order.filter((node) => matches[node]);
    select(moveByKey(event.key, shown, current, layout.columns));
    if (current >= 0) revealCell(cells, layout, current, selected);
  }
}

function listen() {
  cells.addEventListener("pointermove", (event) => select(findNode(event)));
  cells.addEventListener("click", (event) => open(findNode(event)));
  cells.addEventListener("keydown", handleKey);
  closeWithEscape(() => select(-1));
  options.addEventListener("input", () => {
    updateAddress();
    draw();
  });
  options.addEventListener("submit", (event) => event.preventDefault());
  listenForColours(draw);
  new ResizeObserver(() => {
    if (layout && Math.abs(map.clientWidth - layout.width) > 1) draw();
  }).observe(map);
}

/** Show the newest state. The selected node stays selected, and the choices stay the same. */
function update(page, newest) {
  const name = cluster.nodes[current]; // the reader may have selected another node while the document was read
  cluster = newest;
  replaceElement("summary", page);
  const pods = details.get(name);
  details.clear();
  if (pods) details.set(name, pods); // until they are read again
  current = cluster.nodes.indexOf(name);
  showChoices();
  showControls(cluster.nodes.length);
  draw();
  showSelected(current);
  clearTimeout(timer);
  if (current >= 0) void readPods(name);
}

const readCluster = (signal) => readJson(`${PREFIX}/data/cluster`, signal);

async function start() {
  if (isLive) setStatus("Connecting.");
  selected.textContent = "Reading the nodes.";
  try {
    cluster = await readCluster();
  } catch (error) {
    if (isLive) setStatus("Not live.");
    selected.textContent = `The nodes cannot be read: ${error.message}. Reload the page to try again.`;
    return;
  }
  selected.replaceChildren();
  showChoices();
  find.value = new URLSearchParams(location.search).get("find") ?? "";
  showControls(cluster.nodes.length);
  draw();
  listen();
  if (isLive) followChanges(update, readCluster);
  document.documentElement.dataset.ready = "true";
}

void start();

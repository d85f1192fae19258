// The page Cluster: reads the document of the cluster, draws the map, and handles pointer, keyboard and options.

import {
  drawCells, drawMark, isMoveKey, layOut, makeHitTest, moveByKey, readColours, readJson, revealCell, showControls,
  showLegend,
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

let cluster;
let layout;
let hitTest;
let colours;
let matches = null;
let current = -1;
let timer = 0;
const details = new Map();

function addOption(select, value, text) {
  const option = document.createElement("option");
  option.value = value;
  option.textContent = text;
  select.append(option);
}

function addChoices() {
  for (const { resource: name } of cluster.totals) addOption(resource, name, name);
  for (const key of Object.keys(cluster.groups)) addOption(group, key, key);
  addOption(group, "", "nothing");
}

function fillOptions() {
  addChoices();
  const query = new URLSearchParams(location.search);
  for (const select of [resource, group]) {
    const value = query.get(select.name);
    if (value !== null && [...select.options].some((option) => option.value === value)) select.value = value;
  }
  find.value = query.get("find") ?? "";
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
  found.textContent = matches ? `${matches.filter(Boolean).length} found` : "";
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

/** Show the use and the pods of a node. Equal text is not replaced, since a screen reader would read it again. */
function showSelected(node) {
  if (node < 0) {
    selected.replaceChildren();
    return;
  }
  const name = cluster.nodes[node];
  const link = document.createElement("a");
  link.href = `${PREFIX}/nodes/${encodeURIComponent(name)}`;
  link.textContent = name;
  const cordoned = cluster.unschedulable[node] ? ", cordoned" : "";
  const pods = details.get(name);
  const text = `: ${formatUse(node)}; ${cluster.pods[node]} pods${cordoned}`;
  const parts = [link, text, ...(pods?.length ? [document.createElement("br"), pods.join(", ")] : [])];
  if (selected.textContent === parts.map((part) => part.textContent ?? part).join("")) return;
  const focused = selected.contains(document.activeElement);
  selected.replaceChildren(...parts);
  if (focused) link.focus({ preventScroll: true });
}

async function readPods(node, again = false) {
  const name = cluster.nodes[node];
  if (again || !details.has(name)) {
    const entry = await readJson(`${PREFIX}/data/nodes/${encodeURIComponent(name)}`).catch(() => null);
    if (entry === null) return; // the node may be gone
    const { pods } = entry;
    const names = pods.slice(0, MAX_PODS).map(({ pod }) => pod);
    if (pods.length > MAX_PODS) names.push(`and ${pods.length - MAX_PODS} more`);
    details.set(name, names);
  }
  if (current === node) showSelected(node);
}

function select(node) {
  if (node === current) return;
  current = node;
  drawMark(mark, layout, node, colours);
  showSelected(node);
  clearTimeout(timer);
  if (node >= 0) timer = setTimeout(() => void readPods(node), HOVER_DELAY);
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
  options.addEventListener("input", () => {
    updateAddress();
    draw();
  });
  options.addEventListener("submit", (event) => event.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => {
    if (layout && Math.abs(map.clientWidth - layout.width) > 1) draw();
  }).observe(map);
}

/** Show the newest state. The selected node stays selected, and the choices stay the same. */
async function update(page) {
  const newest = await readJson(`${PREFIX}/data/cluster`);
  const name = cluster.nodes[current]; // the reader may have selected another node meanwhile
  cluster = newest;
  replaceElement("summary", page);
  const pods = details.get(name);
  details.clear();
  if (pods) details.set(name, pods); // until they are read again
  current = cluster.nodes.indexOf(name);
  const choices = [resource.value, group.value];
  for (const select of [resource, group]) select.replaceChildren();
  addChoices();
  [resource, group].forEach((select, index) => {
    if ([...select.options].some((option) => option.value === choices[index])) select.value = choices[index];
  });
  draw();
  showSelected(current);
  if (current >= 0) void readPods(current, true);
}

async function start() {
  selected.textContent = "Reading the nodes.";
  try {
    cluster = await readJson(`${PREFIX}/data/cluster`);
  } catch (error) {
    selected.textContent = `The nodes cannot be read: ${error.message}. Reload the page to try again.`;
    return;
  }
  selected.replaceChildren();
  fillOptions();
  showControls();
  draw();
  listen();
  if ("live" in map.dataset) followChanges(update);
  document.documentElement.dataset.ready = "true";
}

void start();

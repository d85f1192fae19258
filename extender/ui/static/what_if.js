// The page What if: draws the cluster before and after the changes, side by side.

import "./copy.js";
import {
  ABSENT, closeWithEscape, drawCells, drawMark, formatPods, isMoveKey, layOut, listenForColours, makeHitTest, moveByKey,
  readColours, readJson, revealCell, showControls, showLegend,
} from "./node_map.js";

const PREFIX = new URL(".", import.meta.url).pathname.replace(/\/static\/$/, "");
const maps = document.getElementById("maps");
const selected = document.getElementById("selected");
const resource = document.getElementById("resource");
const group = document.getElementById("group");
const SIDES = ["before", "after"];

let answer;
let layout;
let hitTest;
let colours;
let changed = [];
let current = -1;

const getCanvas = (side, name) => document.querySelector(`#${side} .${name}`);

function addOption(select, value, text) {
  const option = document.createElement("option");
  option.value = value;
  option.textContent = text;
  select.append(option);
}

/** The nodes whose pods or use of any resource change, and those that come or go. */
function findChanged() {
  const { before, after } = answer;
  return layout.order.filter(
    (node) =>
      before.pods[node] !== after.pods[node] ||
      before.unschedulable[node] !== after.unschedulable[node] ||
      answer.resources.some((name) => before.use[name][node] !== after.use[name][node]),
  );
}

function draw() {
  const nodeCount = answer.nodes.length;
  const noGroup = { values: ["all nodes"], index: new Uint8Array(nodeCount) };
  layout = layOut(answer.groups[group.value] ?? noGroup, nodeCount, document.getElementById("before").clientWidth);
  hitTest = makeHitTest(layout);
  colours = readColours();
  changed = findChanged();
  for (const side of SIDES) {
    const use = answer[side].use[resource.value] ?? new Int16Array(nodeCount).fill(-1);
    const state = { names: answer.nodes, use, cordoned: answer[side].unschedulable, matches: null };
    drawCells(getCanvas(side, "cells"), layout, state, colours);
  }
  drawMarks();
  showLegend(document.getElementById("legend"), colours, layout.named);
}

function drawMarks() {
  for (const side of SIDES) drawMark(getCanvas(side, "mark"), layout, current, colours, changed);
}

function formatUse(use) {
  if (use === ABSENT) return "no node";
  return use < 0 ? "none" : `${Math.round(use / 10)}%`;
}

function showSelected(node) {
  const focused = selected.contains(document.activeElement);
  selected.replaceChildren();
  if (node < 0) {
    if (focused) getCanvas("before", "cells").focus({ preventScroll: true });
    return;
  }
  const link = document.createElement("a");
  link.href = `${PREFIX}/nodes/${encodeURIComponent(answer.nodes[node])}`;
  link.textContent = answer.nodes[node];
  const isNew = answer.before.use[answer.resources[0]]?.[node] === ABSENT;
  const { before, after } = answer;
  const texts = answer.resources
    .filter((name) => before.use[name][node] !== -1 || after.use[name][node] !== -1)
    .map((name) => [name, formatUse(before.use[name][node]), formatUse(after.use[name][node])])
    .map(([name, old, now]) => (old === now ? `${name} ${old}` : `${name} ${old} \u2192 ${now}`));
  const pods =
    before.pods[node] === after.pods[node]
      ? formatPods(after.pods[node])
      : `${before.pods[node]} \u2192 ${formatPods(after.pods[node])}`;
  selected.append(isNew ? answer.nodes[node] : link, `: ${texts.join(", ")}; ${pods}`);
}

function select(node) {
  if (node === current) return;
  current = node;
  drawMarks();
  showSelected(node);
}

function open(node) {
  if (node >= 0 && answer.before.use[answer.resources[0]]?.[node] !== ABSENT) {
    location.assign(`${PREFIX}/nodes/${encodeURIComponent(answer.nodes[node])}`);
  }
}

function findNode(event) {
  const box = event.currentTarget.getBoundingClientRect();
  return hitTest(event.clientX - box.left, event.clientY - box.top);
}

function handleKey(event) {
  if (event.key === "Enter") open(current);
  else if (isMoveKey(event.key)) {
    event.preventDefault();
    select(moveByKey(event.key, changed.length ? changed : layout.order, current, 1));
    if (current >= 0) revealCell(event.currentTarget, layout, current, selected);
  }
}

async function showMaps() {
  try {
    answer = await readJson(maps.dataset.document);
  } catch (error) {
    selected.textContent = `The maps cannot be read: ${error.message}. The tables below have the same in words.`;
    return;
  }
  for (const name of answer.resources) addOption(resource, name, name);
  for (const key of Object.keys(answer.groups)) addOption(group, key, key);
  addOption(group, "", "nothing");
  showControls(answer.nodes.length);
  draw();
  closeWithEscape(() => select(-1));
  for (const side of SIDES) {
    const cells = getCanvas(side, "cells");
    cells.addEventListener("pointermove", (event) => select(findNode(event)));
    cells.addEventListener("click", (event) => open(findNode(event)));
    cells.addEventListener("keydown", handleKey);
  }
  document.getElementById("options").addEventListener("input", draw);
  document.getElementById("options").addEventListener("submit", (event) => event.preventDefault());
  listenForColours(draw);
  new ResizeObserver(() => {
    if (Math.abs(document.getElementById("before").clientWidth - layout.width) > 1) draw();
  }).observe(maps);
}

// Empty fields are left out of the address, so that it is short enough to share. The fields themselves stay as they are,
// since the reader may stop a question that takes long.
document.getElementById("question").addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) if (!value) formData.delete(name);
});
if (maps) await showMaps();
document.documentElement.dataset.ready = "true";

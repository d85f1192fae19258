// The map of the nodes: one cell per node, in blocks of nodes with the same label. Drawing is separate from events.

const TITLE_HEIGHT = 20;
const GAP = 10;
const MIN_CELL = 5;
const MAX_CELL = 28;
const TARGET_HEIGHT = 560;
const NAMED_WIDTH = 148;
const NAMED_HEIGHT = 40;

/** The use of a node that does not exist. */
export const ABSENT = -2;
const LEGEND = ["below 20%", "20 to 40%", "40 to 60%", "60 to 80%", "80 to 100%", "full"];

/** The step of the colour scale, 0 to 5, for a use in thousandths; -1 for a node without the resource. */
export function useStep(use) {
  if (use < 0) return -1;
  return use >= 1000 ? 5 : Math.floor(use / 200);
}

function measureHeight(members, width, cellWidth, cellHeight) {
  const columns = Math.max(1, Math.floor(width / cellWidth));
  const rows = members.reduce((sum, nodes) => sum + Math.ceil(nodes.length / columns), 0);
  return rows * cellHeight + members.length * (TITLE_HEIGHT + GAP);
}

/** The largest cells that fit on one screen: with the names of the nodes if there is room, else squares. */
function chooseCell(members, width) {
  const columns = Math.max(1, Math.floor(width / NAMED_WIDTH));
  const named = { cellWidth: Math.floor(width / columns), cellHeight: NAMED_HEIGHT, named: true };
  named.cellWidth = Math.min(named.cellWidth, NAMED_WIDTH + 40);
  if (measureHeight(members, width, named.cellWidth, NAMED_HEIGHT) <= TARGET_HEIGHT) return named;
  let cell = MAX_CELL;
  while (cell > MIN_CELL && measureHeight(members, width, cell, cell) > TARGET_HEIGHT) cell -= 1;
  return { cellWidth: cell, cellHeight: cell, named: false };
}

/** Put the nodes into blocks, one under the other. */
export function layOut(group, nodeCount, width) {
  const members = group.values.map(() => []);
  for (let node = 0; node < nodeCount; node += 1) members[group.index[node]].push(node);
  const { cellWidth, cellHeight, named } = chooseCell(members, width);
  const columns = Math.max(1, Math.floor(width / cellWidth));
  const x = new Int32Array(nodeCount);
  const y = new Int32Array(nodeCount);
  const order = [];
  const blocks = [];
  let top = 0;
  members.forEach((nodes, value) => {
    blocks.push({ title: group.values[value], count: nodes.length, top });
    top += TITLE_HEIGHT;
    nodes.forEach((node, position) => {
      x[node] = (position % columns) * cellWidth;
      y[node] = top + Math.floor(position / columns) * cellHeight;
      order.push(node);
    });
    top += Math.ceil(nodes.length / columns) * cellHeight + GAP;
  });
  return { x, y, order, blocks, cellWidth, cellHeight, named, columns, width, height: Math.max(top, cellHeight) };
}

/** The node under a point, or -1. Cells have one size, so a map from row to nodes finds it. */
export function makeHitTest(layout) {
  const rows = new Map();
  for (const node of layout.order) {
    const row = layout.y[node];
    if (!rows.has(row)) rows.set(row, []);
    rows.get(row).push(node);
  }
  const tops = [...rows.keys()].sort((a, b) => a - b);
  return (px, py) => {
    let low = 0;
    let high = tops.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (tops[middle] > py) high = middle - 1;
      else if (tops[middle] + layout.cellHeight <= py) low = middle + 1;
      else {
        const nodes = rows.get(tops[middle]);
        const column = Math.floor(px / layout.cellWidth);
        return column >= 0 && column < nodes.length ? nodes[column] : -1;
      }
    }
    return -1;
  };
}

/** The node that an arrow key leads to, among `order`; `current` may be -1. */
export function moveByKey(key, order, current, columns) {
  if (!order.length) return -1;
  const position = order.indexOf(current);
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
  if (key === "Home") return order[0];
  if (key === "End") return order[order.length - 1];
  if (position < 0) return order[0];
  return order[Math.min(Math.max(position + step, 0), order.length - 1)];
}

/** A number of pods: `1 pod`, `2 pods`. */
export const formatPods = (count) => `${count} ${count === 1 ? "pod" : "pods"}`;

export const isMoveKey = (key) => /^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(key);

/** An empty canvas: a new width clears it. On paper, `clearRect` would also clear the canvas below. */
function prepare(canvas, width, height) {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** Black or white, whichever has the higher contrast on a colour such as #2b6fa8. */
function chooseTextColour(background) {
  const channels = [1, 3, 5].map((start) => Number.parseInt(background.slice(start, start + 2), 16) / 255);
  const [red, green, blue] = channels.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}

/** Read a document of the server. The message of an error says why it cannot be read. */
export async function readJson(address, signal = null) {
  const response = await fetch(address, { signal });
  if (!response.ok) throw new Error(`status ${response.status}`);
  try {
    return await response.json();
  } catch (error) {
    // Each version of a browser has other words for text that is not JSON, such as the login page of a proxy.
    if (!(error instanceof SyntaxError)) throw error;
    throw new Error(`the answer (${response.headers.get("content-type") ?? "no content type"}) is not JSON`);
  }
}

/** Call `draw` when the style sheet has other colours: in the other scheme, and on paper, which is always light. */
export function listenForColours(draw) {
  matchMedia("screen and (prefers-color-scheme: dark)").addEventListener("change", draw);
}

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    steps: [0, 1, 2, 3, 4].map((step) => read(`--use-${step}`)).concat(read("--use-full")),
    none: read("--use-none"),
    text: read("--text"),
    line: read("--soft"),
    mark: read("--mark"),
    dim: Number(read("--dim")),
  };
}

function makeSwatch(colour) {
  const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  swatch.setAttribute("class", "swatch");
  swatch.setAttribute("viewBox", "0 0 10 10");
  const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  square.setAttribute("width", "10");
  square.setAttribute("height", "10");
  square.setAttribute("fill", colour);
  swatch.append(square);
  return swatch;
}

/** Show the maps with their controls, which do nothing without JavaScript; hide both if there are no nodes. */
export function showControls(nodeCount) {
  const controls = ["options", "map-help", "legend"].map((name) => document.getElementById(name));
  for (const element of [...controls, ...document.querySelectorAll(".map")]) element.hidden = nodeCount === 0;
}

/** Call `close` when the reader presses Escape, wherever the focus is: a pointer selects a node without it. */
export function closeWithEscape(close) {
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") close();
  });
}

export function showLegend(legend, colours, named) {
  legend.replaceChildren();
  for (const [text, colour] of [...LEGEND.map((text, step) => [text, colours.steps[step]]), ["none", colours.none]]) {
    const entry = document.createElement("span");
    entry.append(makeSwatch(colour), ` ${text}`);
    legend.append(entry);
  }
  if (named) return;
  const note = document.createElement("span");
  note.textContent = "a line through a cell: cordoned";
  legend.append(note);
}

const chooseColour = (step, colours) => (step < 0 ? colours.none : colours.steps[step]);

/** A text, or its beginning if it is wider than `width`. */
function shorten(context, text, width) {
  let shown = text;
  while (shown.length > 4 && context.measureText(shown).width > width) shown = `${shown.slice(0, -4)}...`;
  return shown;
}

function drawName(context, layout, node, { names, use, cordoned }, background) {
  const width = layout.cellWidth - 14;
  context.fillStyle = chooseTextColour(background);
  const text = `${use[node] < 0 ? "none" : `${Math.round(use[node] / 10)}%`}${cordoned[node] ? ", cordoned" : ""}`;
  context.fillText(shorten(context, names[node], width), layout.x[node] + 6, layout.y[node] + 16);
  context.fillText(text, layout.x[node] + 6, layout.y[node] + 31);
}

/** Draw the titles of the blocks and all cells. `state` has the lists of the document, and per node whether it matches. */
export function drawCells(canvas, layout, state, colours) {
  const { use, matches } = state;
  const context = prepare(canvas, layout.width, layout.height);
  const gap = layout.cellWidth > 8 ? 2 : 1;
  const [width, height] = [layout.cellWidth - gap, layout.cellHeight - gap];
  context.font = "13px system-ui, sans-serif";
  context.fillStyle = colours.text;
  for (const { title, count, top } of layout.blocks) {
    const end = ` (${count})`;
    context.fillText(shorten(context, title, layout.width - context.measureText(end).width) + end, 0, top + 14);
  }
  context.font = "12px system-ui, sans-serif";
  // One colour at a time: changes of the colour cost more than the cells.
  for (let step = -1; step <= 5; step += 1) {
    const colour = chooseColour(step, colours);
    context.fillStyle = colour;
    for (const node of layout.order) {
      if (use[node] === ABSENT || useStep(use[node]) !== step) continue;
      context.globalAlpha = matches === null || matches[node] ? 1 : colours.dim;
      context.fillRect(layout.x[node], layout.y[node], width, height);
      if (!layout.named) continue;
      drawName(context, layout, node, state, colour);
      context.fillStyle = colour;
    }
  }
  context.globalAlpha = 1;
  drawLines(context, layout, [width, height], state, colours);
}

function drawLines(context, layout, [width, height], { use, cordoned }, colours) {
  context.lineWidth = width > 12 ? 2 : 1;
  for (let step = -1; step <= 5 && !layout.named; step += 1) {
    context.strokeStyle = chooseTextColour(chooseColour(step, colours));
    context.beginPath();
    for (const node of layout.order) {
      if (!cordoned[node] || use[node] === ABSENT || useStep(use[node]) !== step) continue;
      context.moveTo(layout.x[node], layout.y[node]);
      context.lineTo(layout.x[node] + width, layout.y[node] + height);
    }
    context.stroke();
  }
  context.lineWidth = 1;
  context.strokeStyle = colours.line;
  context.setLineDash([3, 3]);
  for (const node of layout.order) {
    if (use[node] === ABSENT) context.strokeRect(layout.x[node] + 0.5, layout.y[node] + 0.5, width - 1, height - 1);
  }
  context.setLineDash([]);
}

/** Draw frames around nodes: thin ones around `framed`, a thick one around `node` unless it is -1. */
export function drawMark(canvas, layout, node, colours, framed = []) {
  const context = prepare(canvas, layout.width, layout.height);
  const frame = (which) =>
    context.strokeRect(layout.x[which], layout.y[which], layout.cellWidth - 2, layout.cellHeight - 2);
  context.strokeStyle = colours.mark;
  context.lineWidth = layout.cellWidth > 8 ? 2 : 1;
  for (const which of framed) frame(which);
  if (node < 0) return;
  context.strokeStyle = framed.length ? colours.text : colours.mark;
  context.lineWidth = 3;
  frame(node);
}

/** Scroll the page so far that the cell of a node is visible above `panel`. */
export function revealCell(canvas, layout, node, panel) {
  const top = canvas.getBoundingClientRect().top + layout.y[node];
  const below = top + layout.cellHeight - (innerHeight - panel.offsetHeight);
  if (top < 0) scrollBy(0, top);
  else if (below > 0) scrollBy(0, below);
}

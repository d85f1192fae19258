// The map of the nodes: one cell per node, in blocks of nodes with the same label. Drawing is separate from events.

const TITLE_HEIGHT = 20;
const GAP = 10;
const MIN_CELL = 5;
const MAX_CELL = 28;
const TARGET_HEIGHT = 560;

/** The step of the colour scale, 0 to 5, for a use in thousandths; -1 for a node without the resource. */
export function useStep(use) {
  if (use < 0) return -1;
  return use >= 1000 ? 5 : Math.floor(use / 200);
}

/** Put the nodes into blocks, one under the other, with the largest cells that fit on one screen. */
export function layOut(group, nodeCount, width) {
  const members = group.values.map(() => []);
  for (let node = 0; node < nodeCount; node += 1) members[group.index[node]].push(node);
  let cell = MAX_CELL;
  let columns = 1;
  for (; cell >= MIN_CELL; cell -= 1) {
    columns = Math.max(1, Math.floor(width / cell));
    const rows = members.reduce((sum, nodes) => sum + Math.ceil(nodes.length / columns), 0);
    if (rows * cell + members.length * (TITLE_HEIGHT + GAP) <= TARGET_HEIGHT) break;
  }
  cell = Math.max(cell, MIN_CELL);
  const x = new Int32Array(nodeCount);
  const y = new Int32Array(nodeCount);
  const order = [];
  const blocks = [];
  let top = 0;
  members.forEach((nodes, value) => {
    blocks.push({ title: group.values[value], count: nodes.length, top });
    top += TITLE_HEIGHT;
    nodes.forEach((node, position) => {
      x[node] = (position % columns) * cell;
      y[node] = top + Math.floor(position / columns) * cell;
      order.push(node);
    });
    top += Math.ceil(nodes.length / columns) * cell + GAP;
  });
  return { x, y, order, blocks, cell, columns, width, height: Math.max(top, cell) };
}

/** The node under a point, or -1. Cells have one size, so a map from cell to node finds it. */
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
      else if (tops[middle] + layout.cell <= py) low = middle + 1;
      else {
        const nodes = rows.get(tops[middle]);
        const column = Math.floor(px / layout.cell);
        return column >= 0 && column < nodes.length ? nodes[column] : -1;
      }
    }
    return -1;
  };
}

function prepare(canvas, width, height) {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    steps: [0, 1, 2, 3, 4].map((step) => read(`--use-${step}`)).concat(read("--use-full")),
    none: read("--use-none"),
    text: read("--text"),
    mark: read("--mark"),
    dim: Number(read("--dim")),
  };
}

/** Draw all cells; `matches` is null, or has for each node whether its name matches the search. */
export function drawCells(canvas, layout, use, cordoned, matches, colours) {
  const context = prepare(canvas, layout.width, layout.height);
  const size = layout.cell > 8 ? layout.cell - 2 : layout.cell - 1;
  context.font = "13px system-ui, sans-serif";
  context.fillStyle = colours.text;
  for (const block of layout.blocks) context.fillText(`${block.title} (${block.count})`, 0, block.top + 14);
  // One colour at a time: changes of the colour cost more than the cells.
  for (let step = -1; step <= 5; step += 1) {
    context.fillStyle = step < 0 ? colours.none : colours.steps[step];
    for (const node of layout.order) {
      if (useStep(use[node]) !== step) continue;
      context.globalAlpha = matches === null || matches[node] ? 1 : colours.dim;
      context.fillRect(layout.x[node], layout.y[node], size, size);
    }
  }
  context.globalAlpha = 1;
  context.strokeStyle = colours.text;
  context.lineWidth = 1;
  context.beginPath();
  for (const node of layout.order) {
    if (!cordoned[node]) continue;
    context.moveTo(layout.x[node], layout.y[node]);
    context.lineTo(layout.x[node] + size, layout.y[node] + size);
  }
  context.stroke();
}

/** Draw the mark of one node on its own canvas, so that hovering draws no cell again. */
export function drawMark(canvas, layout, node, colours) {
  const context = prepare(canvas, layout.width, layout.height);
  if (node < 0) return;
  context.strokeStyle = colours.mark;
  context.lineWidth = 3;
  context.strokeRect(layout.x[node] - 1, layout.y[node] - 1, layout.cell, layout.cell);
}

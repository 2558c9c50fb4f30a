// The frames of plots: a cube of three losses, or the axes of two.

function frameLine(plot, from, to, css) {
  const [[x1, y1], [x2, y2]] = [from, to];
  svgElement("line", { x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1), class: css }, plot.frame);
}

function frameText(plot, x, y, words, css, anchor = "middle") {
  // Zoomed in, an axis may lie outside: its words stay at the border.
  const at = { x: clamp(x, 4, WIDE - 4).toFixed(1), y: clamp(y, 12, HIGH - 5).toFixed(1) };
  svgElement("text", { ...at, class: css, "text-anchor": anchor }, plot.frame).textContent = words;
}

function flatFrame(plot) {
  const title = (i) => plot.options.titles[plot.axes[i]];
  const [left, bottom] = [70, HIGH - 52];
  frameLine(plot, [left, bottom], [WIDE - 20, bottom], "axis");
  frameLine(plot, [left, bottom], [left, 16], "axis");
  for (let step = 0; step <= 4; step += 1) {
    const share = (step / 2 - 1) / plot.zoom;
    const [x, y] = plot.project([share, share, 0]);
    const value = (i) => {
      const [low, high] = plot.ranges[i];
      return shortNumber(low + ((share + 1) / 2) * (high - low));
    };
    frameText(plot, x, bottom + 16, value(0), "tick");
    frameText(plot, left - 6, y + 4, value(1), "tick", "end");
    if (step) frameLine(plot, [left, y], [WIDE - 20, y], "grid");
  }
  frameText(plot, (left + WIDE) / 2, bottom + 36, title(0), "");
  frameText(plot, 8, 12, title(1), "", "start");
}

function cubeFrame(plot) {
  const signs = [-1, 1];
  // The twelve edges of the cube.
  for (const a of signs) {
    for (const b of signs) {
      frameLine(plot, plot.project([-1, a, b]), plot.project([1, a, b]), "grid");
      frameLine(plot, plot.project([a, -1, b]), plot.project([a, 1, b]), "grid");
      frameLine(plot, plot.project([a, b, -1]), plot.project([a, b, 1]), "grid");
    }
  }
  // Words go to the outermost edge of each direction: the lowest of the floor for the
  // first two, the one most to the left for the third.
  const floor = plot.pitch >= 0 ? -1 : 1;
  const middle = (edge) => plot.project(edge.map((value) => value ?? 0));
  const lowest = (edges) => edges.reduce((a, b) => (middle(a)[1] > middle(b)[1] ? a : b));
  const leftmost = (edges) => edges.reduce((a, b) => (middle(a)[0] < middle(b)[0] ? a : b));
  const chosen = [
    lowest(signs.map((s) => [null, s, floor])),
    lowest(signs.map((s) => [s, null, floor])),
    leftmost(signs.flatMap((a) => signs.map((b) => [a, b, null]))),
  ];
  chosen.forEach((edge, i) => axisWords(plot, edge, i));
}

function axisWords(plot, edge, i) {
  const end = (sign) => plot.project(edge.map((value) => value ?? sign));
  const [from, to] = [end(-1), end(1)];
  frameLine(plot, from, to, "axis");
  const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
  const [outX, outY] = [middle[0] - WIDE / 2, middle[1] - HIGH / 2];
  const length = Math.hypot(outX, outY) || 1;
  const push = (point, by) => [point[0] + (by * outX) / length, point[1] + (by * outY) / length + 4];
  const anchor = outX < -20 ? "end" : outX > 20 ? "start" : "middle";
  const [low, high] = plot.ranges[i];
  const inward = (a, b) => [a[0] + 0.04 * (b[0] - a[0]), a[1] + 0.04 * (b[1] - a[1])];
  frameText(plot, ...push(inward(from, to), 10), shortNumber(low), "tick", anchor);
  frameText(plot, ...push(inward(to, from), 10), shortNumber(high), "tick", anchor);
  const title = plot.options.titles[plot.axes[i]];
  // The vertical axis has its title above: beside it there is no room on a phone.
  if (i === 2) {
    const top = from[1] < to[1] ? from : to;
    frameText(plot, top[0], top[1] - 14, title, "", "middle");
  } else frameText(plot, ...push(middle, 26), title, "", anchor === "middle" ? "middle" : anchor);
}

// Points in the space of two or three losses: turned by dragging or keys, zoomed,
// pointed at and chosen.

const SVG = "http://www.w3.org/2000/svg";
const [WIDE, HIGH] = [480, 400];
const NEAR = 16; // how many pixels from a point still mean that point

function svgElement(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

function htmlElement(name, attributes, ...children) {
  const element = document.createElement(name);
  Object.assign(element, attributes);
  element.append(...children);
  return element;
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const shortNumber = (value) => (value === null ? NOTHING : Number(value).toPrecision(3));

// A colour of the page's ramp for a share from 0 to 1; it follows light and dark.
function rampColour(share) {
  const [from, to] = share < 0.5 ? ["cold", "middle"] : ["middle", "hot"];
  const part = Math.round(100 * (share < 0.5 ? 2 * share : 2 * share - 1));
  return `color-mix(in srgb, var(--${to}) ${part}%, var(--${from}))`;
}

class Plot {
  // options: titles (of the losses), name, describe(i) for tips, choose(i) or null,
  // track (whether points are joined to a line), tools (elements for the toolbar),
  // yaw (where it is looked at from at first).
  constructor(container, options) {
    this.options = options;
    this.axes = options.titles.map((_, i) => i).slice(0, 3);
    this.flat = this.axes.length < 3;
    this.active = null;
    this.points = [];
    this.classes = () => "";
    this.svg = svgElement("svg", {
      viewBox: `0 0 ${WIDE} ${HIGH}`, tabindex: 0, role: "application",
      "aria-label": `${options.name}. Arrow keys go from point to point` +
        `${options.choose ? ", Enter chooses" : ""}${this.flat ? "" : ", Shift and arrows turn"}, plus and minus zoom.`,
    });
    if (this.flat) this.svg.classList.add("flat");
    this.frame = svgElement("g", {}, this.svg);
    this.lines = svgElement("g", {}, this.svg);
    this.dots = svgElement("g", {}, this.svg);
    this.tip = htmlElement("div", { className: "tip", hidden: true });
    this.tip.setAttribute("role", "status");
    container.append(this.toolbar(), this.svg, this.tip);
    this.listen();
    this.resetView();
  }

  toolbar() {
    const bar = htmlElement("div", { className: "tools" }, ...(this.options.tools || []));
    if (this.options.titles.length > 3) bar.append(...this.axisChoices());
    for (const [sign, words, act] of [
      ["+", "Zoom in", () => this.zoomBy(1.25)],
      ["\u2212", "Zoom out", () => this.zoomBy(0.8)],
      ["reset", "Reset the view", () => this.resetView()],
    ]) {
      const button = htmlElement("button", { type: "button", textContent: sign, title: words });
      button.setAttribute("aria-label", words);
      button.addEventListener("click", act);
      bar.append(button);
    }
    const hint = this.flat ? "Arrows: points" : "Drag or Shift+arrows: turn. Arrows: points";
    bar.append(htmlElement("p", { className: "keys", textContent: hint }));
    return bar;
  }

  axisChoices() {
    return this.axes.map((chosen, place) => {
      const select = htmlElement("select", {});
      select.setAttribute("aria-label", `Loss of axis ${place + 1}`);
      this.options.titles.forEach((title, i) => select.append(new Option(title, i, i === chosen, i === chosen)));
      select.addEventListener("change", () => {
        this.axes[place] = Number(select.value);
        this.fit();
      });
      return select;
    });
  }

  // Show other points, each with a value of every loss; colours are shares from 0 to 1.
  show(points, colours = null) {
    this.points = points;
    this.active = null;
    this.tip.hidden = true;
    this.lines.replaceChildren();
    this.dots.replaceChildren();
    if (this.options.track) {
      this.segments = points.slice(1).map((_, i) => {
        const line = svgElement("line", { class: "track" }, this.lines);
        line.style.stroke = rampColour(colours ? colours[i + 1] : 1);
        return line;
      });
      this.ends = ["marker", "marker last"].map((css) => svgElement("circle", { class: css, r: 5 }, this.dots));
      this.pointer = svgElement("circle", { class: "halo", r: 8 }, this.dots);
      this.circles = [];
    } else {
      this.circles = points.map((_, i) => svgElement("circle", { class: "point", "data-member": i }, this.dots));
    }
    this.fit();
  }

  // Scale every axis to what the points span.
  fit() {
    this.ranges = this.axes.map((axis) => {
      const values = this.points.map((point) => point[axis]).filter((value) => value !== null);
      if (!values.length) return [0, 1];
      const [low, high] = [Math.min(...values), Math.max(...values)];
      return high > low ? [low, high] : [low - 0.01, high + 0.01];
    });
    this.draw();
  }

  resetView() {
    Object.assign(this, { yaw: this.options.yaw ?? 0.7, pitch: 0.42, zoom: 1 });
    if (this.points.length) this.draw();
  }

  zoomBy(factor) {
    this.zoom = clamp(this.zoom * factor, 0.5, 12);
    this.draw();
  }

  turnBy(yaw, pitch) {
    if (this.flat) return;
    this.yaw += yaw;
    this.pitch = clamp(this.pitch + pitch, -1.5, 1.5);
    this.draw();
  }

  // From the cube [-1, 1]³ to the picture; the third number is nearness.
  project([x, y, z]) {
    if (this.flat) return [265 + 180 * this.zoom * x, 180 - 150 * this.zoom * y, 0];
    const across = x * Math.cos(this.yaw) - y * Math.sin(this.yaw);
    const away = x * Math.sin(this.yaw) + y * Math.cos(this.yaw);
    const size = 112 * this.zoom;
    return [
      WIDE / 2 + size * across,
      HIGH / 2 - 4 - size * (z * Math.cos(this.pitch) - away * Math.sin(this.pitch)),
      -away * Math.cos(this.pitch) - z * Math.sin(this.pitch),
    ];
  }

  place(point) {
    const scaled = this.axes.map((axis, i) => {
      const [low, high] = this.ranges[i];
      return (2 * (point[axis] - low)) / (high - low) - 1;
    });
    return this.project([...scaled, 0]);
  }

  draw() {
    this.positions = this.points.map((point) => (point.includes(null) ? null : this.place(point)));
    this.frame.replaceChildren();
    (this.flat ? flatFrame : cubeFrame)(this);
    this.circles.forEach((circle, i) => {
      const at = this.positions[i];
      circle.style.display = at ? "" : "none";
      if (!at) return;
      const css = this.classes(i);
      circle.setAttribute("class", `point ${css}${i === this.active ? " active" : ""}`);
      circle.setAttribute("cx", at[0].toFixed(1));
      circle.setAttribute("cy", at[1].toFixed(1));
      circle.setAttribute("r", ((css ? 7 : 4.6) * (1 + 0.1 * at[2])).toFixed(2));
      circle.style.opacity = css ? 1 : clamp(0.75 + 0.2 * at[2], 0.35, 1);
    });
    if (this.options.track) this.drawTrack();
    this.showTip();
  }

  drawTrack() {
    const put = (circle, at) => {
      circle.style.display = at ? "" : "none";
      if (at) [circle.cx.baseVal.value, circle.cy.baseVal.value] = at;
    };
    this.segments.forEach((line, i) => {
      const [from, to] = [this.positions[i], this.positions[i + 1]];
      line.style.display = from && to ? "" : "none";
      if (!from || !to) return;
      for (const [key, value] of [["x1", from[0]], ["y1", from[1]], ["x2", to[0]], ["y2", to[1]]]) {
        line.setAttribute(key, value.toFixed(1));
      }
    });
    put(this.ends[0], this.positions[0]);
    put(this.ends[1], this.positions[this.positions.length - 1]);
    put(this.pointer, this.active === null ? null : this.positions[this.active]);
  }

  setActive(index) {
    if (index === this.active) return;
    this.active = index;
    this.draw();
  }

  showTip() {
    const at = this.active === null ? null : this.positions[this.active];
    this.tip.hidden = !at;
    if (!at) return;
    this.tip.textContent = this.options.describe(this.active);
    const scale = this.svg.clientWidth / WIDE;
    const room = this.svg.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${clamp(at[0] * scale + 12, 0, Math.max(0, room))}px`;
    this.tip.style.top = `${this.svg.offsetTop + clamp(at[1] * scale + 12, 0, HIGH * scale - this.tip.offsetHeight)}px`;
  }

  nearest(event) {
    const box = this.svg.getBoundingClientRect();
    const scale = box.width / WIDE;
    let [best, distance] = [null, NEAR];
    this.positions.forEach((at, i) => {
      if (!at) return;
      const gap = Math.hypot(at[0] * scale - (event.clientX - box.left), at[1] * scale - (event.clientY - box.top));
      if (gap < distance) [best, distance] = [i, gap];
    });
    return best;
  }

  listen() {
    let drag = null;
    this.svg.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, y: event.clientY, moved: 0 };
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!drag) return this.setActive(this.nearest(event));
      const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
      drag = { x: event.clientX, y: event.clientY, moved: drag.moved + Math.abs(dx) + Math.abs(dy) };
      if (drag.moved > 4) this.turnBy(-dx / 120, dy / 120);
    });
    this.svg.addEventListener("pointerup", (event) => {
      const clicked = drag && drag.moved <= 4 ? this.nearest(event) : null;
      drag = null;
      if (clicked === null) return;
      this.setActive(clicked);
      if (this.options.choose) this.options.choose(clicked);
    });
    this.svg.addEventListener("pointercancel", () => { drag = null; });
    this.svg.addEventListener("pointerleave", () => this.setActive(null));
    this.svg.addEventListener("blur", () => this.setActive(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    // Only a plot in use takes the wheel: the page must scroll past the others.
    this.svg.addEventListener("wheel", (event) => {
      if (document.activeElement !== this.svg) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.1 : 1 / 1.1);
    }, { passive: false });
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (arrow && event.shiftKey) this.turnBy(-0.12 * arrow[0], 0.12 * arrow[1]);
    else if (arrow) this.step(arrow[0] + arrow[1]);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.25);
    else if (event.key === "-") this.zoomBy(0.8);
    else if (event.key === "0") this.resetView();
    else if (event.key === "Escape") this.setActive(null);
    else if ((event.key === "Enter" || event.key === " ") && this.active !== null && this.options.choose) {
      this.options.choose(this.active);
    } else return;
    event.preventDefault();
  }

  step(by) {
    const n = this.points.length;
    if (!n) return;
    const from = this.active === null ? (this.start ?? (by > 0 ? -1 : n)) : this.active;
    this.setActive((from + by + n) % n);
  }
}

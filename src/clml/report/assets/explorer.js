// Choosing a member of a front: by weights, by a rule, by pointing at it.

// The smallest weighted sum of the members that are clearly better than what they are
// compared with, or that one itself; ties go to the smaller geometric mean, then the
// smaller index. The same as ParetoFront.select(weights=...): tie_rank holds the order,
// clear_lead what is clear.
function chooseByWeights(front, weights) {
  const weighted = (values) => values.reduce((total, value, j) => total + value * weights[j], 0);
  const other = front.compared_with;
  const sums = front.validation.map(weighted);
  let best = null;
  sums.forEach((sum, i) => {
    const clear = other === null || i === other ||
      sums[other] - sum > weighted(front.clear_lead[i]);
    const better = best === null || sum < best.sum ||
      (sum === best.sum && front.tie_rank[i] < front.tie_rank[best.i]);
    if (clear && better) best = { i, sum };
  });
  return best.i;
}

// Precision, recall and F1 of a label; null where there is nothing to divide by.
function labelScores(hits, predicted, relevant) {
  const ratio = (part, whole) => (whole ? part / whole : null);
  return [ratio(hits, predicted), ratio(hits, relevant), ratio(2 * hits, predicted + relevant)];
}

// What decides the rows of a member beside its numbers, as words that go behind others.
function ruleOf(front, member) {
  return front.row_rules && front.row_rules[member] ? `, rule ${front.row_rules[member]}` : "";
}

function ofDefault(front, key) {
  if (front.default[key] || front.default.index === null) return front.default[key];
  return front[key] ? front[key][front.default.index] : null;
}

function setNumber(cell, value, digits, signed = false) {
  if (value === null || value === undefined) {
    cell.textContent = NOTHING;
    delete cell.dataset.value;
    return;
  }
  const text = (signed && value >= 0 ? "+" : "") + value.toFixed(digits);
  cell.textContent = text.replace("-", "\u2212");
  cell.dataset.value = value;
}

// A change, coloured by whether it is one for the better.
function setChange(cell, mine, theirs, digits, smallerIsBetter) {
  const known = mine !== null && theirs !== null && theirs !== undefined;
  const change = known ? mine - theirs : null;
  setNumber(cell, change, digits, true);
  const shown = known && Math.abs(change) >= 0.5 * 10 ** -digits;
  cell.classList.toggle("better", shown && change < 0 === smallerIsBetter);
  cell.classList.toggle("worse", shown && change < 0 !== smallerIsBetter);
}

class Explorer {
  constructor(article, front) {
    Object.assign(this, { article, front, member: front.start });
    this.sliders = Array.from(article.querySelectorAll("input[type=range]"));
    this.status = article.querySelector(".status");
    this.rows = (name) => article.querySelectorAll(`tr[data-${name}]`);
    this.makePlot();
    for (const slider of this.sliders) slider.addEventListener("input", () => this.weigh());
    for (const button of article.querySelectorAll(".presets button")) {
      button.addEventListener("click", () => this.choose(Number(button.dataset.member), button.dataset.rule));
    }
    for (const row of this.rows("member")) this.makeRowChoose(row);
    this.update(front.default.index === null ? "geometric mean" : front.default.name);
  }

  makePlot() {
    const container = this.article.querySelector("[data-plot=front]");
    const { front } = this;
    if (front.loss_names.length < 2) {
      container.append(htmlElement("p", { textContent: "One loss has one best model: there is nothing to draw." }));
      return;
    }
    this.plot = new Plot(container, {
      titles: front.loss_titles,
      name: `Front of ${front.validation.length} models`,
      choose: (i) => this.choose(i, "chosen in the plot"),
      describe: (i) => [
        `member ${i}${i === front.default.index ? " (default)" : ""}${ruleOf(front, i)}`,
        ...front.loss_titles.map((title, j) => `${title} ${shortNumber(front.validation[i][j])}` +
          `${front.test ? `, test ${shortNumber(front.test[i][j])}` : ""}`),
      ].join("\n"),
    });
    this.plot.classes = (i) => (i === this.member ? "chosen" : i === front.default.index ? "default" : "");
    this.plot.show(front.validation);
    const keys = [["of-chosen", "chosen"], ["", "other members"]];
    if (front.default.index !== null) keys.splice(1, 0, ["of-default", "default"]);
    const legend = htmlElement("div", { className: "legend" });
    legend.append(...keys.map(([css, words]) => htmlElement("span", { className: `key ${css}`, textContent: words })));
    container.append(legend);
  }

  makeRowChoose(row) {
    const index = Number(row.dataset.member);
    const button = htmlElement("button", { type: "button", textContent: index, title: "Choose this member" });
    button.setAttribute("aria-label", `Choose member ${index}`);
    button.addEventListener("click", () => this.choose(index, "chosen in the table"));
    row.cells[0].replaceChildren(button);
  }

  weigh() {
    const weights = this.sliders.map((slider) => Number(slider.value));
    this.sliders.forEach((slider, i) => { slider.nextElementSibling.textContent = weights[i].toFixed(2); });
    if (weights.every((weight) => weight === 0)) {
      this.status.textContent = "All weights are 0: raise one of them.";
      return;
    }
    this.choose(chooseByWeights(this.front, weights), "by weights");
  }

  choose(member, how) {
    this.member = member;
    this.update(how);
    if (this.plot) {
      this.plot.start = member;
      this.plot.draw();
    }
  }

  update(how) {
    const { front, member } = this;
    this.status.textContent = `Member ${member} of ${front.validation.length}: ${how}${ruleOf(front, member)}`;
    this.article.dataset.chosen = member;
    for (const button of this.article.querySelectorAll(".presets button")) {
      button.setAttribute("aria-pressed", Number(button.dataset.member) === member);
    }
    for (const row of this.rows("member")) {
      row.classList.toggle("chosen", Number(row.dataset.member) === member);
    }
    this.updateLosses();
    if (front.labels) this.updateLabels();
  }

  // One row for each loss on the rows that choose, then one for each on test rows.
  updateLosses() {
    const o = this.front.loss_names.length;
    for (const row of this.rows("loss")) {
      const place = Number(row.dataset.loss);
      const part = place < o ? "validation" : "test";
      const theirs = ofDefault(this.front, part);
      const mine = this.front[part][this.member][place % o];
      const before = theirs ? theirs[place % o] : null;
      setNumber(row.cells[1], mine, 4);
      setNumber(row.cells[2], before, 4);
      setChange(row.cells[3], mine, before, 4, true);
    }
  }

  updateLabels() {
    const { front, member } = this;
    const [hits, predicted] = [ofDefault(front, "hits"), ofDefault(front, "predicted")];
    for (const row of this.rows("label")) {
      const k = Number(row.dataset.label);
      const counted = front.predicted[member][k];
      const scores = labelScores(front.hits[member][k], counted, front.relevant[k]);
      const before = hits && predicted ? labelScores(hits[k], predicted[k], front.relevant[k])[2] : null;
      setNumber(row.cells[2], counted, 0);
      scores.forEach((score, j) => setNumber(row.cells[3 + j], score, 3));
      setChange(row.cells[6], scores[2], before, 3, false);
    }
  }
}

// The run in the space of its losses, epoch by epoch.

function labelledSelect(words, options) {
  const select = htmlElement("select", {});
  options.forEach((name, i) => select.append(new Option(name, i)));
  return [select, htmlElement("label", {}, `${words} `, select)];
}

function makeTrajectory(article, data) {
  const container = article.querySelector("[data-plot=trajectory]");
  if (!container) return;
  const [series, seriesLabel] = labelledSelect("Losses of the", data.series.map((one) => one.name));
  const shares = [["all epochs", 1], ["last half", 0.5], ["last tenth", 0.1]];
  const [part, partLabel] = labelledSelect("Show", shares.map(([name]) => name));
  let kept = [];
  const plot = new Plot(container, {
    titles: data.loss_titles,
    name: "Trajectory of the run",
    track: true,
    choose: null,
    yaw: -0.45, // all losses fall together: from the side that is seen best
    tools: [seriesLabel, partLabel],
    describe: (i) => {
      const epoch = kept[i];
      const losses = data.series[series.value].values[epoch];
      const lines = data.loss_titles.map((title, j) => `${title} ${shortNumber(losses[j])}`);
      const colour = data.colour.name === "epoch" ? [] : [`${data.colour.name} ${shortNumber(data.colour.values[epoch])}`];
      const measure = data.measure ? [`measure ${shortNumber(data.measure[epoch])}`] : [];
      return [`epoch ${data.epochs[epoch]}`, ...lines, ...colour, ...measure].join("\n");
    },
  });
  const legend = htmlElement("div", { className: "legend" });
  container.append(legend);
  const show = () => {
    const n = data.epochs.length;
    const first = Math.min(n - 1, Math.floor(n * (1 - shares[part.value][1])));
    kept = data.epochs.map((_, i) => i).slice(Math.min(first, Math.max(0, n - 2)));
    const values = kept.map((i) => data.colour.values[i]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const colours = values.map((value) => (high > low ? (value - low) / (high - low) : 1));
    plot.show(kept.map((i) => data.series[series.value].values[i]), colours);
    legend.replaceChildren(shortNumber(low), htmlElement("i", {}), shortNumber(high));
  };
  series.addEventListener("change", show);
  part.addEventListener("change", show);
  show();
}

// Brings the page to life once it is read.

document.documentElement.classList.add("script");
const report = JSON.parse(document.getElementById("report-data").textContent);

for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);

// A run is drawn when it is first shown: there may be many.
const drawn = new Set();
function showRun(place) {
  for (const article of document.querySelectorAll("article.run")) {
    article.hidden = Number(article.dataset.run) !== place;
  }
  if (drawn.has(place)) return;
  drawn.add(place);
  const article = document.getElementById(`run${place}`);
  const run = report.runs[place];
  if (run.front) new Explorer(article, run.front);
  if (run.trajectory) makeTrajectory(article, run.trajectory);
}

const choice = document.getElementById("run-choice");
if (choice) choice.addEventListener("change", () => showRun(Number(choice.value)));
// A reloaded page keeps what was chosen in it.
if (report.runs.length) showRun(choice ? Number(choice.value) : 0);

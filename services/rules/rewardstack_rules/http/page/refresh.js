let last = null, lostSince = null, heard = null, timer = 0, paused = false;

function say(text, kind) {
  if (at("standing").textContent !== text) at("standing").textContent = text; // screen readers announce only changes
  at("standing").className = `badge ${kind}`;
}

function show(status) {
  const seconds = Math.max(1, status.at - Math.max(status.first_minute, status.scope.since));
  const down = status.services.filter((one) => one.up === false);
  say(down.length ? `Down: ${[...new Set(down.map((one) => one.service))].join(", ")}` : "All services answer", down.length ? "bad" : "good");
  const servers = status.scope.replicas.length;
  const hour = status.samples.hour, all = sum(Object.values(hour));
  at("failed").hidden = !hour.failed;
  at("failed").textContent = `${share(hour.failed, all)} of samples failed, last hour`;
  at("main").className = "";
  at("version").textContent = `version ${status.version}, ${status.scope.shared ? plural(servers, "server", "servers") : "this server alone"} ·`;
  at("note").hidden = !status.scope.note;
  at("note").textContent = status.scope.note && `${status.scope.note}.`;
  showErrors(status);
  showTiles(status, seconds);
  showRewards(status);
  showLatency(status);
  showSamples(status);
  showJobs(status);
  showRoutes(status, seconds);
  showServices(status);
  showSpending(status);
  showVerifiers(status);
  showCache(status);
  showPaths(status);
  showExamples(status);
}

function tellTime() {
  at("updated").textContent = heard ? `figures of ${clockWithSeconds(heard)}${paused ? ", paused" : ""}` : "";
}

async function listen() {
  try {
    const reply = await fetch(`${location.origin}/v1/status${at("examples-fold").open ? "?examples=1" : ""}`, { cache: "no-store", signal: AbortSignal.timeout(15000) });
    if (!reply.ok) throw new Error(reply.status === 401 ? "it requires a key; reload the page" : `it answers ${reply.status}`);
    last = await reply.json();
    lostSince = null;
    heard = new Date();
    return true;
  } catch (error) {
    lostSince = lostSince || new Date();
    const why = error instanceof TypeError ? "" : ` (${error.message})`;
    say(`No answer from the reward server since ${clockWithSeconds(lostSince)}${why}${last ? "; the figures below are old" : ""}`, "bad");
    at("main").className = last ? "old" : "";
    at("failed").hidden = true;
    return false;
  }
}

async function refresh() {
  clearTimeout(timer);
  const answered = await listen();
  tellTime();
  plan();
  if (!answered) return;
  try {
    show(last);
  } catch (error) {
    console.error(error);
    say(`This page cannot show the figures: ${error.message}; reload it`, "bad");
  }
}

function plan() {
  clearTimeout(timer);
  if (!paused && !document.hidden) timer = setTimeout(refresh, REFRESH);
}

at("pause").addEventListener("click", () => {
  paused = !paused;
  at("pause").textContent = paused ? "Resume" : "Pause";
  tellTime();
  if (paused) clearTimeout(timer); else refresh();
});
document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else if (!paused) refresh(); });
for (const fold of document.querySelectorAll(".fold")) fold.open = innerWidth > 700;
at("examples-fold").addEventListener("toggle", () => { if (at("examples-fold").open) refresh(); });
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { if (last) { showSamples(last); showLatency(last); } }, 150); });
refresh();

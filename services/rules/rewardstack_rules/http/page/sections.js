// The sections

function showTiles(status, seconds) {
  const hour = status.samples.hour, cached = status.samples.cached.hour, all = sum(Object.values(hour));
  const tokens = sum(status.spending.routes.map((one) => one.hour.prompt_tokens + one.hour.completion_tokens));
  const requests = sum(status.spending.routes.map((one) => one.hour.requests));
  const open = status.jobs.rewardstack_jobs_open || {};
  tiles("tiles", [
    ["Samples", whole.format(all), all ? `${rate(all, seconds)} on average` : "none yet"],
    ["Scored (ok)", share(hour.ok, all), `${whole.format(hour.failed)} failed, ${whole.format(hour.unscored)} unscored, ${whole.format(hour.fallback)} fallback`],
    ["From the cache", share(cached, all), plural(cached, "sample", "samples")],
    ["Model tokens", brief.format(tokens), plural(requests, "request", "requests")],
    ["Open jobs", "running" in open ? whole.format(open.running + open.queued) : "–", "running" in open ? `${whole.format(open.running)} running, ${whole.format(open.queued)} queued` : "no queue"],
  ]);
}

function showServices(status) {
  table("services", "Services", [
    { title: "Service", kind: "name half", label: "", show: (one) => one.service },
    { title: "State", kind: "half", label: "", show: (one) => mark(one.up) },
    { title: "Address", kind: "full", label: "", show: (one) => named(showAddress(one.address), one.problem) },
    { title: "Model", kind: "full", show: (one) => one.model, mark: (one) => (one.model ? "" : "gone") },
  ], status.services, "none");
}

function named(name, problem) {
  return make("span", {}, name, problem ? make("span", { class: "problem" }, problem) : "");
}

const partsOf = (parts) => Object.entries(parts).map(([name, value]) => `${name} ${decimals.format(value)}`).join(", ");

function showRoutes(status, seconds) {
  const count = (name, title) => number(title || name, (one) => one.hour[name], { mark: (one) => (name === "failed" && one.hour.failed ? "ill" : "") });
  table("routes", "Routes over the last hour", [
    { title: "Route", kind: "name full", label: "", show: (one) => one.route },
    number("Samples", (one) => sum(STATUSES.map((name) => one.hour[name]))),
    { title: "Average rate", kind: "n", show: (one) => rate(sum(STATUSES.map((name) => one.hour[name])), seconds) },
    { title: "p50", kind: "n", show: (one) => duration(one.latency_s.p50) },
    { title: "p95", kind: "n", show: (one) => duration(one.latency_s.p95) },
    ...STATUSES.map((name) => count(name)),
    number("from cache", (one) => one.cached.hour),
    number("since start", (one) => sum(STATUSES.map((name) => one.total[name])), { label: "all" }),
    { title: "Last hour", kind: "half", label: "", show: spark },
  ], status.routes, "Nothing has been scored since the server started.");
}

function showErrors(status) {
  const causes = [...status.causes].sort((a, b) => (b.status === "failed") - (a.status === "failed"));
  const down = status.services.filter((one) => one.up === false).map((one) => (
    { description: `${one.service} down`, problem: one.problem, route: one.address, status: "down" }));
  table("causes", "Errors over the last hour", [
    { title: "Cause", kind: "name most", label: "", show: (one) => named(one.description, one.problem) },
    { title: "Last", kind: "word", label: "", show: (one) => ("hour" in one ? make("span", {}, narrow("last "), clock(one.last_minute)) : "now") },
    { title: "Route or address", kind: "half", label: "", show: (one) => ("hour" in one ? one.route : showAddress(one.route)), mark: (one) => ("hour" in one ? "" : "most") },
    { title: "Status", kind: "word", label: "", show: (one) => one.status, mark: (one) => ("hour" in one ? "gone" : "") },
    { title: "Samples", kind: "n half", label: "", show: (one) => ("hour" in one ? make("span", {}, whole.format(one.hour), narrow(` ${one.hour === 1 ? "sample" : "samples"} ${one.status}`)) : ""), mark: (one) => ("hour" in one ? "" : "gone") },
  ], [...down, ...causes], sum(Object.values(status.samples.hour)) ? "None: every sample of the last hour was scored." : "None: no samples in the last hour.");
  at("causes-help").hidden = !(down.length || status.causes.length);
}

// Why a route's rewards teach a policy nothing; empty if they do, or if there are too few to say.
function noSignal(rewards) {
  if (rewards.count > 1 && rewards.std === 0) return `no signal: all rewards are ${decimals.format(rewards.mean)}`;
  return rewards.groups > 1 && rewards.groups_without_spread === rewards.groups ? "no signal: all groups are without spread" : "";
}

function showRewards(status) {
  const routes = status.routes.filter((one) => one.rewards.hour.count), of = (show) => (one) => show(one.rewards.hour, one);
  const figure = (title, show, more) => ({ title, kind: "n", show: of(show), ...more });
  const known = (value) => (value === null ? "–" : value > 0 && value < 0.0005 ? "< 0.001" : decimals.format(value));
  table("rewards", "Rewards over the last hour", [
    { title: "Route", kind: "name full", label: "", show: of((rewards, one) => named(one.route, noSignal(rewards))) },
    { title: "Distribution", kind: "half", label: "", show: of(bars) },
    { title: "Mean per minute", kind: "gone", show: (one) => trend(one.minutes.reward) },
    figure("Groups without spread", (rewards) => (rewards.groups ? `${whole.format(rewards.groups_without_spread)} of ${whole.format(rewards.groups)}` : "–"), { label: "No spread" }),
    figure("Rewards", (rewards) => whole.format(rewards.count)),
    figure("Mean", (rewards) => known(rewards.mean)),
    figure("Std. dev.", (rewards) => known(rewards.std)),
    figure("Share at 0", (rewards) => share(rewards.zeros, rewards.count), { label: "At 0" }),
    figure("Share at max.", (rewards) => (rewards.maxima === null ? "–" : share(rewards.maxima, rewards.count)), { label: "At max." }),
    { title: "Parts (mean)", kind: "full", show: of((rewards) => partsOf(rewards.parts)), mark: of((rewards) => (Object.keys(rewards.parts).length ? "" : "gone")) },
  ], routes, sum(Object.values(status.samples.total)) ? "No rewards in the last hour." : "Nothing has been scored since the server started.");
}

const ENDED = 3; // jobs that have ended and are listed

// When a running job ends if the rest takes as long per sample as what is done.
function expectedEnd(job, now) {
  if (!job.started_at || !job.done) return "–";
  const started = Date.parse(job.started_at) / 1000;
  return `about ${clock(started + ((now - started) * job.items) / job.done)}`;
}

function showJobs(status) {
  const known = document.getElementById("jobs-known");
  if (known) known.replaceChildren(...status.own_jobs.map((one) => make("option", { value: one.job_id })));
  const jobs = status.jobs;
  if (!("rewardstack_queue_up" in jobs)) {
    at("jobs").replaceChildren(make("p", { class: "empty" }, "This server has no queue (REWARD_QUEUE_URL)."));
    return;
  }
  const open = jobs.rewardstack_jobs_open, own = status.own_jobs.filter((one) => !one.ended_at).length;
  const others = open ? open.running + open.queued - own : 0;
  const none = !open ? "The queue does not answer." : others > 0 ? `${plural(others, "job of another key is", "jobs of other keys are")} open.` : "No job yet.";
  table("jobs", "Jobs", [
    { title: "Job", kind: "name full", label: "", show: (one) => named(one.job_id, one.error) },
    { title: "Status", show: (one) => one.status },
    { title: "Progress", kind: "half", label: "", show: (one) => make("progress", { max: 1, value: one.progress, "aria-label": `${one.done} of ${one.items} samples` }) },
    number("failed", (one) => one.statuses.failed, { mark: (one) => (one.statuses.failed ? "ill" : "") }),
    { title: "Samples", kind: "n half", show: (one) => `${whole.format(one.done)} of ${whole.format(one.items)} (${share(one.done, one.items)})` },
    { title: "Submitted", kind: "n", show: (one) => clock(Date.parse(one.submitted_at) / 1000) },
    { title: "End", kind: "n", show: (one) => (one.ended_at ? clock(Date.parse(one.ended_at) / 1000) : expectedEnd(one, status.at)) },
  ], status.own_jobs.filter((one, i) => !one.ended_at || i < own + ENDED), none);
  const items = jobs.rewardstack_job_samples_total;
  if (items) {
    const all = sum(Object.values(items)), told = STATUSES.map((name) => `${whole.format(items[name])} ${name}`).join(", ");
    at("jobs").append(make("p", { class: "soft" }, `Samples of all jobs since the queue was created: ${whole.format(all)}${all ? ` (${told}). They are in no other figure of this page` : ""}.`));
  }
  if (open && status.own_jobs.length && others > 0) at("jobs").append(make("p", { class: "soft" }, none.replace("are open", "are open as well").replace("is open", "is open as well")));
}

function showSpending(status) {
  const caps = Object.entries(status.spending.caps).filter(([, most]) => most);
  table("spending", "Requests and tokens over the last hour", [
    { title: "Route", kind: "name full", label: "", show: (one) => one.route },
    number("Requests", (one) => one.hour.requests),
    number("Prompt tokens", (one) => one.hour.prompt_tokens, { label: "prompt" }),
    number("Completion tokens", (one) => one.hour.completion_tokens, { label: "completion" }),
    number("Tokens unknown", (one) => one.hour.uncounted, { label: "unknown" }),
    number("Requests since start", (one) => one.total.requests, { label: "all requests" }),
    number("Tokens since start", (one) => one.total.prompt_tokens + one.total.completion_tokens, { label: "all tokens" }),
  ], status.spending.routes, "The reward servers have sent no request to a judge or an embedding server; requests of jobs are not counted here. Samples that fail fast send none.");
  const told = caps.length ? `Limits of a run: ${caps.map(([name, most]) => `${whole.format(most)} (${name})`).join(", ")}.` : "No limit is set (REWARDSTACK_MAX_REQUESTS, REWARDSTACK_MAX_TOKENS).";
  at("spending").append(make("p", { class: "soft" }, told));
}

function showVerifiers(status) {
  const told = status.verifiers, of = (name) => told[`rewardstack_verifier_${name}`];
  if (!of("busy")) return facts("verifiers", [["State", mark(false)]]);
  facts("verifiers", [
    ["Isolated processes", whole.format(of("processes"))],
    ["Busy: fast, slow", `${whole.format(of("busy").fast)}, ${whole.format(of("busy").slow)}`],
    ["Samples waiting: fast, slow", `${whole.format(of("waiting").fast)}, ${whole.format(of("waiting").slow)}`],
    ["Killed: timeout, died", `${whole.format(of("killed_total").timeout)}, ${whole.format(of("killed_total").died)}`],
    ["Recycled", whole.format(of("recycled_total"))],
  ]);
}

function showCache(status) {
  const of = (name) => status.cache[`rewardstack_cache_${name}`];
  const hits = status.samples.cached.total, all = sum(Object.values(status.samples.total));
  const found = ["Hits since start", all ? `${whole.format(hits)} of ${whole.format(all)} (${share(hits, all)})` : "–"];
  if (of("up") === undefined) return facts("cache", [["Redis", "none (REWARD_CACHE_URL)"], found]);
  if (!of("up")) return facts("cache", [["Redis", mark(false)], found]);
  facts("cache", [
    ["Redis", mark(true)],
    found,
    ["Memory", of("limit_bytes") ? `${bytes(of("bytes"))} of ${bytes(of("limit_bytes"))}` : bytes(of("bytes"))],
    ["Evicted", whole.format(of("evicted_total"))],
  ]);
}

function showPaths(status) {
  const codes = (one, test) => sum(Object.entries(one.hour).filter(([code]) => test(code)).map(([, count]) => count));
  table("paths", "Paths over the last hour", [
    { title: "Path", kind: "name full", label: "", show: (one) => one.endpoint },
    number("Requests", (one) => sum(Object.values(one.hour))),
    number("refused (4xx)", (one) => codes(one, (code) => code[0] === "4"), { label: "4xx" }),
    number("failed (5xx)", (one) => codes(one, (code) => code[0] === "5"), { label: "5xx", mark: (one) => (codes(one, (code) => code[0] === "5") ? "ill" : "") }),
    { title: "p50", kind: "n gone", show: (one) => duration(one.latency_s.p50) },
    { title: "p95", kind: "n", show: (one) => duration(one.latency_s.p95) },
  ], status.endpoints, "No requests yet.");
}

// Samples of the caller's key in REWARDSTACK_SAMPLE_LOG.
function showExamples(status) {
  at("examples-section").hidden = status.examples === null;
  if (!at("examples-fold").open || !status.examples) return;
  const shown = status.examples.flatMap(extremes);
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const long = (name, more) => ({ title: name, kind: "full", show: ([, one]) => make("span", { class: "text" }, text(one[more] ?? "")), mark: ([, one]) => ((one[more] ?? "") === "" ? "gone" : "") });
  table("examples", "Samples with the highest and lowest rewards of the last hour", [
    { title: "Route", kind: "name half", label: "", show: ([, one]) => showAddress(one.route) },
    { title: "Rank", kind: "word", label: "", show: ([rank]) => rank },
    { title: "Reward", kind: "n", show: ([, one]) => decimals.format(one.value) },
    { title: "Time", kind: "n gone", show: ([, one]) => clock(one.at) },
    long("Problem", "problem"),
    { ...long("Response", "solution_str"), label: "" },
    long("Reference", "ground_truth"),
    { title: "Parts and reason", kind: "full", show: ([, one]) => [partsOf(one.parts || {}), one.reason].filter(Boolean).join("; ") },
  ], shown, "No sample of your key was logged in the last hour.");
}

// Rows of a route; the lowest rewards are left out if all rewards are equal.
function extremes({ highest, lowest }) {
  if ([...highest, ...lowest].every((one) => one.value === highest[0].value)) return highest.map((one) => ["all equal", one]);
  return [...highest.map((one) => ["highest", one]), ...lowest.map((one) => ["lowest", one])];
}

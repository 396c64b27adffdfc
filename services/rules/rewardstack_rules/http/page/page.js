"use strict";
// Whatever the server tells is put into the page as text or as an attribute, never as markup.
const REFRESH = 5000, STATUSES = ["ok", "fallback", "unscored", "failed"], LINES = 4;
const SVG = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en"), three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const measured = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const brief = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function make(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function draw(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = (date) => date.toLocaleTimeString("en-GB");
const plural = (count, one, many) => `${whole.format(count)} ${count === 1 ? one : many}`;

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return `${measured.format(seconds * 1000)} ms`;
  return seconds < 120 ? `${measured.format(seconds)} s` : `${whole.format(Math.round(seconds / 60))} min`;
}

function round(seconds) {
  return seconds < 1 ? `${three.format(seconds * 1000)} ms` : `${three.format(seconds)} s`;
}

function bytes(count) {
  return count >= 2 ** 30 ? `${three.format(count / 2 ** 30)} GiB` : `${three.format(count / 2 ** 20)} MiB`;
}

// A column: its title, what it shows of a row (text or an element), its class, and its title on a narrow screen.
function table(where, caption, columns, rows, empty) {
  const place = at(where);
  if (!rows.length) {
    place.replaceChildren(make("p", { class: "empty" }, empty));
    return;
  }
  const head = columns.map((one) => make("th", { scope: "col", role: "columnheader", class: one.kind || "" }, one.title));
  const lines = rows.map((row) => make("tr", { role: "row" }, ...columns.map((one) => cell(one, row))));
  place.className = "wide";
  place.replaceChildren(make("table", { role: "table", "aria-label": caption },
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...head)),
    make("tbody", { role: "rowgroup" }, ...lines)));
}

function cell(column, row) {
  const shown = column.show(row);
  const kind = [column.kind, column.mark && column.mark(row), shown === "0" ? "zero" : ""].filter(Boolean).join(" ");
  const attributes = { role: "cell", class: kind };
  if (column.label !== "") attributes["data-label"] = column.label || column.title;
  return make("td", attributes, shown);
}

const number = (title, count, more) => ({ title, kind: "n", show: (row) => whole.format(count(row)), ...more });

function tiles(place, entries) {
  at(place).replaceChildren(...entries.map(([name, value, below]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value), make("dd", {}, below))));
}

function facts(place, entries) {
  at(place).replaceChildren(...entries.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function mark(up) {
  const [kind, word] = up === null ? ["unknown", "not asked"] : up ? ["up", "up"] : ["down", "down"];
  return make("span", { class: `mark ${kind}` }, word);
}

// Plots

function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

// The part of the height, from 0 to 1, at which a value stands, and the values that have a line.
function linear(most) {
  return { part: (value) => value / most, ticks: [0, most / 2, most] };
}

function logarithmic(least, most) {
  const low = Math.floor(Math.log10(least)), high = Math.max(low + 1, Math.ceil(Math.log10(most)));
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return { part: (value) => Math.max(0, (Math.log10(value) - low) / (high - low)), ticks };
}

function frame(place, scale, label, told, first) {
  const width = Math.max(280, at(place).clientWidth || 600), height = 190, left = 52, bottom = 22, top = 8;
  const x = (minute) => left + (minute * (width - left - 4)) / 60, y = (value) => top + (height - bottom - top) * (1 - scale.part(value));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": told });
  for (const tick of scale.ticks) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - 4, y1: y(tick), y2: y(tick) }));
    svg.append(draw("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, label(tick)));
  }
  for (const minute of [0, 15, 30, 45, 60]) {
    const anchor = minute === 0 ? "start" : minute === 60 ? "end" : "middle";
    svg.append(draw("text", { x: x(minute), y: height - 4, "text-anchor": anchor }, minute === 60 ? "now" : clock(first + 60 * minute)));
  }
  return { svg, x, y, width, height };
}

// Shows below a plot what stands at the pointer.
function readable(plot, read, told) {
  const cursor = draw("rect", { class: "cursor", y: 8, height: 160, width: plot.x(1) - plot.x(0), visibility: "hidden" });
  plot.svg.append(cursor);
  plot.svg.addEventListener("pointermove", (event) => {
    const box = plot.svg.getBoundingClientRect();
    const minute = Math.floor(((event.clientX - box.left) / box.width * plot.width - plot.x(0)) / (plot.x(1) - plot.x(0)));
    if (minute < 0 || minute > 59) return;
    cursor.setAttribute("x", plot.x(minute));
    cursor.setAttribute("visibility", "visible");
    read.textContent = told(minute);
  });
  plot.svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    read.textContent = "";
  });
}

function key(entries) {
  return make("ul", { class: "legend" }, ...entries.map(([shape, text]) =>
    make("li", {}, draw("svg", { viewBox: "0 0 18 10", "aria-hidden": "true" }, shape), text)));
}

function showSamples(status) {
  const counts = STATUSES.map((name) => Array.from({ length: 60 }, (_, minute) => sum(status.routes.map((one) => one.minutes[name][minute]))));
  const totals = counts.map(sum), tall = counts[0].map((_, minute) => sum(counts.map((one) => one[minute])));
  const most = Math.max(2, ceiling(Math.max(...tall)));
  const told = `Samples a minute over the last hour: ${STATUSES.map((name, i) => `${whole.format(totals[i])} ${name}`).join(", ")}; at most ${whole.format(Math.max(...tall))} in a minute`;
  const plot = frame("samples", linear(most), (value) => brief.format(value), told, status.first_minute);
  for (let minute = 0; minute < 60; minute++) {
    let below = 0;
    STATUSES.forEach((name, i) => {
      const count = counts[i][minute];
      if (!count) return;
      const low = plot.y(below), high = plot.y(below + count);
      plot.svg.append(draw("rect", { class: `f-${name}`, x: plot.x(minute) + 0.5, width: plot.x(1) - plot.x(0) - 1, y: high, height: Math.max(1, low - high) }));
      below += count;
    });
  }
  const read = make("p", { class: "read" });
  readable(plot, read, (minute) => `${clock(status.first_minute + 60 * minute)}: ${STATUSES.map((name, i) => `${whole.format(counts[i][minute])} ${name}`).join(", ")}`);
  const shapes = STATUSES.map((name, i) => [draw("rect", { class: `f-${name}`, width: 18, height: 10, rx: 2 }), `${name} ${whole.format(totals[i])}`]);
  const rows = tall.map((_, minute) => [clock(status.first_minute + 60 * minute), ...counts.map((one) => whole.format(one[minute]))]);
  put("samples", plot.svg, key(shapes), read, asTable("Samples a minute", ["Minute", ...STATUSES], rows.filter((_, minute) => tall[minute])));
}

function showLatency(status) {
  const shown = status.routes.filter((one) => one.minutes.p95_s.some((value) => value !== null)).slice(0, LINES);
  const values = shown.flatMap((one) => one.minutes.p95_s.filter((value) => value !== null));
  const scale = values.length ? logarithmic(Math.min(...values), Math.max(...values)) : logarithmic(0.001, 1);
  const told = shown.length ? `Latency by route, 95th percentile of the hour: ${shown.map((one) => `${one.route} ${duration(one.latency_s.p95)}`).join(", ")}` : "Latency by route: no samples in the last hour";
  const plot = frame("latency", scale, round, told, status.first_minute);
  shown.forEach((one, i) => plot.svg.append(draw("path", { class: `s-${i}`, d: line(plot, one.minutes.p95_s) })));
  const read = make("p", { class: "read" });
  readable(plot, read, (minute) => `${clock(status.first_minute + 60 * minute)}: ${shown.map((one) => `${one.route} ${duration(one.minutes.p95_s[minute])}`).join(", ")}`);
  const shapes = shown.map((one, i) => [draw("path", { class: `s-${i}`, d: "M0 5H18" }), one.route]);
  const rows = Array.from({ length: 60 }, (_, minute) => [clock(status.first_minute + 60 * minute), ...shown.map((one) => duration(one.minutes.p95_s[minute]))]);
  put("latency", plot.svg, shown.length ? key(shapes) : make("p", { class: "empty" }, "No samples in the last hour."), read,
    shown.length ? asTable("Latency a minute", ["Minute", ...shown.map((one) => one.route)], rows.filter((_, minute) => shown.some((one) => one.minutes.p95_s[minute] !== null))) : null);
}

function line(plot, values) {
  let path = "", pen = false;
  values.forEach((value, minute) => {
    if (value === null) { pen = false; return; }
    const x = plot.x(minute + 0.5), y = plot.y(value);
    path += pen ? `L${x} ${y}` : `M${x} ${y}h.01`;
    pen = true;
  });
  return path;
}

function asTable(caption, titles, rows) {
  if (!rows.length) return null;
  const head = titles.map((title, i) => make("th", { scope: "col", class: i ? "n" : "" }, title));
  const body = rows.reverse().map((row) => make("tr", {}, ...row.map((text, i) => make("td", { class: i ? "n" : "" }, text))));
  return make("details", {}, make("summary", {}, "As a table"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${caption}, as a table` },
      make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))));
}

// Puts a plot in its place; a table that is open stays open, where it was scrolled to, and the focus stays in it.
function put(place, ...parts) {
  const before = at(place).querySelector("details");
  const scrolled = before && before.open ? before.querySelector(".scroll").scrollTop : null;
  const focused = before && before.contains(document.activeElement) ? document.activeElement.className : null;
  at(place).replaceChildren(...parts.filter((part) => part !== null));
  const after = at(place).querySelector("details");
  if (scrolled !== null && after) { after.open = true; after.querySelector(".scroll").scrollTop = scrolled; }
  if (focused !== null && after) after.querySelector(focused ? `.${focused}` : "summary").focus();
}

function spark(one) {
  const counts = Array.from({ length: 60 }, (_, minute) => STATUSES.map((name) => one.minutes[name][minute]));
  const most = Math.max(1, ...counts.map(sum));
  const svg = draw("svg", { class: "spark", viewBox: "0 0 120 26", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(draw("rect", { class: "base", y: 25.5, width: 120, height: 0.5 }));
  counts.forEach((parts, minute) => {
    let y = 26;
    parts.forEach((count, i) => {
      const height = (count / most) * 26;
      if (count) svg.append(draw("rect", { class: `f-${STATUSES[i]}`, x: minute * 2, width: 1.6, y: y - height, height }));
      y -= height;
    });
  });
  return svg;
}

// The sections

function showTiles(status, seconds) {
  const hour = (name) => sum(status.routes.map((one) => one.hour[name]));
  const all = sum(STATUSES.map(hour)), cached = sum(status.routes.map((one) => one.cached.hour));
  const tokens = sum(status.spending.routes.map((one) => one.hour.prompt_tokens + one.hour.completion_tokens));
  const requests = sum(status.spending.routes.map((one) => one.hour.requests));
  const open = status.jobs.rewardstack_jobs_open || {};
  const share = (count) => (all ? percent.format(count / all) : "–");
  tiles("tiles", [
    ["Samples", whole.format(all), `${three.format(all / seconds)} a second`],
    ["Scored as asked", share(hour("ok")), `${whole.format(hour("failed"))} failed, ${whole.format(hour("unscored"))} unscored, ${whole.format(hour("fallback"))} fallback`],
    ["From the cache", share(cached), plural(cached, "sample", "samples")],
    ["Model tokens", brief.format(tokens), plural(requests, "request", "requests")],
    ["Jobs", "running" in open ? whole.format(open.running + open.queued) : "–", "running" in open ? `${whole.format(open.running)} running, ${whole.format(open.queued)} queued` : "no queue"],
  ]);
}

function showServices(status) {
  table("services", "Services", [
    { title: "Service", kind: "name half", label: "", show: (one) => one.service },
    { title: "State", kind: "half", label: "", show: (one) => mark(one.up) },
    { title: "Address", kind: "full", label: "", show: (one) => problem(one) },
    { title: "Model", kind: "full", show: (one) => one.model, mark: (one) => (one.model ? "" : "gone") },
  ], status.services, "none");
}

function problem(one) {
  const found = make("span", {}, one.address);
  if (one.problem) found.append(make("span", { class: "problem" }, one.problem));
  return found;
}

function showRoutes(status, seconds) {
  const count = (name, title) => number(title || name, (one) => one.hour[name], { mark: (one) => (name === "failed" && one.hour.failed ? "ill" : "") });
  table("routes", "Routes over the last hour", [
    { title: "Route", kind: "name full", label: "", show: (one) => one.route },
    number("Samples", (one) => sum(STATUSES.map((name) => one.hour[name]))),
    { title: "A second", kind: "n", show: (one) => three.format(sum(STATUSES.map((name) => one.hour[name])) / seconds) },
    { title: "p50", kind: "n", show: (one) => duration(one.latency_s.p50) },
    { title: "p95", kind: "n", show: (one) => duration(one.latency_s.p95) },
    ...STATUSES.map((name) => count(name)),
    number("from cache", (one) => one.cached.hour),
    number("since start", (one) => sum(STATUSES.map((name) => one.total[name])), { label: "all" }),
    { title: "Last hour", kind: "full", label: "", show: spark },
  ], status.routes, "Nothing has been scored since the server started.");
}

function showCauses(status) {
  table("causes", "Causes over the last hour", [
    { title: "Cause", kind: "name full", label: "", show: (one) => one.cause },
    { title: "Route", kind: "half", show: (one) => one.route },
    { title: "Status", show: (one) => one.status },
    number("Samples", (one) => one.hour),
    { title: "Last", kind: "n", show: (one) => clock(one.last_minute) },
  ], status.causes, "Every sample of the last hour has a score of its own.");
}

function showJobs(status) {
  const jobs = status.jobs;
  if (!("rewardstack_queue_up" in jobs)) {
    at("jobs").replaceChildren(make("p", { class: "empty" }, "This server has no queue (REWARD_QUEUE_URL)."));
    return;
  }
  const open = jobs.rewardstack_jobs_open, others = open ? open.running + open.queued - status.own_jobs.length : 0;
  const none = !open ? "The queue does not answer." : others > 0 ? `${plural(others, "job of another key is", "jobs of other keys are")} open.` : "No job is open.";
  table("jobs", "Open jobs", [
    { title: "Job", kind: "name full", label: "", show: (one) => make("span", {}, one.job_id, one.error ? make("span", { class: "problem" }, one.error) : "") },
    { title: "Status", show: (one) => one.status },
    { title: "Progress", kind: "half", label: "", show: (one) => make("progress", { max: 1, value: one.progress, "aria-label": `${one.done} of ${one.items} samples` }) },
    { title: "Samples", kind: "n half", show: (one) => `${whole.format(one.done)} of ${whole.format(one.items)}` },
    number("failed", (one) => one.statuses.failed, { mark: (one) => (one.statuses.failed ? "ill" : "") }),
    { title: "Submitted", kind: "n", show: (one) => clock(Date.parse(one.submitted_at) / 1000) },
  ], status.own_jobs, none);
  if (open && status.own_jobs.length && others > 0) at("jobs").append(make("p", { class: "soft" }, none.replace("are open", "are open as well").replace("is open", "is open as well")));
}

function showSpending(status) {
  const caps = Object.entries(status.spending.caps).filter(([, most]) => most);
  table("spending", "Requests and tokens over the last hour", [
    { title: "Route", kind: "name full", label: "", show: (one) => one.route },
    number("Requests", (one) => one.hour.requests),
    number("Prompt tokens", (one) => one.hour.prompt_tokens),
    number("Completion tokens", (one) => one.hour.completion_tokens),
    number("Tokens unknown", (one) => one.hour.uncounted, { label: "unknown" }),
    number("Requests since start", (one) => one.total.requests, { label: "all requests" }),
    number("Tokens since start", (one) => one.total.prompt_tokens + one.total.completion_tokens, { label: "all tokens" }),
  ], status.spending.routes, "No judge and no embedding server was asked.");
  const told = caps.length ? `A run may spend: ${caps.map(([name, most]) => `${whole.format(most)} (${name})`).join(", ")}.` : "No cap is set (REWARDSTACK_MAX_REQUESTS, REWARDSTACK_MAX_TOKENS).";
  at("spending").append(make("p", { class: "soft" }, told));
}

function showVerifiers(status) {
  const told = status.verifiers, of = (name) => told[`rewardstack_verifier_${name}`];
  if (!of("busy")) return facts("verifiers", [["State", mark(false)]]);
  facts("verifiers", [
    ["Isolated processes", whole.format(of("processes"))],
    ["Busy: fast, slow", `${whole.format(of("busy").fast)}, ${whole.format(of("busy").slow)}`],
    ["Samples waiting: fast, slow", `${whole.format(of("waiting").fast)}, ${whole.format(of("waiting").slow)}`],
    ["Killed: at their deadline, died", `${whole.format(of("killed_total").timeout)}, ${whole.format(of("killed_total").died)}`],
    ["Replaced after their share of work", whole.format(of("recycled_total"))],
  ]);
}

function showCache(status) {
  const of = (name) => status.cache[`rewardstack_cache_${name}`];
  const hits = sum(status.routes.map((one) => one.cached.total)), all = sum(status.routes.flatMap((one) => Object.values(one.total)));
  const share = ["Hits since start", all ? `${whole.format(hits)} of ${whole.format(all)} (${percent.format(hits / all)})` : "–"];
  if (of("up") === undefined) return facts("cache", [["Redis", "none (REWARD_CACHE_URL)"], share]);
  if (!of("up")) return facts("cache", [["Redis", mark(false)], share]);
  facts("cache", [
    ["Redis", mark(true)],
    share,
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
  ], status.endpoints, "No request has come yet.");
}

let last = null, lostSince = null, heard = null, timer = 0, paused = false;

function say(text, kind) {
  if (at("standing").textContent !== text) at("standing").textContent = text; // read out when it changes, not each time
  at("standing").className = `badge ${kind}`;
}

function show(status) {
  const seconds = Math.max(1, status.at - Math.max(status.first_minute, status.scope.since));
  const down = status.services.filter((one) => one.up === false);
  say(down.length ? `Down: ${[...new Set(down.map((one) => one.service))].join(", ")}` : "All services answer", down.length ? "bad" : "good");
  const servers = status.scope.replicas.length;
  at("version").textContent = `version ${status.version}, ${status.scope.shared ? plural(servers, "server", "servers") : "this server alone"} ·`;
  at("note").hidden = !status.scope.note;
  at("note").textContent = status.scope.note && `${status.scope.note}.`;
  showTiles(status, seconds);
  showServices(status);
  showSamples(status);
  showLatency(status);
  showRoutes(status, seconds);
  showCauses(status);
  showJobs(status);
  showSpending(status);
  showVerifiers(status);
  showCache(status);
  showPaths(status);
}

function tellTime() {
  at("updated").textContent = heard ? `figures of ${clockWithSeconds(heard)}${paused ? ", paused" : ""}` : "";
}

async function refresh() {
  clearTimeout(timer);
  try {
    const reply = await fetch(`${location.origin}/v1/status`, { cache: "no-store", signal: AbortSignal.timeout(15000) });
    if (!reply.ok) throw new Error(reply.status === 401 ? "it asks for a key; reload the page" : `it answers ${reply.status}`);
    last = await reply.json();
    lostSince = null;
    heard = new Date();
    show(last);
  } catch (error) {
    lostSince = lostSince || new Date();
    const why = error instanceof TypeError ? "it cannot be reached" : error.message;
    say(`No answer since ${clockWithSeconds(lostSince)}: ${why}`, "bad");
  }
  tellTime();
  plan();
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
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { if (last) { showSamples(last); showLatency(last); } }, 150); });
refresh();

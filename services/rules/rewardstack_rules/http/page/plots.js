// Plots
const NO_SAMPLES = "No samples in the last hour.";

function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

// The position of a value as a part of the height, from 0 to 1, and the values with grid lines.
function linear(most) {
  return { part: (value) => value / most, ticks: [0, most / 2, most] };
}

function logarithmic(least, most) {
  const low = Math.floor(Math.log10(least)), high = Math.max(low + 1, Math.ceil(Math.log10(most)));
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return { part: (value) => Math.max(0, (Math.log10(value) - low) / (high - low)), ticks };
}

function frame(place, scale, label, told, first) {
  const width = Math.max(280, at(place).clientWidth || 600), height = innerWidth > 700 ? 190 : 150, left = 52, bottom = 22, top = 8;
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

// Shows the values at the pointer below a plot.
function readable(plot, read, told) {
  const cursor = draw("rect", { class: "cursor", y: 8, height: plot.height - 30, width: plot.x(1) - plot.x(0), visibility: "hidden" });
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
  const counts = STATUSES.map((name) => status.samples.minutes[name]);
  const totals = counts.map(sum), tall = counts[0].map((_, minute) => sum(counts.map((one) => one[minute])));
  if (!sum(totals)) return put("samples", make("p", { class: "empty" }, NO_SAMPLES));
  const most = Math.max(2, ceiling(Math.max(...tall)));
  const told = `Samples per minute over the last hour: ${STATUSES.map((name, i) => `${whole.format(totals[i])} ${name}`).join(", ")}; at most ${whole.format(Math.max(...tall))} in a minute`;
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
  put("samples", plot.svg, key(shapes), read, asTable("Samples per minute", ["Minute", ...STATUSES], rows.filter((_, minute) => tall[minute])));
}

function showLatency(status) {
  const shown = status.routes.filter((one) => one.minutes.p95_s.some((value) => value !== null)).slice(0, LINES);
  const values = shown.flatMap((one) => one.minutes.p95_s.filter((value) => value !== null));
  if (!values.length) return put("latency", make("p", { class: "empty" }, NO_SAMPLES));
  const scale = logarithmic(Math.min(...values), Math.max(...values));
  const told = `Latency by route, 95th percentile of the hour: ${shown.map((one) => `${one.route} ${duration(one.latency_s.p95)}`).join(", ")}`;
  const plot = frame("latency", scale, round, told, status.first_minute);
  shown.forEach((one, i) => plot.svg.append(draw("path", { class: `s-${i}`, d: line(plot, one.minutes.p95_s) }), ...points(plot, one.minutes.p95_s, i)));
  const read = make("p", { class: "read" });
  readable(plot, read, (minute) => `${clock(status.first_minute + 60 * minute)}: ${shown.map((one) => `${one.route} ${duration(one.minutes.p95_s[minute])}`).join(", ")}`);
  const shapes = shown.map((one, i) => [draw("path", { class: `s-${i}`, d: "M0 5H18" }), one.route]);
  const rows = Array.from({ length: 60 }, (_, minute) => [clock(status.first_minute + 60 * minute), ...shown.map((one) => duration(one.minutes.p95_s[minute]))]);
  put("latency", plot.svg, key(shapes), read,
    asTable("Latency per minute", ["Minute", ...shown.map((one) => one.route)], rows.filter((_, minute) => shown.some((one) => one.minutes.p95_s[minute] !== null))));
}

function line(plot, values) {
  let path = "", pen = false;
  values.forEach((value, minute) => {
    if (value === null) { pen = false; return; }
    const x = plot.x(minute + 0.5), y = plot.y(value);
    path += `${pen ? "L" : "M"}${x} ${y}`;
    pen = true;
  });
  return path;
}

// Minutes without a neighbor are points, because they have no line.
function points(plot, values, i) {
  const alone = values.map((value, minute) => value !== null && (values[minute - 1] ?? null) === null && (values[minute + 1] ?? null) === null);
  return values.flatMap((value, minute) => (alone[minute] ? [draw("circle", { class: `p-${i}`, cx: plot.x(minute + 0.5), cy: plot.y(value), r: 4 })] : []));
}

function asTable(caption, titles, rows) {
  if (!rows.length) return null;
  const head = titles.map((title, i) => make("th", { scope: "col", class: i ? "n" : "" }, title));
  const body = rows.reverse().map((row) => make("tr", {}, ...row.map((text, i) => make("td", { class: i ? "n" : "" }, text))));
  return make("details", {}, make("summary", {}, "As a table"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${caption}, as a table` },
      make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))));
}

// Replaces a plot; an open table stays open and keeps its scroll position and the focus.
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

// The distribution of rewards: a bar for each bucket, and the lowest and the highest bound.
function bars(rewards) {
  const bounds = rewards.histogram, most = Math.max(1, ...bounds.map(([, count]) => count));
  const label = ([bound], i) => (bound === null ? `above ${decimals.format(bounds[i - 1][0])}` : i ? `up to ${decimals.format(bound)}` : `at most ${decimals.format(bound)}`);
  const told = bounds.map((one, i) => (one[1] ? `${whole.format(one[1])} ${label(one, i)}` : "")).filter(Boolean).join(", ");
  const svg = draw("svg", { class: "bars", viewBox: "0 0 150 44", role: "img", "aria-label": `Rewards: ${told}` });
  const last = bounds[bounds.length - 1][1] ? bounds.length : bounds.length - 1, step = 150 / last;
  svg.append(draw("rect", { class: "grid", y: 31.5, width: 150, height: 0.5 }));
  bounds.slice(0, last).forEach(([, count], i) => {
    const height = count ? Math.max(1.5, (count / most) * 31) : 0;
    if (height) svg.append(draw("rect", { class: "f-ok", x: i * step + 0.5, width: step - 1, y: 32 - height, height }));
  });
  svg.append(draw("text", { x: 0, y: 43 }, decimals.format(bounds[0][0])));
  svg.append(draw("text", { x: 150, y: 43, "text-anchor": "end" }, decimals.format(bounds[bounds.length - 2][0])));
  return svg;
}

// The mean reward of each minute that has rewards, between the lowest and the highest of these means.
function trend(means) {
  const known = means.filter((mean) => mean !== null), low = Math.min(...known), high = Math.max(...known);
  const svg = draw("svg", { class: "spark", viewBox: "0 0 120 26", preserveAspectRatio: "none", role: "img",
    "aria-label": `Mean reward per minute, from ${decimals.format(low)} to ${decimals.format(high)}` });
  const place = { x: (minute) => minute * 2, y: (mean) => (high > low ? 24 - (22 * (mean - low)) / (high - low) : 13) };
  const joined = known.length > 1 ? means.map((mean, minute) => (mean === null ? "" : `${place.x(minute + 0.5)} ${place.y(mean)}`)).filter(Boolean) : [];
  svg.append(joined.length ? draw("path", { class: "mean", d: `M${joined.join("L")}` }) : draw("rect", { class: "f-ok", x: place.x(means.indexOf(known[0])), y: 11, width: 4, height: 4 }));
  return svg;
}

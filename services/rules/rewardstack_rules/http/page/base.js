"use strict";
// Server data is inserted as text or attributes, never as markup.
const REFRESH = 5000, STATUSES = ["ok", "fallback", "unscored", "failed"], LINES = 4;
const SVG = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en"), three = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const two = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const decimals = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const SHORTEST = 0.002; // seconds: the first bucket of latencies, within which a quantile is not known
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
  if (seconds <= SHORTEST) return `< ${SHORTEST * 1000} ms`;
  if (seconds < 0.995) return `${two.format(seconds * 1000)} ms`;
  return seconds < 120 ? `${two.format(seconds)} s` : `${whole.format(Math.round(seconds / 60))} min`;
}

// A rate in the largest unit of time that has a whole number of them.
function rate(count, seconds) {
  if (!count) return "0";
  const [per, name] = [[1, "s"], [60, "min"], [3600, "h"]].find(([unit]) => (count * unit) / seconds >= 1) || [3600, "h"];
  return `${two.format((count * per) / seconds)}/${name}`;
}

// A share that is 0 % or 100 % only if it is exactly that.
function share(part, all) {
  if (!all) return "–";
  if (part < all && part / all > 0.999) return "> 99.9%";
  if (part > 0 && part / all < 0.001) return "< 0.1%";
  return percent.format(Math.min(1, part / all)); // counts are read one after another, while samples arrive
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

// An address or a route, broken only if it is long, and not within a port; of a socket the host, with the path as a tooltip.
function showAddress(address) {
  const socket = /^(\S+) (unix:.*)$/s.exec(address);
  if (socket) return make("span", { title: socket[2] }, socket[1]);
  const [, before, port, path] = /^((?:\w+:\/\/)?[^/]*?)(:\d+)?(\/.*)?$/s.exec(address);
  const kind = address.length > 40 ? "" : "address";
  return make("span", { class: kind }, before, port ? make("span", { class: "word" }, port) : "", path || "");
}

// A word that stands in for the title of a column on a narrow screen.
const narrow = (word) => make("span", { class: "narrow" }, word);

function mark(up) {
  const [kind, word] = up === null ? ["unknown", "not asked"] : up ? ["up", "up"] : ["down", "down"];
  return make("span", { class: `mark ${kind}` }, word);
}

// Explanation of a sample, in the text format of `rewardstack explain`.
const WIDE = 100, LISTED = 50, PAGE_OF_RESULTS = 5000;

function told(explanation) {
  const lines = explanation.steps.flatMap((step, i) => stepLines(step, `${i + 1}`));
  return (explanation.error ? [...lines, `error: ${explanation.error}`] : lines).join("\n");
}

function stepLines(step, number) {
  const margin = "  ".repeat(number.split(".").length - 1);
  return [
    `${margin}${number} ${step.step}  ${step.latency_ms.toFixed(1)} ms`,
    ...factLines(step.facts, `${margin}    `),
    ...step.steps.flatMap((inner, i) => stepLines(inner, `${number}.${i + 1}`)),
  ];
}

function factLines(facts, margin) {
  return Object.entries(facts).flatMap(([name, value]) => factLine(name, value, margin));
}

function factLine(name, value, margin) {
  if (Array.isArray(value) && value.length) {
    return value.flatMap((one, i) => factLine(value.length > 1 ? `${name} ${i + 1} of ${value.length}` : name, one, margin));
  }
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    const names = Object.keys(value);
    if (names.length === 2 && "value" in value && "from" in value) return factLine(`${name} (${value.from})`, value.value, margin);
    if (names.length) return [`${margin}${name}:`, ...factLines(value, `${margin}  `)];
  }
  if (typeof value === "string" && (value.length > WIDE || value.includes("\n"))) {
    return [`${margin}${name}:`, ...value.split("\n").map((line) => `${margin}│ ${line}`)];
  }
  return [`${margin}${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`];
}

async function ask(path, options) {
  const reply = await fetch(location.origin + path, { cache: "no-store", ...options });
  if (reply.ok) return reply;
  const refusal = await reply.json().catch(() => ({}));
  throw new Error(refusal.error || `the server answers ${reply.status}`);
}

// Only the latest request is shown, in whatever order the replies arrive.
let explaining = 0, choosing = 0;

async function explain() {
  const mine = ++explaining;
  at("sample-error").textContent = "";
  at("explained").hidden = true;
  try {
    const sample = JSON.parse(at("sample").value);
    if (at("rescore").checked) sample.rescore = true;
    at("explained-title").textContent = "Explaining…";
    const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sample) };
    const explanation = await (await ask("/v1/explain", options)).json();
    if (mine !== explaining) return;
    const score = explanation.score;
    const notes = score ? [score.reason, score.cached ? "from the cache" : ""].filter(Boolean).map((one) => `, ${one}`) : [];
    at("explained-title").textContent = score ? `${score.status}: ${score.value}${notes.join("")}` : "There is no score.";
    at("explained").textContent = told(explanation);
    at("explained").hidden = false;
  } catch (error) {
    if (mine !== explaining) return;
    at("explained-title").textContent = "";
    at("sample-error").textContent = error instanceof SyntaxError ? `This is not JSON: ${error.message}` : error.message;
  }
}

async function withoutScore(job) {
  const found = [];
  for (let start = 0; found.length < LISTED; start += PAGE_OF_RESULTS) {
    const reply = await ask(`/jobs/${job}/results?partial=1&start=${start}&count=${PAGE_OF_RESULTS}`);
    const lines = (await reply.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    found.push(...lines.filter((one) => one.status === "failed" || one.status === "unscored"));
    if (lines.length < PAGE_OF_RESULTS) break;
  }
  return found.slice(0, LISTED);
}

async function choose() {
  const mine = ++choosing;
  try {
    const file = at("file").files[0], rows = file ? (await file.text()).split("\n").filter((line) => line.trim()) : [];
    const found = await withoutScore(at("job").value.trim());
    if (mine !== choosing) return;
    table("chosen", "Samples without a score", [
      number("Sample", (one) => one.index + 1),
      { title: "Status", show: (one) => one.status },
      { title: "Reason", kind: "full", show: (one) => one.reason },
      { title: "Explain", kind: "full", label: "", show: (one) => chooser(rows[one.index]) },
    ], found, "No sample without a score so far.");
  } catch (error) {
    if (mine !== choosing) return;
    at("chosen").replaceChildren(make("p", { class: "problem" }, error.message));
  }
}

function chooser(row) {
  if (!row) return make("span", { class: "soft" }, "choose the submitted file above to explain it");
  const button = make("button", { type: "button" }, "Explain");
  button.addEventListener("click", () => {
    at("sample").value = row;
    at("sample").focus();
    explain();
  });
  return button;
}

for (const [form, act] of [["explain", explain], ["choose", choose]]) {
  at(form).addEventListener("submit", (event) => { event.preventDefault(); act(); });
}

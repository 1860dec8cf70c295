"use strict";
// What the daemon says, as a page. It asks the daemon alone: /v1/overview each second,
// /v1/history, /v1/recordings and /v1/events each step, /v1/plan when asked, and for the first
// bytes of volumes whose names do not say whether they can be played. All text is set as text.

const at = (id) => document.getElementById(id);
// Behind the #, which is not sent, and then out of the address, which others see.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname);
}
let token = sessionStorage.getItem("token");

function ask(path, how = {}) {
  const headers = { ...how.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  return fetch(path, { ...how, headers });
}

// ---- words ----
function scaled(value, units, base) {
  let size = value, unit = 0;
  while (size >= base && unit < units.length - 1) { size /= base; unit += 1; }
  return `${size >= 100 || unit === 0 ? Math.round(size) : size.toPrecision(3)} ${units[unit]}`;
}
const bytes = (n) => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], 1024);
const rate = (n) => scaled(n, ["B/s", "kB/s", "MB/s", "GB/s"], 1000);
const time = (ns) => scaled(ns, ["ns", "µs", "ms", "s"], 1000);
const percent = (ppm) => `${(ppm / 10000).toFixed(1)} %`;
function span(seconds) {
  const s = Math.floor(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

// ---- parts ----
function make(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}
// Columns: [heading, what is shown of a row, "number" where it is one, whether it is bad].
// Cells stay where they are, so that what is chosen in them stays chosen; only their text changes.
function table(id, columns, rows, none) {
  const whole = at(id);
  if (!whole.tHead) {
    const head = make("thead"), line = make("tr");
    for (const [heading, , kind] of columns) {
      const cell = make("th", heading, kind);
      cell.scope = "col";
      line.append(cell);
    }
    head.append(line);
    whole.append(head, make("tbody"));
  }
  const body = whole.tBodies[0];
  if (rows.length === 0) {
    const line = make("tr"), cell = make("td", none, "none");
    cell.colSpan = columns.length;
    line.append(cell);
    body.replaceChildren(line);
    return;
  }
  const of = (n) => {
    const line = make("tr");
    columns.forEach((_, n) => line.append(make(n === 0 ? "th" : "td")));
    line.cells[0].scope = "row";
    if (body.rows[n]) body.rows[n].replaceWith(line); else body.append(line);
    return line;
  };
  rows.forEach((row, n) => {
    const line = body.rows[n]?.cells.length === columns.length ? body.rows[n] : of(n);
    columns.forEach(([, shown, kind, isBad], n) => {
      const cell = line.cells[n], it = shown(row);
      const name = (kind || "") + (isBad && isBad(row) ? " bad" : "");
      if (kind === "play") offer(cell, it);
      else if (cell.textContent !== String(it)) cell.textContent = it;
      if (cell.className !== name) cell.className = name;
    });
  });
  while (body.rows.length > rows.length) body.lastChild.remove();
}

// What each stream moved lately: the overviews of the last ten seconds.
const lately = [];
function got(stream) {
  if (!stream.attached) return "no program";
  for (const { when, moved } of lately) {
    const before = moved.get(stream.id);
    const passed = (lately[lately.length - 1].when - when) / 1000;
    if (before !== undefined && passed >= 1) return rate((stream.moved_bytes - before) / passed);
  }
  return "…";
}
function left(stream, sizes) {
  const size = sizes.get(stream.volume), each = stream.contract.rate_bytes_per_second;
  if (stream.mode !== "write" || size === undefined || each === 0) return "-";
  return span(Math.max(0, size - stream.position_bytes) / each);
}
// How a volume is served: its streams and handles have contracts of their own.
function serviceWords(volume) {
  const parts = [], counted = (n, what, how) => n > 0 && parts.push(`${n} ${what}${n === 1 ? "" : "s"} ${how}`);
  counted(volume.streams, "stream", loose.has(volume.name) ? "without a promise" : "under contract");
  counted(volume.handles?.length, "handle", "under contract");
  const rest = restWords(volume);
  return parts.length === 0 ? rest : `${parts.join(", ")}; else ${rest}`;
}
function restWords(volume) {
  if (volume.kept_out) return "best effort: its contract does not fit";
  const service = volume.service;
  if (service.class === "latency") return `answers within ${time(service.within_ns)}`;
  if (service.class === "rate") return rate(service.rate_bytes_per_second);
  return "best effort";
}

function show(overview) {
  const { status, findings } = overview;
  lately.push({ when: performance.now(), moved: new Map(status.streams.map((s) => [s.id, s.moved_bytes])) });
  while (lately.length > 1 && lately[lately.length - 1].when - lately[0].when > 10000) lately.shift();
  at("pool").textContent = `Pool ${status.pool}`;
  document.title = `${overview.sound ? "" : "! "}${status.pool} - Slackline`;
  at("about").textContent = `Slackline ${status.version}, served for ${span(status.up_ns / 1e9)} under the policy ${status.policy}`;
  const said = at("verdict");
  if (said.textContent !== overview.verdict) said.textContent = overview.verdict;
  // The gravest is the first.
  said.className = overview.sound ? "sound" : findings[0].weight;
  at("findings").replaceChildren(...findings.map((one) => {
    const line = make("li", undefined, one.weight);
    line.append(make("p", one.what), make("p", `next: ${one.next_step}`, "next"));
    return line;
  }));
  volumes = new Map(status.volumes.map((one) => [one.name, one]));
  writing = new Set(status.streams.filter((one) => one.mode === "write").map((one) => one.volume));
  loose = new Set(status.streams.filter((one) => !one.promised).map((one) => one.volume));
  const sizes = new Map(status.volumes.filter((one) => !one.ring).map((one) => [one.name, one.size_bytes]));
  const number = "number";
  table("streams", [
    ["volume", (s) => s.volume],
    ["mode", (s) => s.mode],
    ["user", (s) => s.user],
    ["asked", (s) => rate(s.contract.rate_bytes_per_second) + (s.promised ? "" : ", no promise"), number],
    ["got", got, number],
    ["late", (s) => s.late_requests, number, (s) => s.late_requests > 0 && !s.miss_per_billion],
    ["not ready", (s) => s.underruns, number],
    ["slowed", (s) => s.throttled, number],
    ["full in", (s) => left(s, sizes), number],
  ], status.streams, "no streams are open");
  const trust = { fresh: "holds", drifted: "drifted", stale: "does not hold" };
  table("disks", [
    ["disk", (d) => d.disk],
    ["device", (d) => d.device],
    ["free", (d) => `${bytes(d.free_bytes)} of ${bytes(d.capacity_bytes)}`, number],
    ["promised", (d) => percent(d.utilisation_ppm), number],
    ["slack", (d) => time(d.slack_ns), number],
    ["late", (d) => d.late_requests, number, (d) => d.late_requests > 0],
    ["errors", (d) => d.errors, number, (d) => d.errors > 0],
    ["oldest", (d) => d.oldest_command ? time(d.oldest_command.age_ns) : "-", number],
    ["profile", (d) => trust[d.profile.verdict], "", (d) => d.profile.verdict !== "fresh"],
  ], status.disks, "no disks");
  const most = 200; // the rest is for `slackline volume list`
  table("volumes", [
    ["volume", (v) => v.name],
    ["play", (v) => typeOf(v) ? { name: v.name } : { why: whyNoPlay(v) }, "play"],
    ["owner", (v) => v.owner.user],
    ["recorded", (v) => v.ring ? `the last ${bytes(v.ring.held_bytes)}` : bytes(v.length_bytes), number],
    ["size", (v) => bytes(v.size_bytes), number],
    ["streams", (v) => v.streams, number],
    ["served", serviceWords, "", (v) => Boolean(v.kept_out)],
  ], status.volumes.slice(0, most), "no volumes");
  sniff(status.volumes.slice(0, most)).catch(() => {});
  const shown = status.volumes.length > most ? ` (the first ${most} of ${status.volumes.length})` : "";
  at("volumes-title").textContent = `Volumes${shown}`;
  at("all").hidden = false;
}

// ---- plots ----
const SVG = "http://www.w3.org/2000/svg";
function draw(name, values, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
const tall = 180, inset = { left: 70, right: 12, top: 10, bottom: 24 };
// Whole minutes, hours or days, as many as there is room for: [when, what it is called].
const strides = [60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
function ticks(from, to, most) {
  const stride = strides.find((one) => (to - from) / one <= most) || 2419200;
  const found = [], east = new Date(to * 1000).getTimezoneOffset() * -60;
  for (let when = Math.ceil((from + east) / stride) * stride - east; when <= to; when += stride) {
    found.push([when, stride < 86400 ? clock(when, 5) : new Date(when * 1000).toLocaleDateString([], { day: "numeric", month: "short" })]);
  }
  return found;
}
const clock = (when, letters = 8) => new Date(when * 1000).toTimeString().slice(0, letters);
function plot(disk, device, steps, length, from, to) {
  const wide = Math.max(280, at("plots").clientWidth);
  const per = (bytes) => bytes / length;
  const of = (step) => step.disks[disk] || { contract_bytes: 0, best_effort_bytes: 0, late_requests: 0, promised_ppm: 0 };
  const largest = steps.reduce((most, step) => Math.max(most, per(of(step).contract_bytes), per(of(step).best_effort_bytes)), 1000);
  const power = 10 ** Math.floor(Math.log10(largest));
  const top = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= largest);
  const x = (when) => inset.left + (when - from) / (to - from) * (wide - inset.left - inset.right);
  const y = (value) => tall - inset.bottom - value / top * (tall - inset.top - inset.bottom);
  const figure = make("figure");
  const late = steps.reduce((sum, step) => sum + of(step).late_requests, 0);
  const last = steps[steps.length - 1];
  // A daemon that was just started has not recorded a step yet.
  const now = last && to - last.at_seconds < 3 * length
    ? `now ${rate(per(of(last).contract_bytes))} under contract and ${rate(per(of(last).best_effort_bytes))} as best effort`
    : "nothing was recorded in the last minute";
  const words = `Disk ${disk}: ${now}; ${late} late in this time`;
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": words });
  for (const part of [0, .5, 1]) {
    svg.append(draw("line", { class: "grid", x1: inset.left, x2: wide - inset.right, y1: y(top * part), y2: y(top * part) }));
    svg.append(draw("text", { x: inset.left - 6, y: y(top * part) + 4, "text-anchor": "end" }, rate(top * part)));
  }
  for (const [when, words] of ticks(from, to, wide / 90)) {
    if (x(when) > wide - 20) continue;
    svg.append(draw("line", { class: "grid", x1: x(when), x2: x(when), y1: tall - inset.bottom, y2: tall - inset.bottom + 5 }));
    svg.append(draw("text", { x: x(when), y: tall - 6, "text-anchor": "middle" }, words));
  }
  for (const step of steps) {
    if (of(step).late_requests === 0) continue;
    const begin = x(Math.max(from, step.at_seconds - length));
    svg.append(draw("rect", { class: "late", x: begin, y: inset.top, width: Math.max(2, x(step.at_seconds) - begin), height: tall - inset.top - inset.bottom }));
  }
  for (const [kind, value] of [["effort", "best_effort_bytes"], ["contract", "contract_bytes"]]) {
    let path = "", before = -Infinity;
    for (const step of steps) {
      // Where the daemon did not run there is no line.
      const move = step.at_seconds - before > 3 * length ? "M" : "L";
      path += `${move}${x(step.at_seconds).toFixed(1)} ${y(per(of(step)[value])).toFixed(1)}`;
      before = step.at_seconds;
    }
    svg.append(draw("path", { class: kind, d: path }));
  }
  figure.append(make("h3", `Disk ${disk}: ${device}`), svg, make("figcaption", words, "note"));
  return figure;
}
let devices = [], past = { step_seconds: 20, steps: [] };
function keyOf(...kinds) {
  const key = make("p", undefined, "key");
  for (const [kind, words] of kinds) {
    const one = make("span");
    one.append(make("i", undefined, kind), words);
    key.append(one);
  }
  return key;
}
function plots() {
  const key = keyOf(["contract", "under contract"], ["effort", "best effort"], ["late", "a request was late"]);
  const to = Date.now() / 1000, earliest = to - at("hours").value * 3600;
  const steps = past.steps.filter((step) => step.at_seconds > earliest);
  // From where there is something to see.
  const from = steps.length ? Math.max(earliest, Math.min(steps[0].at_seconds - past.step_seconds, to - 600)) : earliest;
  const drawn = devices.map((device, disk) => plot(disk, device, steps, past.step_seconds, from, to));
  at("plots").replaceChildren(key, ...drawn);
}

// ---- what was recorded when ----
let recorded = { recordings: [], left: 0 }, lost = [], volumes = new Map(), writing = new Set(), loose = new Set();
const nanos = (seconds) => `${Math.round(seconds * 1000)}000000`;
const dated = (when) => {
  const day = new Date(when * 1000);
  return (Date.now() - day < 72000000 ? "" : `${day.toLocaleDateString([], { day: "numeric", month: "short" })} `) + clock(when);
};
// From when on the lines are drawn: as far back as was chosen, or as anything reaches.
function since(to) {
  const days = at("days").value;
  if (days !== "all") return to - days * 86400;
  let first = to;
  for (const { recorded } of volumes.values()) first = Math.min(first, recorded ? recorded.begins_ns / 1e9 : to);
  return first - Math.max(60, (to - first) / 50);
}
// What a line says, in words.
function told(name, spans, gaps) {
  const volume = volumes.get(name);
  if (!volume?.recorded) return "";
  const begins = dated(volume.recorded.begins_ns / 1e9), ends = dated(volume.recorded.ends_ns / 1e9);
  const words = [writing.has(name) ? `from ${begins} on, goes on` : `${begins} to ${ends}`];
  if (volume.ring?.start_bytes) words.push("what was before was given up");
  if (spans.length > 1) words.push(spans.length === 2 ? "1 pause" : `${spans.length - 1} pauses`);
  if (gaps.length) words.push(`bytes were lost at ${gaps.slice(-3).map(dated).join(", ")}`);
  return words.join("; ");
}
function lines() {
  const wide = Math.max(280, at("lines").clientWidth), edge = 2;
  const to = Date.now() / 1000, from = since(to);
  const x = (when) => edge + (Math.min(to, Math.max(from, when)) - from) / (to - from) * (wide - 2 * edge);
  const marks = ticks(from, to, wide / 70).filter(([when]) => x(when) > 24 && x(when) < wide - 24);
  const grid = (svg, tall) => marks.forEach(([when]) => svg.append(draw("line", { class: "grid", x1: x(when), x2: x(when), y1: 0, y2: tall })));
  const axis = draw("svg", { viewBox: `0 0 ${wide} 20`, class: "axis", "aria-hidden": "true" });
  for (const [when, words] of marks) axis.append(draw("text", { x: x(when), y: 14, "text-anchor": "middle" }, words));
  const rows = recorded.recordings.map(({ volume: name, spans }) => {
    const gaps = lost.filter((one) => one.volume === name && one.at_ms / 1000 > from).map((one) => one.at_ms / 1000);
    const row = make("div", undefined, "line"), words = told(name, spans, gaps);
    const svg = draw("svg", { viewBox: `0 0 ${wide} 18`, role: "img", "aria-label": `${name}: ${words || "nothing is known"}` });
    grid(svg, 18);
    const ring = volumes.get(name)?.ring;
    if (ring?.start_bytes) {
      // As old as the spans are, which come more seldom than what is said of the ring.
      const begins = x((spans[0] ?? volumes.get(name).recorded)?.begins_ns / 1e9 || to);
      svg.append(draw("line", { class: "gone", x1: edge, x2: begins, y1: 9, y2: 9 }));
      if (begins > edge) svg.append(draw("line", { class: "end", x1: begins, x2: begins, y1: 1, y2: 17 }));
    }
    spans.forEach(({ begins_ns: begins, ends_ns: ends }, n) => {
      // Half a second is no pause: what goes on is drawn to the end.
      const end = n === spans.length - 1 && writing.has(name) && to - ends / 1e9 < 30 ? to : ends / 1e9;
      svg.append(draw("rect", { class: "held", x: x(begins / 1e9), y: 4, width: Math.max(1.5, x(end) - x(begins / 1e9)), height: 10 }));
    });
    for (const when of gaps) svg.append(draw("path", { class: "lost", d: `M${x(when) - 4} 0h8l-4 6zM${x(when)} 0v18` }));
    row.append(make("h3", name), make("p", words, "note"), svg);
    return row;
  });
  if (rows.length === 0) {
    at("lines").replaceChildren(make("p", "Nothing that a stream has recorded is known here.", "note"));
    return;
  }
  const key = keyOf(["held", "recorded"], ["gone", "given up by a ring"], ["lost", "bytes were lost"]);
  const more = recorded.left ? [make("p", `${recorded.left} more are not shown.`, "note")] : [];
  at("lines").replaceChildren(key, axis, ...rows, ...more);
}
async function recordings() {
  const to = Date.now() / 1000, from = since(to);
  const [answer, events] = await Promise.all([ask(`/v1/recordings?from_ns=${nanos(from)}&to_ns=${nanos(to + 60)}`), ask("/v1/events")]);
  if (answer.ok) recorded = await answer.json();
  if (events.ok) lost = (await events.json()).events.filter((one) => one.kind === "found" && one.key.endsWith("/gap"));
  lines();
}
at("days").addEventListener("change", () => recordings().catch(() => {}));

async function remember() {
  const answer = await ask("/v1/history");
  if (answer.ok) past = await answer.json();
  plots();
  await recordings();
  setTimeout(() => remember().catch(later), past.step_seconds * 1000);
}
const later = () => setTimeout(() => remember().catch(later), 5000);
at("hours").addEventListener("change", plots);
addEventListener("resize", () => { plots(); lines(); if (answered) picture(answered); });

// ---- players ----
const named = { mp4: "video/mp4", m4v: "video/mp4", mov: "video/mp4", webm: "video/webm", mkv: "video/webm", ogv: "video/ogg", ts: "video/mp2t",
  m4a: "audio/mp4", mp3: "audio/mpeg", aac: "audio/aac", ogg: "audio/ogg", oga: "audio/ogg", opus: "audio/ogg", wav: "audio/wav", flac: "audio/flac" };
const browser = document.createElement("video");
// What a browser would play, by the first bytes.
function typeBy(first) {
  const text = String.fromCharCode(...first), from = (n, word) => text.startsWith(word, n);
  if (from(4, "ftyp")) return from(8, "M4A") ? "audio/mp4" : "video/mp4";
  if (from(0, "\x1aE\xdf\xa3")) return "video/webm";
  if (from(0, "OggS")) return from(28, "OpusHead") || from(29, "vorbis") || from(29, "FLAC") ? "audio/ogg" : "video/ogg";
  if (from(0, "RIFF") && from(8, "WAVE")) return "audio/wav";
  if (from(0, "fLaC")) return "audio/flac";
  if (from(0, "ID3") || (first[0] === 255 && [0xfb, 0xfa, 0xf3, 0xf2].includes(first[1]))) return "audio/mpeg";
  if (first[0] === 255 && [0xf1, 0xf9].includes(first[1])) return "audio/aac";
  if (from(0, "G") && from(188, "G") && from(376, "G")) return "video/mp2t";
  return null;
}
// By the number of a volume, of those whose names do not say it: none where it is not known yet.
const types = new Map();
// What a volume is, as a type that a browser may play; none where its name and its first bytes do not say it.
function formatOf(volume) {
  return named[volume.name.split(".").pop().toLowerCase()] ?? types.get(volume.number);
}
// True of a volume that has its first byte.
function isWhole(volume) {
  return (volume.kind ?? "volume") === "volume" && volume.length_bytes > 0 && !volume.ring?.start_bytes;
}
// A type that this browser plays; none where the volume has none, or its beginning is gone.
function typeOf(volume) {
  const type = isWhole(volume) ? formatOf(volume) : null;
  return type && browser.canPlayType(type) ? type : null;
}
function whyNoPlay(volume) {
  if ((volume.kind ?? "volume") !== "volume") return `is a ${volume.kind}`;
  if (volume.length_bytes === 0) return "nothing is recorded";
  if (volume.ring?.start_bytes) return "its beginning is given up";
  const type = formatOf(volume);
  return type ? `this browser plays no ${type}` : "no format that browsers play";
}
let sniffs = false;
// One after the other, once for each volume, and behind all that others want of the disks.
async function sniff(all) {
  if (sniffs) return;
  sniffs = true;
  try {
    for (const volume of all) {
      const isNamed = volume.name.split(".").pop().toLowerCase() in named;
      if (isNamed || types.has(volume.number) || (volume.kind ?? "volume") !== "volume" || volume.length_bytes < 12 || volume.ring?.start_bytes) continue;
      types.set(volume.number, null);
      const answer = await ask(`${address(volume.name)}/data?priority=background`, { headers: { range: "bytes=0-511" } });
      if (answer.ok) types.set(volume.number, typeBy(new Uint8Array(await answer.arrayBuffer())));
    }
  } finally {
    sniffs = false;
  }
}
const address = (name) => `/v1/volumes/${encodeURIComponent(name)}`;
// A button that plays the volume, or why there is none.
function offer(cell, { name, why }) {
  const button = cell.firstElementChild;
  if (!name) {
    if (cell.textContent !== why) cell.replaceChildren(make("span", why, "note"));
    return;
  }
  if (button?.dataset.volume === name) return;
  const made = make("button", "Play");
  made.dataset.volume = name;
  made.setAttribute("aria-label", `Play ${name}`);
  cell.replaceChildren(made);
}
let playing = null;
// Lets the player in the page read the volume, which it cannot show the token for.
async function permit(name) {
  const answer = await ask(`${address(name)}/player`, { method: "POST" });
  if (answer.ok) return;
  const problem = await answer.json();
  throw new Error(`${problem.detail}; ${problem.next_step}`);
}
function stop() {
  if (!playing) return;
  clearInterval(playing.again);
  playing.element.removeAttribute("src");
  playing.element.load();
  playing = null;
  at("player").hidden = true;
}
async function play(name) {
  stop();
  const said = at("played");
  at("playing").textContent = name;
  at("player").hidden = false;
  said.textContent = "";
  const element = make((typeOf(volumes.get(name)) ?? "").startsWith("audio") ? "audio" : "video");
  element.controls = element.autoplay = element.playsInline = true;
  element.setAttribute("aria-label", name);
  const again = setInterval(() => permit(name).catch(() => {}), 240000);
  const own = { element, again, tried: 0 };
  playing = own;
  at("screen").replaceChildren(element);
  const fail = (error) => { if (playing === own) said.textContent = error.message; };
  element.addEventListener("error", async () => {
    if (playing !== own || !element.getAttribute("src")) return;
    const where = element.currentTime;
    try {
      await permit(name);
      if (performance.now() - own.tried < 10000) throw new Error(`This browser cannot play it: ${element.error?.message || "the format is not known to it"}`);
      // The permission was over, or the daemon was started again.
      own.tried = performance.now();
      element.load();
      element.currentTime = where;
    } catch (error) {
      fail(error);
    }
  });
  try {
    await permit(name);
    if (playing === own) element.src = `${address(name)}/data`;
  } catch (error) {
    fail(error);
  }
  at("player").scrollIntoView({ block: "nearest" });
}
at("volumes").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) play(button.dataset.volume);
});
at("close").addEventListener("click", stop);

// ---- will more fit? ----
const share = (part) => `${(part * 100).toFixed(part < .1 ? 1 : 0)} %`;
// Of each disk: what is promised now, a part for each of the streams that would fit, and for each of
// those that would not.
function picture(plan) {
  const wide = Math.max(280, at("fits").clientWidth), tall = 46, edge = 1;
  const { asked, admitted } = plan.streams[0];
  const disks = plan.disks.map(({ disk, utilisation_ppm: all, tasks }) => {
    // A stream whose requests go from disk to disk has a task on each of them.
    const own = tasks.filter((one) => one.name != null), of = (one) => one.cost_ns / one.period_ns;
    const added = own.filter((one) => one.fits).reduce((sum, one) => sum + one.count * of(one), 0);
    const each = own.filter((one) => !one.fits).reduce((sum, one) => sum + of(one), 0);
    return { disk, now: Math.max(0, all / 1e6 - added), added, refused: each * (asked - admitted), whole: all / 1e6 };
  });
  const most = disks.reduce((most, one) => Math.max(most, one.whole + one.refused), 1);
  const top = Math.min(most, 2), x = (part) => edge + Math.min(part, top) / top * (wide - 2 * edge);
  const figures = disks.map(({ disk, now, added, refused, whole }) => {
    const words = `Disk ${disk}: ${share(now)} promised now, ${share(added)} by ${admitted} of these`
      + (refused > 0 ? `; the other ${asked - admitted} would need ${share(refused)}` : "") + `; ${share(Math.max(0, 1 - whole))} is left to best effort`;
    const svg = draw("svg", { viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": words });
    svg.append(draw("rect", { class: "room", x: edge, y: 4, width: x(1) - edge, height: 22 }));
    svg.append(draw("rect", { class: "now", x: edge, y: 4, width: x(now) - edge, height: 22 }));
    const row = (kind, from, all, count) => {
      const parts = Math.min(count, 60); // more would be thinner than their gaps
      for (let n = 0; n < parts && all > 0; n += 1) {
        const begin = x(from + all * n / parts), width = x(from + all * (n + 1) / parts) - begin;
        if (width > .2) svg.append(draw("rect", { class: kind, x: begin, y: 4, width: Math.max(.5, width - 1), height: 22 }));
      }
    };
    row("added", now, added, admitted);
    row("refused", whole, refused, asked - admitted);
    svg.append(draw("line", { class: "end", x1: x(1), x2: x(1), y1: 0, y2: 30 }));
    for (const [part, anchor] of [[0, "start"], [.5, "middle"], [1, top > 1.1 ? "middle" : "end"]]) {
      svg.append(draw("text", { x: x(part), y: 43, "text-anchor": anchor }, share(part).replace(".0", "")));
    }
    if (most > top) svg.append(draw("text", { x: wide - edge, y: 43, "text-anchor": "end" }, `to ${share(whole + refused)}`));
    const figure = make("figure");
    figure.append(svg, make("figcaption", words, "note"));
    return figure;
  });
  const kinds = [["now", "promised now"], ["added", "would fit"], ["refused", "would be refused"]];
  at("fits").replaceChildren(keyOf(...kinds), ...figures);
}
let answered = null;
at("plan").addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = at("planned"), block = Number(at("block").value);
  const contract = { rate_bytes_per_second: Math.round(at("rate").value * 1e6), block_bytes: block, burst_bytes: block };
  const streams = [{ name: "more", count: Number(at("count").value), mode: at("mode").value, contract }];
  try {
    const answer = await ask("/v1/plan", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ streams }) });
    const plan = await answer.json();
    if (!answer.ok) {
      said.textContent = `${plan.detail}; ${plan.next_step}`;
      answered = null;
      at("fits").replaceChildren();
      return;
    }
    answered = plan;
    picture(plan);
    const one = plan.streams[0];
    const windows = `${bytes(plan.window_bytes)} of memory for windows`;
    said.textContent = plan.fits
      ? `Yes: all ${one.asked} fit beside what is open, with ${windows}.` + (one.more == null ? "" : one.more >= 10000 ? " At least 10,000 more would fit." : ` ${one.more} more would fit.`)
      : `No: ${one.admitted} of ${one.asked} fit. ${plan.stops ? `${plan.stops.problem.detail}; ${plan.stops.problem.next_step}.` : ""}`;
  } catch (error) {
    said.textContent = `The daemon did not answer: ${error.message}`;
  }
});

// ---- live ----
function missing(words) {
  const said = at("verdict");
  said.textContent = words;
  said.className = "broken";
}
async function listen() {
  const answer = await ask("/v1/overview", { headers: { accept: "text/event-stream" } });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({ detail: `status ${answer.status}`, next_step: "" }));
    missing(`${problem.detail}; ${problem.next_step}`);
    at("enter").hidden = answer.status !== 401 && answer.status !== 403;
    if (!at("enter").hidden) {
      stop(); // what the player shows has ended with the token
      return false;
    }
    return true;
  }
  at("enter").hidden = true;
  lately.length = 0; // another daemon counts anew
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return true;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    // Of several that came at once the last one counts.
    const event = events.pop();
    if (event === undefined) continue;
    const overview = JSON.parse(event.replace(/^data: /, ""));
    devices = overview.status.disks.map((disk) => disk.device);
    show(overview);
    if (!remembers) {
      remembers = true;
      remember().catch(later);
    }
  }
}
let remembers = false;
async function live() {
  for (;;) {
    try {
      if (!await listen()) return; // it goes on with another token
      missing("The daemon has ended the connection. This page tries again.");
    } catch {
      missing("The daemon does not answer. This page tries again.");
    }
    await new Promise((again) => setTimeout(again, 2000));
  }
}
at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  sessionStorage.setItem("token", token);
  live();
});
live();

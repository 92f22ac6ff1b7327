"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const MODALITIES = ["text", "code", "notebook", "table", "image", "depth", "audio", "proprio"];
  const CHUNK = 200;
  const byId = (id) => document.getElementById(id);
  const count = (number) => Math.round(number).toLocaleString("en-US");
  const chosen = { levels: new Set(), modalities: new Set(), errors: false };
  const list = byId("list"), detail = byId("detail"), search = byId("search"), sort = byId("sort");
  let found = [], drawn = 0, selected = null;

  // Content is set as text or as attributes of our own choice only: nothing from the data becomes markup.
  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    for (const child of children) if (child !== null && child !== undefined) made.append(child);
    return made;
  }

  const drawers = {
    note: (view) => element("p", "line-note " + view.tone, view.text),
    heading: (view) => element("h5", "", view.text),
    text: drawText,
    said: drawSaid,
    pairs: drawPairs,
    table: drawTable,
    media: drawMedia,
    picture: (view) => figure(image(view.url, view.caption), view.caption, "matrix"),
  };

  function drawViews(views, into) {
    for (const view of views) into.append(drawers[view.t](view));
    return into;
  }

  function drawText(view) {
    const box = element("div", "code");
    box.style.setProperty("--digits", String(view.first + view.lines.length).length);
    view.lines.forEach((text, i) => {
      const number = view.first + i, mark = view.marks[number];
      const line = element("div", "line", element("span", "", text));
      line.dataset.n = number;
      if (view.sent) line.classList.add(view.sent[i] === "1" ? "sent" : "unsent");
      if (mark) {
        line.classList.add("marked", mark[0]);
        line.append(element("span", "mark", "▲ " + mark[1]));
      }
      box.append(line);
    });
    return box;
  }

  function drawSaid(view) {
    const box = element("div", "said"), gaps = new Set(view.gaps);
    let isCode = false;
    view.text.split("\n").forEach((line, i) => {
      if (/^(```|~~~)/.test(line)) isCode = !isCode;
      const isTitle = !isCode && /^(#{2,3}|!) /.test(line);
      box.append(element("div", gaps.has(i) ? "gap" : isTitle ? "title" : "", line));
    });
    return box;
  }

  function drawPairs(view) {
    const rows = view.rows.map(([name, value]) => {
      const head = element("th", "", name);
      head.scope = "row";
      head.title = name;
      return element("tr", "", head, element("td", "", value));
    });
    return element("table", "pairs " + view.tone, element("tbody", "", ...rows));
  }

  function drawTable(view) {
    const cell = (text, isHead, scope) => {
      const made = element(isHead ? "th" : "td", "", text);
      if (isHead) made.scope = scope;
      return made;
    };
    const head = element("tr", "", ...view.columns.map((name) => cell(name, true, "col")));
    const rows = view.rows.map((row, at) => {
      const state = view.sent ? (view.sent[at] === "1" ? "sent" : "unsent") : "";
      return element("tr", state, ...row.map((text, i) => cell(text, i < view.labels, "row")));
    });
    const frame = element("div", "table-frame", element("table", "", element("thead", "", head), element("tbody", "", ...rows)));
    frame.tabIndex = 0;
    return frame;
  }

  function image(url, alt) {
    const made = document.createElement("img");
    made.alt = alt;
    made.src = url;
    return made;
  }

  function figure(child, caption, className) {
    return element("figure", "media " + (className || ""), child, element("figcaption", "", caption));
  }

  function drawMedia(view) {
    const caption = [view.caption, view.note].filter(Boolean).join(", ");
    const url = view.key === null ? undefined : data.media[view.key];
    if (!url) return element("p", "line-note", view.kind + (caption ? ": " + caption : ""));
    if (view.kind === "image") {
      const picture = image(url, caption);
      if (view.size) [picture.width, picture.height] = view.size;
      return figure(picture, caption);
    }
    const player = document.createElement("audio");
    player.controls = true;
    player.preload = "metadata";
    player.src = url;
    return figure(player, caption);
  }

  function badge(part) {
    return element("span", "badge level-" + part.level, part.level);
  }

  function modalityClass(part) {
    return "modality-" + MODALITIES.indexOf(part.modality);
  }

  function kindOf(part) {
    return part.kind === part.modality ? part.kind : part.modality + " · " + part.kind;
  }

  function drawRow(part) {
    const cut = part.id.lastIndexOf("/");
    const path = cut > 0 ? element("span", "path", part.id.slice(0, cut + 1)) : null;
    const name = element("span", "name", path, part.id.slice(cut > 0 ? cut + 1 : 0) + " ");
    const labels = element("span", "cost", badge(part));
    const kind = element("span", "small soft", kindOf(part));
    if (part.error) kind.append(" ", element("span", "badge error", "error"));
    const cost = element("span", "cost", count(part.before) + " → " + count(part.after));
    const meter = element("span", "meter");
    meter.style.setProperty("--after", Math.min(100, (100 * part.after) / Math.max(part.before, part.after, 1)) + "%");
    const row = element("button", "row " + modalityClass(part), name, labels, kind, cost, meter, element("span", "why", part.why));
    row.type = "button";
    row.dataset.id = part.id;
    if (part === selected) row.setAttribute("aria-current", "true");
    row.addEventListener("click", () => select(part, true));
    return element("li", "", row);
  }

  const keys = {
    after: (part) => -part.after,
    before: (part) => -part.before,
    saved: (part) => part.after - part.before,
    weight: (part) => -(part.weight === null ? Infinity : part.weight),
    retained: (part) => (part.retained === null ? 1 : part.retained),
  };

  function refresh() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = data.parts.filter((part) => {
      if (chosen.levels.size && !chosen.levels.has(part.level)) return false;
      if (chosen.modalities.size && !chosen.modalities.has(part.modality)) return false;
      if (chosen.errors && !part.error) return false;
      const text = (part.id + " " + part.modality + " " + part.kind + " " + part.level + " " + part.why).toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const key = keys[sort.value];
    if (key) found.sort((one, other) => key(one) - key(other));
    const sent = found.reduce((total, part) => total + part.after, 0);
    const before = found.reduce((total, part) => total + part.before, 0);
    byId("found").textContent = (found.length === data.parts.length ? count(found.length) : count(found.length) + " of " + count(data.parts.length))
      + " parts, " + count(before) + " → " + count(sent) + " tokens";
    list.replaceChildren();
    drawn = 0;
    drawMore();
    if (!found.length) list.append(element("li", "empty", data.parts.length ? "No part fits the filters." : "Nothing was observed."));
  }

  function drawMore(all) {
    const end = all ? found.length : Math.min(found.length, drawn + CHUNK);
    for (; drawn < end; drawn++) list.append(drawRow(found[drawn]));
  }

  function drawPane(title, about, className, fill) {
    const content = element("div", "content");
    content.tabIndex = 0;
    fill(content);
    return element("section", "pane " + className, element("h4", "", title, element("span", "", about)), content);
  }

  function drawFeature(feature) {
    const box = element("div", "feature", element("h5", "", feature.name));
    if (feature.unavailable !== null) {
      box.append(element("p", "down", "unavailable: " + feature.unavailable));
      return box;
    }
    if (feature.summary) box.append(element("p", "", feature.summary));
    if (feature.strip) {
      box.append(drawStrip(feature));
      box.append(element("p", "soft small", count(feature.size) + " numbers, length " + feature.norm.toPrecision(3) + ", largest " + feature.largest.toPrecision(3)));
    }
    if (feature.data) {
      const pre = element("pre", "data", feature.data);
      pre.tabIndex = 0;
      box.append(feature.data.length < 700 ? pre : element("details", "", element("summary", "", "Details"), pre));
    }
    box.append(element("p", "soft small", (feature.cached ? "from the cache" : feature.ms + " ms") + " · version " + feature.version));
    return box;
  }

  function drawStrip(feature) {
    const bytes = Int8Array.from(atob(feature.strip), (one) => one.charCodeAt(0));
    const canvas = document.createElement("canvas");
    canvas.width = bytes.length;
    canvas.height = 1;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Vector of " + feature.size + " numbers: blue is negative, orange is positive");
    canvas.title = "blue is negative, orange is positive";
    const context = canvas.getContext("2d"), pixels = context.createImageData(bytes.length, 1);
    bytes.forEach((value, i) => {
      const colour = value < 0 ? [36, 87, 197] : [226, 110, 30];
      pixels.data.set([...colour, 2 * Math.abs(value)], 4 * i);
    });
    context.putImageData(pixels, 0, 0);
    return canvas;
  }

  function measure(name, value) {
    return element("li", "", element("span", "soft", name + " "), element("b", "", value));
  }

  function drawDetail(part) {
    const head = element("div", "head", element("h3", "id", part.id), badge(part));
    if (part.error) head.append(element("span", "badge error", "error"));
    const measures = element("ul", "measures",
      measure("tokens", count(part.before) + " → " + count(part.after)),
      measure("retained", part.retained === null ? "–" : (100 * part.retained).toFixed(0) + " %"),
      measure("weight", part.weight === null ? "–" : part.weight.toPrecision(3)));
    if (part.importance !== 1) measures.append(measure("your weight", String(part.importance)));
    if (part.time !== null) measures.append(measure("at", part.time.toFixed(3) + " s"));
    if (part.ref) measures.append(measure("fetched with", part.ref));
    const marked = part.raw.some((view) => view.sent && view.sent.includes("0"));
    const raw = drawPane("Raw", marked ? "green: sent, dotted: left out" : kindOf(part), "raw", (into) => {
      for (const text of part.notes) into.append(element("p", "line-note", text));
      drawViews(part.raw, into);
    });
    const reads = drawPane("What the model reads", count(part.after) + " tokens", "reads", (into) => {
      if (part.reads.length) drawViews(part.reads, into);
      else into.append(element("p", "line-note", "Nothing. " + part.why));
    });
    const panes = element("div", "panes", raw, reads);
    if (part.features.length) {
      panes.classList.add("three");
      panes.append(drawPane("Features", "", "features", (into) => into.append(...part.features.map(drawFeature))));
    }
    detail.replaceChildren(head, element("p", "because", part.why), measures, panes);
  }

  function select(part, isUser) {
    selected = part;
    for (const one of document.querySelectorAll("[aria-current]")) one.removeAttribute("aria-current");
    for (const one of document.querySelectorAll("[data-id], [data-part]"))
      if (one.dataset.id === part.id || one.dataset.part === part.id) one.setAttribute("aria-current", "true");
    drawDetail(part);
    if (!isUser) return;
    try { history.replaceState(null, "", "#part=" + encodeURIComponent(part.id)); } catch { /* a lone surrogate, or a frame without history */ }
    const row = list.querySelector("[aria-current]");
    if (row) row.scrollIntoView({ block: "nearest" });
    if (matchMedia("(max-width: 860px)").matches || detail.getBoundingClientRect().top < 0) detail.scrollIntoView({ block: "start" });
  }

  function drawPrompt() {
    data.messages.forEach((message, i) => {
      const pictures = message.views.filter((view) => view.t === "media").length;
      const chars = message.views.reduce((total, view) => total + (view.text || "").length, 0);
      const about = count(chars) + " characters" + (pictures ? ", " + pictures + (pictures > 1 ? " pictures or sounds" : " picture or sound") : "");
      const summary = element("summary", "", message.role + (message.name ? " (" + message.name + ")" : ""), element("span", "soft", about));
      const card = element("details", "card message", summary, drawViews(message.views, element("div", "content")));
      card.open = true;
      card.dataset.message = i;
      byId("prompt").append(card);
    });
  }

  function toggle(button) {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    const { level, modality, errors } = button.dataset;
    if (level) chosen.levels[on ? "add" : "delete"](level);
    if (modality) chosen.modalities[on ? "add" : "delete"](modality);
    if (errors) chosen.errors = on;
    refresh();
  }

  function move(step) {
    const rows = [...list.querySelectorAll(".row")];
    const at = rows.indexOf(document.activeElement);
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) { next.focus(); next.click(); }
  }

  function partOfAddress() {
    try {
      const name = decodeURIComponent(location.hash.replace(/^#part=/, ""));
      return data.parts.find((part) => part.id === name);
    } catch { return undefined; }
  }

  search.addEventListener("input", refresh);
  sort.addEventListener("change", refresh);
  for (const button of document.querySelectorAll(".toggle")) button.addEventListener("click", () => toggle(button));
  for (const button of document.querySelectorAll("#bar [data-part]"))
    button.addEventListener("click", () => {
      const part = data.parts.find((one) => one.id === button.dataset.part);
      if (part) select(part, true);
    });
  list.addEventListener("scroll", () => { if (list.scrollTop + list.clientHeight > list.scrollHeight - 600) drawMore(); });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); move(step); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { event.preventDefault(); search.focus(); }
  });
  window.addEventListener("beforeprint", () => drawMore(true));

  drawPrompt();
  refresh();
  const first = partOfAddress() || data.parts.reduce((best, part) => (best && best.after >= part.after ? best : part), null);
  if (first) select(first, false);
})();

// SPDX-License-Identifier: BSD-3-Clause
// Exploration of the report: filters, words at the pointer and at the focus, a test point with its figures and losses.
// The page is complete without this script, and it adds nothing that is not on the page: it hides, and it copies rows.
"use strict";
(() => {
  const template = document.getElementById("explore");
  const cells = JSON.parse(template.dataset.results); // of each result: switch, scenario, frames, name, words
  const switches = JSON.parse(template.dataset.switches);
  const main = document.querySelector("main");
  main.querySelector("nav").after(template.content.cloneNode(true));
  const bar = main.querySelector(".explore");
  const bubble = main.querySelector(".bubble");
  const dialog = main.querySelector("dialog");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const numbers = (text) => text.split(" ").map(Number);

  // Filters
  const boxes = all("input", bar);
  function filter() {
    const off = [0, 1, 2].map((part) => boxes.filter((box) => +box.dataset.part === part && !box.checked));
    const names = off.map((unchecked) => new Set(unchecked.map((box) => box.value)));
    const on = cells.map((cell) => names.every((hidden, part) => !hidden.has(cell[part])));
    const set = (element, shown) => element.classList.toggle("off", !shown);
    for (const it of all("[data-cells]", main)) set(it, numbers(it.dataset.cells).every((n) => on[n]));
    for (const it of all("[data-some]", main)) set(it, numbers(it.dataset.some).some((n) => on[n]));
    for (const it of all(".answers [data-open]", main)) set(it, on[it.dataset.open]);
    for (const it of all("[data-switch]", main)) set(it, !names[0].has(switches[it.dataset.switch]));
    for (const it of all("figure", main)) {
      const parts = all("[data-cells]", it);
      it.hidden = parts.length > 0 && parts.every((part) => part.classList.contains("off"));
    }
    const shown = on.filter(Boolean).length;
    bar.classList.toggle("active", shown < cells.length);
    bar.querySelector("output").textContent =
      shown < cells.length ? `${shown} of ${cells.length} results are shown` : `all ${shown} results are shown`;
  }
  bar.addEventListener("change", filter);
  bar.querySelector("button").addEventListener("click", () => {
    for (const box of boxes) box.checked = true;
    filter();
  });
  filter();

  // A test point with its figures and its losses: every row of the page that is about it
  function copied(table, number) {
    const rows = all("tbody tr[data-cells]", table).filter((row) => numbers(row.dataset.cells).includes(number));
    if (!rows.length) return [];
    const copy = table.cloneNode(false);
    const caption = document.createElement("caption");
    caption.textContent = table.caption ? table.caption.textContent : table.getAttribute("aria-label");
    copy.removeAttribute("aria-label");
    copy.append(caption, table.tHead.cloneNode(true), document.createElement("tbody"));
    copy.tBodies[0].append(...rows.map((row) => row.cloneNode(true)));
    const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
    for (const row of copy.tBodies[0].rows) heads.forEach((head, n) => (row.cells[n].dataset.label = head));
    for (const it of all(".off", copy)) it.classList.remove("off");
    for (const it of all("button", copy)) it.replaceWith(...it.childNodes);
    const box = document.createElement("div");
    box.className = "scroll";
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", caption.textContent);
    box.append(copy);
    return [box];
  }
  function open(number) {
    const lost = (table) => table.closest("#losses") !== null;
    const [first, ...others] = all("table", main)
      .filter((it) => !dialog.contains(it))
      .map((it) => [lost(it), copied(it, number)])
      .filter((it) => it[1].length);
    others.sort((a, b) => b[0] - a[0]);
    dialog.querySelector("h2").textContent = cells[number][3];
    dialog.querySelector("p").textContent = cells[number][4];
    dialog.querySelector("div").replaceChildren(...[first, ...others].flatMap((it) => it[1]));
    hide();
    dialog.showModal();
    fit();
  }
  dialog.querySelector("button").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  function opener(holder, number) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "opener";
    button.dataset.open = number;
    button.setAttribute("aria-haspopup", "dialog");
    button.append(...holder.childNodes);
    button.addEventListener("click", () => open(number));
    holder.append(button);
  }
  for (const it of all("[data-open]", main)) opener(it, +it.dataset.open);
  for (const row of all("tbody tr[data-cells]", main)) {
    const head = row.querySelector("th");
    if (head && /^\d+$/.test(row.dataset.cells)) opener(head, +row.dataset.cells);
  }

  // Marks of charts: one stop of the tab key for each chart, arrow keys inside
  for (const svg of all(".panel svg", main)) {
    for (const title of all("title", svg)) {
      const mark = title.parentElement;
      mark.setAttribute("aria-label", title.textContent);
      mark.setAttribute("role", "img");
      mark.setAttribute("class", "mark");
      title.remove();
    }
    const marks = all(".mark", svg);
    if (!marks.length) continue;
    svg.setAttribute("role", "group");
    marks[0].setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => step(event, marks));
    svg.addEventListener("click", (event) => enter(event.target.closest(".mark")));
  }
  function step(event, marks) {
    const here = marks.indexOf(event.target);
    const said = (mark) => mark.getAttribute("aria-label");
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (here < 0 || !(way || event.key === "Enter")) return;
    event.preventDefault(); // else the key would press the button that then has the focus
    if (!way) return enter(event.target);
    let next = here + way;
    while (marks[next] && (marks[next].matches(".off") || said(marks[next]) === said(event.target))) next += way;
    if (!marks[next]) return;
    event.target.setAttribute("tabindex", "-1");
    marks[next].setAttribute("tabindex", "0");
    marks[next].focus();
  }
  function enter(mark) {
    if (mark && mark.dataset.cells) open(+mark.dataset.cells);
  }

  // Words at the pointer and at the focus
  let held = null; // the mark that has the focus, until Escape
  function words(mark) {
    const place = mark && mark.getBoundingClientRect();
    if (!mark || place.bottom < 0 || place.top > window.innerHeight) {
      bubble.hidden = true;
      return;
    }
    bubble.textContent = mark.matches(".mark") ? mark.getAttribute("aria-label") : cells[mark.dataset.open][4];
    bubble.hidden = false;
    const room = document.documentElement.clientWidth - bubble.offsetWidth - 8;
    const lowest = window.innerHeight - bubble.offsetHeight - 8;
    const beside = place.right + 8 <= room; // else below, where it may be in the way to the next mark
    bubble.style.left = `${beside ? place.right + 8 : Math.max(8, Math.min(place.left, room))}px`;
    bubble.style.top = `${Math.max(4, Math.min(beside ? place.top : place.bottom + 6, lowest))}px`;
  }
  function hide() {
    held = null;
    bubble.hidden = true;
  }
  document.addEventListener("pointerover", (event) => {
    if (!bubble.contains(event.target)) words(event.target.closest(".mark, .opener") || held);
  });
  document.addEventListener("focusin", (event) => {
    held = event.target.matches(".mark, .opener:focus-visible") ? event.target : null;
    words(held);
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", () => words(held), { passive: true });

  // Only a table that scrolls is a stop of the tab key
  function fit() {
    for (const box of all(".scroll")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  window.addEventListener("resize", fit);
  document.addEventListener("toggle", fit, true);
  fit();
})();

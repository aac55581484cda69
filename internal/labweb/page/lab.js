// The laboratory's page: it asks the worker, and shows what the answer says. The address holds the run and the moment.
import { ask } from "./asking.js";
import { Choose } from "./choose.js";
import { Comparison } from "./compare.js";
import { Lanes } from "./lanes.js";
import { at, el, milliseconds } from "./making.js";
import { Panels } from "./panels.js";
import { Player } from "./player.js";
import { Reel } from "./reel.js";
import { Ring } from "./ring.js";

const firstStory = "story=two-leaders&rule=dropped";
const comparing = "compare";

let reel = null;
let shown = ""; // the link of the run that is shown, without its moment
let turn = 0; // counts runs that were asked for: an answer that comes late is dropped
let choose;
let comparison;

const ring = new Ring(at("ring"), at("ring-text"));
const lanes = new Lanes(at("lanes"), (stop) => player.seekStop(stop));
const panels = new Panels((line) => player.seek(line.frame));
const player = new Player([ring, lanes, panels, { show: explain }], remember);

// complain shows a sentence about what is wrong, or nothing.
function complain(error) {
  const box = at("error");
  box.textContent = error?.message ?? "";
  box.hidden = !error;
}

// play plays the run of a link, and makes the address name it.
async function play(link) {
  const mine = ++turn;
  document.body.setAttribute("aria-busy", "true");
  try {
    const doc = await ask("play", link);
    if (mine === turn) {
      complain(null);
      show(doc);
    }
  } catch (error) {
    if (mine === turn) {
      complain(error);
      if (!reel) {
        at("stage-title").textContent = "Nothing is played";
      }
    }
  }
  document.body.removeAttribute("aria-busy");
}

function show(doc) {
  reel = new Reel(doc);
  shown = doc.link;
  document.body.className = "";
  at("comparison").hidden = true;
  at("stage").hidden = at("happened").hidden = false;
  select(doc.story ? "stories" : "own");
  choose.show(doc.link);
  at("stage-title").textContent = doc.title;
  document.title = `${doc.story ?? "A run"} · Quorate laboratory`;
  about(doc);
  at("summary").textContent = doc.summary;
  at("command").textContent = doc.command;
  for (const view of [ring, lanes, panels]) {
    view.begin(reel);
  }
  player.begin(reel, doc.at);
}

// about says what a story is about, and which rule is dropped or in force.
function about(doc) {
  const lines = doc.story ? doc.about.slice(1) : [];
  const parts = lines.length > 0 ? [el("p", {}, lines.join(" "))] : [];
  if (!doc.story && doc.dropped) {
    parts.push(...doc.dropped.map((rule) => el("p", { class: "bad-text" }, `Without the rule: ${rule.demands}.`)));
  }
  if (doc.tape.left_out > 0) {
    parts.push(el("p", { class: "quiet" }, `${doc.tape.left_out} later events are left out: the run is longer than the player keeps.`));
  }
  const ends = doc.broken ? el("p", { class: "verdict bad" }, `A law is broken: ${doc.breaches[0].split(": ")[0]}.`) : el("p", { class: "verdict good" }, "All laws hold in this run.");
  at("about").replaceChildren(...parts, ends);
  at("rule-box").hidden = !doc.story;
  if (doc.story) {
    at("rule-state").textContent = doc.kept ? "The rule holds" : "Dropped";
    at("rule-state").className = `tag ${doc.kept ? "good" : "bad"}`;
    at("rule-text").textContent = sentence(doc.rule);
    at("drop-rule").checked = !doc.kept;
  }
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + ".";
}

// explain says in words what the moment is.
function explain(frame) {
  const line = reel.doc.lines?.[reel.lineOf(frame)];
  const moment = reel.momentOf(frame);
  const key = `${shown} ${line?.frame} ${line?.text} ${moment?.frame}`;
  if (key === explain.key) {
    return;
  }
  explain.key = key;
  const exact = moment && line && moment.frame >= line.frame;
  at("now").replaceChildren(
    ...(line ? [el("strong", { class: line.kind }, `${milliseconds(line.at)} ms: ${line.text}`)] : []),
    ...(moment ? [el("span", { class: exact ? "moment" : "moment old" }, moment.text)] : []));
}

// remember puts the run and the moment into the address.
function remember(frame) {
  const link = frame > 0 ? `${shown}&at=${frame}` : shown;
  if (location.hash.slice(1) !== link) {
    history.replaceState(null, "", `#${link}`);
  }
}

// go plays a link as a new entry of the browser's history.
function go(link) {
  history.pushState(null, "", `#${link}`);
  complain(null);
  return play(link);
}

function open() {
  const link = decodeMark(location.hash.slice(1));
  if (link === comparing) {
    compare();
    return;
  }
  play(link || firstStory);
}

// decodeMark undoes that some programs write the marks of a link as %26 and %3D.
function decodeMark(link) {
  return link.includes("=") ? link : link.replaceAll("%3D", "=").replaceAll("%26", "&");
}

function compare() {
  turn++;
  select("compare");
  complain(null);
  document.body.className = "comparing";
  document.title = "Protocols compared · Quorate laboratory";
  at("comparison").hidden = false;
  at("stage").hidden = at("happened").hidden = true;
  player.pause();
  comparison.play();
}

// select shows a tab.
function select(name) {
  for (const one of ["stories", "own", "compare"]) {
    const chosen = one === name;
    at(`panel-${one}`).hidden = !chosen;
    at(`tab-${one}`).setAttribute("aria-selected", String(chosen));
    at(`tab-${one}`).tabIndex = chosen ? 0 : -1;
  }
}

function openTab(name) {
  select(name);
  if (name === "compare") {
    if (location.hash !== `#${comparing}`) {
      history.pushState(null, "", `#${comparing}`);
    }
    compare();
    return;
  }
  if (document.body.classList.contains("comparing")) {
    if (reel) {
      document.body.className = "";
      at("comparison").hidden = true;
      at("stage").hidden = at("happened").hidden = false;
      history.pushState(null, "", `#${shown}`);
      remember(player.frame);
    } else {
      go(firstStory);
    }
    select(name);
  }
}

function listen() {
  const tabs = ["stories", "own", "compare"];
  tabs.forEach((name, i) => {
    at(`tab-${name}`).addEventListener("click", () => openTab(name));
    at(`tab-${name}`).addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by) {
        const next = tabs[(i + by + tabs.length) % tabs.length];
        event.preventDefault();
        event.stopPropagation();
        openTab(next);
        at(`tab-${next}`).focus();
      }
    });
  });
  at("play").addEventListener("click", () => reel && player.toggle());
  at("back").addEventListener("click", (event) => reel && player.step(-1, event.shiftKey));
  at("step").addEventListener("click", (event) => reel && player.step(1, event.shiftKey));
  at("first").addEventListener("click", () => reel && player.seek(0));
  at("next").addEventListener("click", () => reel && player.nextMoment());
  at("scrub").addEventListener("input", (event) => reel && player.seekStop(Number(event.target.value)));
  at("drop-rule").addEventListener("change", (event) => go(`story=${reel.doc.story}&rule=${event.target.checked ? "dropped" : "kept"}`));
  at("copy").addEventListener("click", copy);
  window.addEventListener("hashchange", open);
  document.addEventListener("keydown", keys);
}

// keys are the keys of the player, wherever the focus is, but in a field, a list or a button that has them for itself.
function keys(event) {
  if (!reel || at("stage").hidden || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  }
  if (event.target.closest("input, select, textarea, [role=tab]") || (event.key === " " && event.target.closest("button, summary"))) {
    return;
  }
  const does = {
    " ": () => player.toggle(), ArrowRight: () => player.step(1, event.shiftKey), ArrowLeft: () => player.step(-1, event.shiftKey),
    Home: () => player.seek(0), End: () => player.seek(reel.last), n: () => player.nextMoment(), N: () => player.nextMoment(),
  }[event.key];
  if (does) {
    event.preventDefault();
    does();
  }
}

async function copy() {
  let told = "Copied.";
  try {
    await navigator.clipboard.writeText(location.href);
  } catch {
    told = "The browser refuses: copy the address instead.";
  }
  at("copied").textContent = told;
  setTimeout(() => { at("copied").textContent = ""; }, 4000);
}

async function begin() {
  listen();
  try {
    const choices = await ask("catalog");
    choose = new Choose(choices, go);
    comparison = new Comparison(choices, ask, complain);
    open();
  } catch (error) {
    complain(error);
    at("stage-title").textContent = "The laboratory did not start";
  }
}

begin();

// The panels beside the picture: members, quorums, and what happened.
import { at, el, milliseconds } from "./making.js";
import { mark, roleOf } from "./ring.js";

export class Panels {
  constructor(seek) {
    this.seek = seek;
    at("events").addEventListener("keydown", (event) => this.walk(event));
  }

  begin(reel) {
    this.reel = reel;
    this.line = null;
    this.states = [];
    at("rows").replaceChildren(...reel.history.map((_, i) => el("tr", { id: `member-${i + 1}`, role: "row" })));
    const { dropped = [] } = reel.doc;
    at("events").replaceChildren(...(reel.doc.lines ?? []).map((line, number) => {
      const button = el("button", { type: "button", tabindex: "-1", class: `event ${line.kind}`, on: { click: () => this.seek(line) } },
        el("span", { class: "time" }, line.kind === "pause" ? "⋮" : milliseconds(line.at)), el("span", { class: "text" }, line.text));
      const item = el("li", { id: `event-${number}` }, button);
      if (line.kind === "breach" && dropped.length > 0) {
        item.append(el("p", { class: "because" }, `Without the rule: ${dropped.map((rule) => rule.demands).join("; ")}.`));
      }
      return item;
    }));
  }

  show(frame) {
    this.reel.states(frame).forEach((state, i) => {
      if (this.states[i] !== state) {
        this.states[i] = state;
        this.member(state);
      }
    });
    this.counts(this.states);
    this.current(this.reel.lineOf(frame));
  }

  member(state) {
    const config = state.config;
    const entries = (state.log ?? []).map((entry) => {
      const where = entry.i <= state.commit ? "committed" : entry.i <= state.durable ? "durable" : "volatile";
      const told = { committed: "known to be committed", durable: "on disk", volatile: "not on disk yet" }[where];
      return el("li", { class: `entry ${where}`, title: `entry ${entry.i} of term ${entry.t}: ${told}` },
        el("span", { class: "quiet" }, `${entry.i}·${entry.t} `), entry.w, el("span", { class: "unseen" }, ` (term ${entry.t}, ${told})`));
    });
    at(`member-${state.id}`).replaceChildren(
      el("th", { scope: "row", role: "rowheader" }, el("span", { class: `dot band-${this.reel.colour(config.name) % 8}`, "aria-hidden": "true" }), String(state.id)),
      el("td", { class: state.role, role: "cell" }, `${mark(state)} ${roleOf(state)}`),
      el("td", { class: "of-term", role: "cell" }, String(state.term)),
      el("td", { class: "in-force", role: "cell" }, config.name ? el("code", {}, `${config.name} ${config.text}`) : "none",
        config.settled ? el("span", { class: "tag good" }, "settled") : config.committed ? el("span", { class: "tag" }, "committed") : null),
      el("td", { class: "entries", role: "cell" }, el("ol", { class: "log" }, ...entries)),
    );
  }

  // counts lists the quorums that are counted now.
  counts(states) {
    const all = states.flatMap((state) => (state.counts ?? []).map((count) => ({ state, count })));
    const key = JSON.stringify(all.map(({ state, count }) => [state.id, count]));
    if (key === this.counted) {
      return;
    }
    this.counted = key;
    const items = all.map(({ state, count }) => el("li", {}, el("span", { class: "who" }, `${state.id} ${count.about === "elected" ? "has won" : "counts"} ${count.text}`),
      ...count.sets.map((set, i) => el("div", { class: "set" },
        count.sets.length > 1 ? el("span", { class: `side ${i === 0 ? "old" : "new"}` }, i === 0 ? "old " : "new ") : null,
        ...set.members.map((id) => chip(set, id)),
        el("span", { class: set.have.length >= set.need ? "enough" : "short" }, ` ${set.have.length} of ${set.members.length}, needs ${set.need}`),
        set.stand_in ? el("span", { class: "bad" }, ` counts itself in the place of ${set.stand_in}`) : null))));
    at("counts").replaceChildren(...(items.length > 0 ? items : [el("li", { class: "quiet" }, "None at this moment.")]));
  }

  // walk goes up and down in the list of lines, of which one is in the order of the Tab key.
  walk(event) {
    const by = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const item = by && event.target.closest("li")?.[by];
    if (item) {
      event.preventDefault();
      const button = item.querySelector("button");
      button.click();
      button.focus();
    }
  }

  // current marks the line that the moment shows, and brings it into the list's view.
  current(number) {
    const item = at(`event-${number}`);
    if (item === this.line) {
      return;
    }
    this.line?.removeAttribute("aria-current");
    const list = at("events");
    (this.line ?? list).querySelector("button")?.setAttribute("tabindex", "-1");
    this.line = item;
    (item ?? list).querySelector("button")?.setAttribute("tabindex", "0");
    if (!item) {
      list.scrollTop = 0;
      return;
    }
    item.setAttribute("aria-current", "step");
    const above = item.offsetTop;
    if (above < list.scrollTop + 40 || above + item.offsetHeight > list.scrollTop + list.clientHeight - 40) {
      list.scrollTop = above - list.clientHeight / 2;
    }
  }
}

function chip(set, id) {
  const [kind, told] = set.have.includes(id) ? ["have", "yes"] : set.refused?.includes(id) ? ["refused", "no"] : ["open", "not yet"];
  return el("span", { class: `chip ${kind}` }, String(id), el("span", { class: "unseen" }, ` ${told}, `));
}

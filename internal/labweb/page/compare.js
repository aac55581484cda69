// The protocols compared: a table, and a picture of the same.
import { at, el, svg, milliseconds } from "./making.js";

const left = 112;
const scale = 27; // units of the picture for a round
const wide = left + 9 * scale + 106; // all pictures have one scale
const bar = 13;

// Comparison plays the standard changes by each protocol, one after the other.
export class Comparison {
  constructor(choices, ask, failed) {
    this.choices = choices;
    this.ask = ask;
    this.failed = failed;
    at("compare").addEventListener("click", () => this.play());
  }

  // play fills table and picture as results come.
  async play() {
    if (this.busy || this.done) {
      return;
    }
    this.busy = true;
    at("compare").disabled = true;
    at("trial-rows").replaceChildren();
    at("bars").replaceChildren();
    const { changes, compared } = this.choices;
    try {
      for (let i = 0; i < changes.length; i++) {
        const figure = at("bars").appendChild(el("figure", {}, el("figcaption", {}, changes[i])));
        const trials = [];
        for (const protocol of compared) {
          at("compare-progress").textContent = `${i * compared.length + trials.length} of ${changes.length * compared.length} played: ${changes[i]} by ${protocol} …`;
          const { up, dead } = await this.ask("compare", `change=${i}&protocol=${protocol}&seed=1`);
          trials.push(up);
          this.row(changes[i], up, dead, trials.length === 1 ? compared.length : 0);
          figure.replaceChildren(figure.firstChild, picture(changes[i], trials));
        }
      }
      at("compare-progress").textContent = `All ${changes.length * compared.length} played.`;
      this.done = true;
    } catch (error) {
      at("compare-progress").textContent = "";
      at("compare").disabled = false;
      this.failed(error);
    }
    this.busy = false;
  }

  // row adds a row of the table; the first one of a change has its name, for so many rows.
  row(change, up, dead, rows) {
    const cell = (text) => el("td", {}, text);
    at("trial-rows").append(el("tr", { class: rows > 0 ? "first" : null },
      rows > 0 ? el("th", { scope: "rowgroup", rowspan: rows }, change) : null,
      el("th", { scope: "row" }, el("code", {}, up.protocol)), cell(rounds(up.decided)), cell(rounds(up.settled)),
      cell(`${milliseconds(up.pause)} ms`), cell(String(up.messages)), cell(up.stops.join(" ")),
      cell(rounds(dead.decided)), cell(rounds(dead.settled)), cell(`${milliseconds(dead.pause)} ms`)));
  }
}

function picture(change, trials) {
  const tall = trials.length * (bar + 6) + 4;
  const told = trials.map((trial) => `${trial.protocol}: decided after ${rounds(trial.decided)}, settled after ${rounds(trial.settled)} rounds`);
  const drawing = svg("svg", { viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": `${change}. ${told.join("; ")}` });
  trials.forEach((trial, i) => {
    const y = i * (bar + 6) + 4;
    const [decided, settled] = [Math.max(trial.decided, 0) * scale, Math.max(trial.settled, 0) * scale];
    drawing.append(
      svg("text", { x: left - 8, y: y + 11, class: "label" }, trial.protocol),
      svg("rect", { x: left, y, width: settled.toFixed(1), height: bar, class: "settled" }),
      svg("rect", { x: left, y, width: decided.toFixed(1), height: bar, class: "decided" }),
      svg("text", { x: left + Math.max(decided, settled) + 8, y: y + 11, class: "value" },
        trial.decided === trial.settled ? rounds(trial.decided) : `${rounds(trial.decided)}, settled ${rounds(trial.settled)}`),
    );
  });
  return drawing;
}

function rounds(number) {
  return number < 0 ? "never" : number.toFixed(1);
}

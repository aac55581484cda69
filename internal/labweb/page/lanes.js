// The time line: a lifeline for each member, from left to right, in the colours of the configurations in force.
import { svg, milliseconds } from "./making.js";
import { votes } from "./ring.js";

const row = 18;
const left = 26;
const least = 300; // units of width, which are pixels

export class Lanes {
  constructor(picture, seek) {
    this.picture = picture;
    this.wide = least;
    picture.addEventListener("click", (event) => {
      const x = event.clientX - picture.getBoundingClientRect().left;
      seek(Math.round(((x - left) / (this.wide - left - 8)) * (this.reel.stops.length - 1)));
    });
    new ResizeObserver(() => {
      if (this.reel && Math.abs(Math.max(least, picture.clientWidth) - this.wide) > 1) {
        this.begin(this.reel);
        this.show(this.frame ?? 0);
      }
    }).observe(picture);
  }

  // x returns the place of a frame: stops are equally far from each other.
  x(frame) {
    const { stops } = this.reel;
    const stop = this.reel.stopOf(frame);
    const next = stops[stop + 1] ?? stops[stop] + 1;
    const part = (frame - stops[stop]) / Math.max(1, next - stops[stop]);
    return left + ((stop + Math.min(part, 0.99)) / Math.max(1, stops.length - 1)) * (this.wide - left - 8);
  }

  begin(reel) {
    this.reel = reel;
    this.wide = Math.max(least, this.picture.clientWidth);
    const count = reel.doc.members;
    const tall = row * (count + 1) + 6;
    this.picture.setAttribute("viewBox", `0 0 ${this.wide} ${tall}`);
    this.picture.replaceChildren();
    reel.history.forEach(({ frames, states }, i) => this.life(i, frames, states));
    for (const line of reel.doc.lines ?? []) {
      this.mark(line);
    }
    for (const moment of reel.doc.moments ?? []) {
      const x = this.x(moment.frame).toFixed(1);
      this.picture.append(svg("path", { d: `M${x} 2l5 6l-5 6l-5 -6Z`, class: "moment" }));
    }
    this.cursor = svg("line", { y1: 0, y2: tall, class: "cursor" });
    this.picture.append(this.cursor);
  }

  // life draws a member's life: a bar for as long as nothing changes that one sees here.
  life(i, frames, states) {
    const y = row * (i + 1) + 4;
    this.picture.append(svg("text", { x: 6, y: y + 11, class: "lane" }, String(i + 1)));
    for (let n = 0; n < states.length;) {
      const look = looks(this.reel, states[n]);
      let end = n + 1;
      while (end < states.length && looks(this.reel, states[end]) === look) {
        end++;
      }
      const from = this.x(frames[n]);
      const to = end < frames.length ? this.x(frames[end]) : this.wide - 8;
      if (states[n].up && to > from) {
        const tall = states[n].role === "leader" ? 13 : votes(states[n]) ? 8 : 4;
        this.picture.append(svg("rect", {
          x: from.toFixed(1), y: y + (14 - tall) / 2, width: (to - from + 0.4).toFixed(1), height: tall, class: look,
        }));
      }
      n = end;
    }
  }

  mark(line) {
    const sign = { crash: "✖", restart: "↻", off: "■", removed: "⊘", breach: "!" }[line.kind];
    if (!sign) {
      return;
    }
    const x = this.x(line.frame).toFixed(1);
    const title = svg("title", {}, `${milliseconds(line.at)} ms: ${line.text}`);
    if (line.kind === "breach") {
      this.picture.append(svg("line", { x1: x, x2: x, y1: 14, y2: row * (this.reel.doc.members + 1) + 4, class: "breach" }, title));
      return;
    }
    for (const id of line.members ?? []) {
      this.picture.append(svg("text", { x, y: row * id + 16, class: `sign ${line.kind}` }, sign));
    }
  }

  show(frame) {
    this.frame = frame;
    const x = this.x(frame).toFixed(1);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }
}

// looks is the class of a bar: the configuration in force, and the role.
function looks(reel, state) {
  return `life band-${reel.colour(state.config.name) % 8} ${state.role}${votes(state) ? "" : " learner"}`;
}

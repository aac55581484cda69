// The player: which moment of a run is shown, and how time passes.
import { at, milliseconds } from "./making.js";

const oneDelay = 650; // milliseconds that the delay of a link takes at speed 1
const longestGap = 1400; // and what a pause of a run takes at most
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Player {
  // views are shown each moment: show(frame, time). told is called when the moment rests.
  constructor(views, told) {
    this.views = views;
    this.told = told;
    this.playing = false;
  }

  begin(reel, frame) {
    this.pause();
    this.reel = reel;
    const scrub = at("scrub");
    scrub.max = String(reel.stops.length - 1);
    this.seek(frame);
  }

  // seek rests at a frame.
  seek(frame) {
    this.pause();
    this.rest(Math.max(0, Math.min(frame, this.reel.last)));
  }

  seekStop(number) {
    const { stops } = this.reel;
    this.seek(stops[Math.max(0, Math.min(number, stops.length - 1))]);
  }

  // step moves by lines, or with fine by single events.
  step(by, fine) {
    if (fine) {
      this.seek(this.frame + by);
      return;
    }
    const stop = this.reel.stopOf(this.frame);
    this.seekStop(by < 0 && this.frame > this.reel.stops[stop] ? stop : stop + by);
  }

  // nextMoment rests at the next explained moment, or at the end.
  nextMoment() {
    const moments = this.reel.doc.moments ?? [];
    this.seek(moments.find((moment) => moment.frame > this.frame)?.frame ?? this.reel.last);
  }

  rest(frame) {
    this.frame = frame;
    this.time = this.reel.at(frame);
    this.stop = this.reel.stopOf(frame);
    this.draw();
    this.told(frame);
  }

  draw() {
    for (const view of this.views) {
      view.show(this.frame, this.time);
    }
    const line = this.reel.doc.lines?.[this.reel.lineOf(this.frame)];
    const scrub = at("scrub");
    scrub.value = String(this.stop);
    scrub.setAttribute("aria-valuetext", `${milliseconds(this.time)} milliseconds${line ? `: ${line.text}` : ""}`);
    at("clock").textContent = `${milliseconds(this.time)} ms · moment ${this.frame} of ${this.reel.last}`;
  }

  toggle() {
    if (this.playing) {
      this.pause();
      this.told(this.frame);
      return;
    }
    if (this.frame >= this.reel.last) {
      this.rest(0);
    }
    this.set(true);
    this.before = null;
    this.wake = calm.matches ? setInterval(() => this.jump(), 1500 / this.speed()) : requestAnimationFrame((now) => this.tick(now));
  }

  pause() {
    if (this.playing) {
      cancelAnimationFrame(this.wake);
      clearInterval(this.wake);
      this.set(false);
    }
  }

  set(playing) {
    this.playing = playing;
    const button = at("play");
    button.textContent = playing ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(playing));
    at("now").setAttribute("aria-live", playing ? "off" : "polite");
  }

  speed() {
    return Number(at("speed").value);
  }

  // jump shows the next line without motion between.
  jump() {
    const next = this.reel.stops[this.stop + 1];
    this.reach(next ?? this.reel.last);
  }

  // reach arrives at a stop while playing; an explained moment ends the play, and so does the end.
  reach(frame) {
    const ends = frame >= this.reel.last || (this.reel.doc.moments ?? []).some((moment) => moment.frame === frame);
    if (ends) {
      this.pause();
      this.rest(frame);
      return;
    }
    this.frame = frame;
    this.stop = this.reel.stopOf(frame);
    this.time = this.reel.at(frame);
    this.draw();
  }

  // tick moves virtual time by as much as real time has passed: a delay takes always equally long, and long pauses are shortened.
  tick(now) {
    let left = this.before === null ? 0 : Math.min(now - this.before, 100) * this.speed();
    this.before = now;
    while (this.playing) {
      const { stops, doc } = this.reel;
      const from = this.reel.at(stops[this.stop]);
      const end = stops[this.stop + 1];
      if (end === undefined) {
        this.reach(this.reel.last);
        return;
      }
      const span = this.reel.at(end) - from;
      const takes = Math.min((span / doc.delay) * oneDelay, longestGap);
      const rest = takes === 0 ? 0 : ((this.reel.at(end) - this.time) / span) * takes;
      if (rest > left) {
        this.time += (left / takes) * span;
        this.frame = this.reel.frameAt(this.stop, this.time);
        this.draw();
        break;
      }
      left -= rest;
      this.reach(end);
    }
    if (this.playing) {
      this.wake = requestAnimationFrame((later) => this.tick(later));
    }
  }
}

// A run with all its frames: what is to be seen at each moment of it.

export class Reel {
  // doc is the document of a run (package player).
  constructor(doc) {
    this.doc = doc;
    this.frames = doc.tape.frames ?? [];
    this.flights = doc.tape.flights ?? [];
    this.last = this.frames.length - 1;
    this.history = Array.from({ length: doc.members }, () => ({ frames: [], states: [] }));
    this.configurations = [];
    this.frames.forEach((frame, number) => {
      for (const state of frame.changed ?? []) {
        this.colour(state.config.name);
        const { frames, states } = this.history[state.id - 1];
        frames.push(number);
        states.push(state);
      }
    });
    const stops = new Set([0, this.last]);
    for (const line of doc.lines ?? []) {
      stops.add(line.frame);
    }
    for (const moment of doc.moments ?? []) {
      stops.add(moment.frame);
    }
    this.stops = [...stops].sort((a, b) => a - b);
    this.longest = this.flights.reduce((most, f) => Math.max(most, this.ends(f) - f.s), 0);
  }

  // colour numbers the configurations in the order in which they are met.
  colour(name) {
    if (!name) {
      return -1;
    }
    let number = this.configurations.indexOf(name);
    if (number < 0) {
      number = this.configurations.push(name) - 1;
    }
    return number;
  }

  at(frame) {
    return this.frames[frame]?.at ?? 0;
  }

  // state returns what a member is at a frame.
  state(member, frame) {
    const { frames, states } = this.history[member - 1];
    let low = 0;
    let high = frames.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (frames[middle] <= frame) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return states[low];
  }

  states(frame) {
    return this.history.map((_, i) => this.state(i + 1, frame));
  }

  // ends returns when a flight is over: on arrival, or, if it is lost, a while after it left.
  ends(flight) {
    return flight.l || !flight.a ? flight.s + this.doc.delay * 0.7 : flight.a;
  }

  // inFlight returns the messages that are on their way at a time, each with how far it is, from 0 to 1.
  inFlight(time) {
    const found = [];
    for (let i = this.after(time) - 1; i >= 0; i--) {
      const flight = this.flights[i];
      if (flight.s < time - this.longest) {
        break;
      }
      const ends = this.ends(flight);
      if (time < ends) {
        found.push({ flight, part: (time - flight.s) / (ends - flight.s) });
      }
    }
    return found;
  }

  // after returns how many flights left at a time or before.
  after(time) {
    let low = 0;
    let high = this.flights.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.flights[middle].s <= time) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // stopOf returns the number of the last stop at a frame or before it.
  stopOf(frame) {
    let number = 0;
    while (number + 1 < this.stops.length && this.stops[number + 1] <= frame) {
      number++;
    }
    return number;
  }

  // frameAt returns the last frame of a stop that shows a time.
  frameAt(stop, time) {
    const end = stop + 1 < this.stops.length ? this.stops[stop + 1] - 1 : this.last;
    let frame = this.stops[stop];
    while (frame < end && this.frames[frame + 1].at <= time) {
      frame++;
    }
    return frame;
  }

  // lineOf returns the number of the last line that a frame shows.
  lineOf(frame) {
    const lines = this.doc.lines ?? [];
    let found = -1;
    for (let i = 0; i < lines.length; i++) {
      if (lines[i].frame <= frame) {
        found = i;
      }
    }
    return found;
  }

  // momentOf returns the last explained moment at a frame or before it, or undefined.
  momentOf(frame) {
    return (this.doc.moments ?? []).findLast((moment) => moment.frame <= frame);
  }
}

// The picture of a moment: members on a ring, messages between them, and the quorums that are being counted.
import { svg } from "./making.js";

const width = 480;
const height = 356;

export class Ring {
  constructor(picture, text) {
    this.picture = picture;
    this.text = text;
    this.layers = ["mesh", "hulls", "flights", "nodes"].map((name) => svg("g", { class: name }));
    picture.append(...this.layers);
  }

  // begin draws the members of a run.
  begin(reel) {
    this.reel = reel;
    const count = reel.doc.members;
    const wide = count > 6; // more members are smaller, on a larger ring
    this.radius = wide ? 27 : 32;
    const [across, down] = wide ? [200, 134] : [172, 122];
    this.places = Array.from({ length: count }, (_, i) => {
      const angle = -Math.PI / 2 + (2 * Math.PI * i) / count;
      return { x: width / 2 + across * Math.cos(angle), y: height / 2 - 4 + down * Math.sin(angle) };
    });
    const [mesh, hulls, flights, nodes] = this.layers;
    for (const layer of this.layers) {
      layer.replaceChildren();
    }
    this.links = new Map();
    for (let a = 0; a < count; a++) {
      for (let b = a + 1; b < count; b++) {
        const line = svg("line", { ...ends(this.places[a], this.places[b]), class: "link" });
        this.links.set(`${a + 1}-${b + 1}`, line);
        mesh.append(line);
      }
    }
    this.hulls = hulls;
    this.flights = flights;
    this.nodes = this.places.map((place, i) => {
      const parts = {
        body: svg("circle", { r: this.radius, class: "body" }),
        name: svg("text", { class: "id", y: -1 }, String(i + 1)),
        term: svg("text", { class: "term", y: Math.round(this.radius * 0.58) }),
        role: svg("text", { class: "role", y: -Math.round(this.radius * 0.5) }),
        config: svg("text", { class: "config", y: this.radius + 15 }),
      };
      nodes.append(svg("g", { class: "node", transform: `translate(${place.x} ${place.y})` }, ...Object.values(parts)));
      return parts;
    });
  }

  // show draws a frame, and the messages in flight at a time.
  show(frame, time) {
    if (frame !== this.frame || this.shown !== this.reel) {
      this.frame = frame;
      this.shown = this.reel;
      this.drawStates(this.reel.states(frame), this.reel.frames[frame]?.groups ?? []);
    }
    this.drawFlights(time);
  }

  drawStates(states, groups) {
    states.forEach((state, i) => {
      const { body, term, role, config } = this.nodes[i];
      body.setAttribute("class", [
        "body", `band-${this.reel.colour(state.config.name) % 8}`, state.up ? "" : "down", votes(state) ? "" : "learner",
        state.config.outgoing ? "joint" : "", state.role,
      ].join(" "));
      role.textContent = mark(state);
      term.textContent = state.up ? `term ${state.term}` : state.gone ? "gone" : "down";
      config.textContent = state.up ? state.config.name : "";
    });
    for (const [link, line] of this.links) {
      const [a, b] = link.split("-").map(Number);
      const heard = groups.length === 0 || groups.some((group) => group.includes(a) && group.includes(b));
      line.setAttribute("class", heard ? "link" : "link cut");
    }
    this.hulls.replaceChildren();
    for (const state of states) {
      for (const count of state.counts ?? []) {
        count.sets.forEach((set, i) => this.drawHull(set, i, count.sets.length));
      }
    }
    const told = states.map((s) => `${s.id} ${roleOf(s)}${s.up ? `, term ${s.term}, ${s.config.name}` : ""}`);
    this.text.textContent = told.join("; ");
  }

  // drawHull draws the members of a set that agree so far, as one area.
  drawHull(set, number, of) {
    if (set.have.length === 0) {
      return;
    }
    const points = hull(set.have.map((id) => this.places[id - 1]));
    const path = points.map((p, i) => `${i === 0 ? "M" : "L"}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join("") + "Z";
    const kind = of > 1 && number === 0 ? "old" : "new";
    const enough = set.have.length >= set.need ? "enough" : "short";
    this.hulls.append(svg("path", { d: path, class: `hull ${kind} ${enough}`, "stroke-width": 2 * this.radius + (kind === "old" ? 30 : 16) }));
  }

  drawFlights(time) {
    const drawn = [];
    for (const { flight, part } of this.reel.inFlight(time)) {
      const from = this.places[flight.f - 1];
      const to = this.places[flight.t - 1];
      const far = Math.hypot(to.x - from.x, to.y - from.y);
      const [dx, dy] = [(to.x - from.x) / far, (to.y - from.y) / far];
      const lost = flight.l || !flight.a;
      const way = this.radius + 8 + (far - 2 * this.radius - 16) * (lost ? 0.08 + 0.45 * part : 0.04 + 0.92 * part);
      const x = from.x + dx * way - dy * 7;
      const y = from.y + dy * way + dx * 7;
      const turn = (Math.atan2(dy, dx) * 180) / Math.PI;
      const shape = lost && part > 0.55
        ? svg("path", { d: "M-5 -5L5 5M5 -5L-5 5", class: "loss" })
        : svg("path", { d: flight.k === "beat" ? "M-3 -3L4 0L-3 3Z" : "M-6 -5L8 0L-6 5L-3 0Z", transform: `rotate(${turn})` });
      const group = svg("g", { class: `flight ${flight.k}${lost ? " lost" : ""}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` }, shape);
      group.append(svg("title", {}, `${flight.f} → ${flight.t}: ${flight.w}`));
      drawn.push(group);
    }
    this.flights.replaceChildren(...drawn);
  }
}

function ends(a, b) {
  return { x1: a.x.toFixed(1), y1: a.y.toFixed(1), x2: b.x.toFixed(1), y2: b.y.toFixed(1) };
}

// mark is the sign of a role, as charts have it.
export function mark(state) {
  if (!state.up) {
    return state.gone ? "■" : "✖";
  }
  return { leader: "★", candidate: "?", "pre-candidate": "?" }[state.role] ?? "";
}

// votes reports whether a member is a voter of the configuration that it has in force, or of the old set of a joint one.
export function votes(state) {
  return Boolean(state.config.voters?.includes(state.id) || state.config.outgoing?.includes(state.id));
}

// roleOf says in words what a member is.
export function roleOf(state) {
  if (!state.up) {
    return state.gone ? "switched off for ever" : "down";
  }
  switch (state.role) {
    case "leader":
      return "leads";
    case "candidate":
      return "asks for votes";
    case "pre-candidate":
      return "asks whether it would win";
  }
  if (!votes(state)) {
    return state.config.learners?.includes(state.id) ? "learner" : "not in its configuration";
  }
  return state.leader ? `follows ${state.leader}` : "knows no leader";
}

// hull returns the convex hull of points, in their order (monotone chain).
function hull(points) {
  const sorted = [...points].sort((a, b) => a.x - b.x || a.y - b.y);
  const half = (some) => {
    const out = [];
    for (const p of some) {
      while (out.length > 1 && turn(out.at(-2), out.at(-1), p) <= 0) {
        out.pop();
      }
      out.push(p);
    }
    return out.slice(0, -1);
  };
  return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

function turn(a, b, c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

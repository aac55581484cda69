// What to play: the stories, and the form for a run of one's own.
import { at, el } from "./making.js";

const stageTime = "time";

export class Choose {
  // play is called with a link.
  constructor(choices, play) {
    this.choices = choices;
    this.play = play;
    this.faults = [];
    this.listStories();
    this.fillForm();
  }

  listStories() {
    at("stories").replaceChildren(...this.choices.stories.map((story) => el("li", {},
      el("button", { type: "button", id: `story-${story.name}`, class: "story", on: { click: () => this.play(`story=${story.name}&rule=dropped`) } },
        el("span", { class: "story-name" }, story.name), el("span", { class: "story-title" }, story.title)))));
  }

  fillForm() {
    const { protocols, experiment, faults, stages, stage_names: names, rules } = this.choices;
    const option = (value, text) => el("option", { value }, text);
    at("protocol").append(...protocols.map((name) => option(name, name === experiment ? `${name} (experiment)` : name)));
    at("protocol").value = "joint";
    at("fault-kind").append(...faults.map((fault) => option(fault.form, fault.form.split(/[@:]/)[0])));
    at("fault-when").append(...names.map((name, stage) => option(String(stage), `${stage} ${name}`)), option(stageTime, "at a time"));
    at("rule-list").append(...rules.map((rule) => el("label", { class: "check", for: `drop-${rule.name}` },
      el("input", { type: "checkbox", id: `drop-${rule.name}`, value: rule.name }),
      el("span", {}, el("code", {}, rule.name), ` ${rule.demands}`))));
    at("stops-help").textContent += ": " + names.map((name, stage) => `${stage} ${name}`).join(", ");
    this.stages = stages;
    at("fault-kind").addEventListener("change", () => this.showFields());
    at("fault-when").addEventListener("change", () => this.showFields());
    at("fault-add").addEventListener("click", () => this.addFault());
    at("own").addEventListener("submit", (event) => {
      event.preventDefault();
      this.play(this.link());
    });
    this.showFields();
    this.showFaults();
  }

  // showFields shows the fields that a fault of the chosen kind has.
  showFields() {
    const form = at("fault-kind").value;
    const timed = form.includes("@");
    const shown = {
      member: form.includes(":M"), when: timed, time: timed && at("fault-when").value === stageTime,
      again: form.includes("+TIME"), groups: form.includes("|"),
    };
    for (const field of at("faults").querySelectorAll("[data-for]")) {
      field.hidden = !shown[field.dataset.for];
    }
    const fault = this.choices.faults.find((one) => one.form === form);
    const stage = timed ? this.stages[Number(at("fault-when").value)] : null;
    at("fault-about").textContent = fault.about.charAt(0).toUpperCase() + fault.about.slice(1) + (stage ? `. Stage ${stage.form}: ${stage.about}.` : ".");
  }

  // addFault adds the fault that the fields describe. The laboratory checks it when it runs.
  addFault() {
    const form = at("fault-kind").value;
    let text = form.split(/[@:]/)[0];
    if (form.includes(":M")) {
      text += `:${at("fault-member").value}`;
    }
    if (form.includes("@")) {
      const when = at("fault-when").value;
      text += `@${when === stageTime ? at("fault-time").value.trim() : when}`;
    }
    if (form.includes("+TIME")) {
      text += `+${at("fault-again").value.trim()}`;
    }
    if (form.includes("|")) {
      text += `:${at("fault-groups").value.replaceAll(" ", "")}`;
    }
    this.faults.push(text);
    this.showFaults();
  }

  showFaults() {
    at("fault-list").replaceChildren(...this.faults.map((text, number) => el("li", {}, el("code", {}, text),
      el("button", {
        type: "button", "aria-label": `Take back ${text}`, title: "Take back", on: {
          click: () => {
            this.faults.splice(number, 1);
            this.showFaults();
            at("fault-add").focus();
          },
        },
      }, "×"))));
    at("fault-list").hidden = this.faults.length === 0;
  }

  // link returns the link of the run that the form describes.
  link() {
    const parts = new URLSearchParams();
    const add = (name, usual) => {
      const value = at(name).value.trim();
      if (value !== "" && value !== usual) {
        parts.append(name, value);
      }
    };
    add("protocol");
    add("from");
    add("to", "0");
    add("add", "0");
    add("remove");
    add("demote");
    this.faults.forEach((text) => parts.append("fault", text));
    for (const box of at("rule-list").querySelectorAll("input:checked")) {
      parts.append("drop", box.value);
    }
    if (at("fast").checked) {
      parts.append("fast", "1");
    }
    add("seed", "1");
    add("delay", "1ms");
    return parts.toString();
  }

  // show makes the panels say what is played: link is the one that the laboratory wrote.
  show(link) {
    const parts = new URLSearchParams(link);
    for (const button of at("stories").querySelectorAll("button")) {
      button.removeAttribute("aria-current");
    }
    const story = parts.get("story");
    if (story) {
      at(`story-${story}`)?.setAttribute("aria-current", "true");
      return;
    }
    for (const name of ["protocol", "from", "to", "add", "remove", "demote"]) {
      at(name).value = parts.get(name) ?? "";
    }
    at("seed").value = parts.get("seed") ?? "1";
    at("delay").value = parts.get("delay") ?? "1ms";
    at("fast").checked = parts.get("fast") === "1";
    this.faults = parts.getAll("fault");
    this.showFaults();
    const dropped = parts.getAll("drop");
    for (const box of at("rule-list").querySelectorAll("input")) {
      box.checked = dropped.includes(box.value);
    }
  }
}

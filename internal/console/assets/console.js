// The console works without this script: links and forms are the browser's. It keeps live sections up to date while the tab is
// visible, remembers what is unfolded and focused when a section is replaced, and opens the list of pages.

// markup turns text that this console rendered into nodes. Browsers with Trusted Types accept it by this policy alone.
const trusted = window.trustedTypes
  ? window.trustedTypes.createPolicy("quorate", { createHTML: (text) => text })
  : { createHTML: (text) => text };

function nodeOf(text) {
  const holder = document.createElement("template");
  holder.innerHTML = trusted.createHTML(text);
  return holder.content.firstElementChild;
}

// A path to an element within a section, by which it is found again in the section that replaces it.
function trail(root, element) {
  const steps = [];
  for (let e = element; e && e !== root; e = e.parentElement) {
    steps.unshift([...e.parentElement.children].indexOf(e));
  }
  return steps;
}

function follow(root, steps) {
  return steps.reduce((e, step) => e && e.children[step], root);
}

// edits says whether somebody types in a section, or has marked text in it: it is left alone then.
function edits(section) {
  const focused = document.activeElement;
  if (section.contains(focused) && focused.matches("input, textarea, select")) return true;
  const selection = document.getSelection();
  return !!selection && !selection.isCollapsed && section.contains(selection.anchorNode);
}

function replace(text) {
  const fresh = nodeOf(text);
  if (!fresh || !fresh.id) return;
  const old = document.getElementById(fresh.id);
  if (!old) {
    document.querySelector(".sections").append(fresh);
    equip(fresh);
    return;
  }
  if (edits(old)) return;
  for (const unfolded of old.querySelectorAll("details[open]")) {
    const twin = unfolded.id ? fresh.querySelector("#" + CSS.escape(unfolded.id)) : follow(fresh, trail(old, unfolded));
    if (twin && twin.matches("details")) twin.open = true;
  }
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const steps = focused && trail(old, focused);
  const scrolled = [...old.querySelectorAll(".scroll")].map((e) => [trail(old, e), e.scrollLeft]);
  old.replaceWith(fresh);
  equip(fresh);
  if (focused) {
    const twin = focused.id ? document.getElementById(focused.id) : follow(fresh, steps);
    if (twin) twin.focus({ preventScroll: true });
  }
  for (const [path, left] of scrolled) {
    const twin = follow(fresh, path);
    if (twin) twin.scrollLeft = left;
  }
}

// live follows the page while the tab is visible.
let source = null;

function stale(is) {
  document.documentElement.toggleAttribute("data-stale", is);
}

function listen() {
  const url = new URL(location.href);
  url.searchParams.set("live", "");
  source = new EventSource(url);
  source.addEventListener("section", (e) => replace(e.data));
  source.addEventListener("at", (e) => {
    document.getElementById("at").textContent = e.data;
    stale(false);
  });
  source.addEventListener("login", () => location.reload());
  source.addEventListener("error", () => stale(true));
}

function watch() {
  if (document.hidden) {
    if (source) source.close();
    source = null;
  } else if (!source) {
    listen();
  }
}

if (document.body.hasAttribute("data-live")) {
  document.addEventListener("visibilitychange", watch);
  window.addEventListener("pagehide", () => {
    if (source) source.close();
    source = null;
  });
  window.addEventListener("pageshow", watch);
  watch();
}

// reach lets the keyboard scroll what is wider or higher than its frame, in browsers that do not so by themselves.
function reach(root) {
  for (const area of root.querySelectorAll(".scroll, .command code, pre")) {
    const more = area.scrollWidth > area.clientWidth || area.scrollHeight > area.clientHeight;
    if (!more || area.hasAttribute("tabindex")) continue;
    area.tabIndex = 0;
    if (area.hasAttribute("role")) continue;
    area.setAttribute("role", "group");
    area.setAttribute("aria-label", area.matches(".scroll") ? "Table" : area.matches("pre") ? "Text" : "Command");
  }
}

window.addEventListener("resize", () => reach(document));

// equip gives a section what works only with scripts.
function equip(root) {
  reach(root);
  for (const button of root.querySelectorAll(".copy")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  for (const form of root.querySelectorAll("form[data-auto]")) {
    form.addEventListener("change", () => form.requestSubmit());
  }
}

equip(document);

// The palette: Ctrl-K, or Cmd-K, or a slash outside of a field.
const palette = document.getElementById("palette");
const asked = document.getElementById("palette-text");
const list = document.getElementById("palette-list");

function matching() {
  const text = asked.value.trim().toLowerCase();
  return [...document.querySelectorAll("nav a")].filter((a) => a.textContent.toLowerCase().includes(text));
}

function offer() {
  list.replaceChildren(...matching().map((a) => {
    const item = document.createElement("li");
    item.append(a.cloneNode(true));
    return item;
  }));
}

if (palette) {
  document.addEventListener("keydown", (e) => {
    const typing = document.activeElement && document.activeElement.matches("input, textarea, select");
    if ((e.key === "k" && (e.ctrlKey || e.metaKey)) || (e.key === "/" && !typing && !palette.open)) {
      e.preventDefault();
      asked.value = "";
      offer();
      palette.showModal();
    }
  });
  asked.addEventListener("input", offer);
  asked.addEventListener("keydown", (e) => {
    const first = matching()[0];
    if (e.key === "Enter" && first) {
      e.preventDefault();
      location.assign(first.href);
    }
  });
}

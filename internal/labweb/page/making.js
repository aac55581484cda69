// Elements, made of names, attributes and children. Texts are texts: nothing is parsed as markup.

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [kind, handler] of Object.entries(value)) {
        node.addEventListener(kind, handler);
      }
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// el makes an element of HTML.
export const el = (name, attributes = {}, ...children) => make(document.createElement(name), attributes, children);

// svg makes an element of a picture.
export const svg = (name, attributes = {}, ...children) =>
  make(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// at returns the element with an id.
export const at = (id) => document.getElementById(id);

// milliseconds writes nanoseconds as charts do.
export const milliseconds = (nanoseconds) => (nanoseconds / 1e6).toFixed(1);

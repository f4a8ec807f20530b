// Names, attributes and children in; elements out. Strings become text, never markup.

/** `make("button", {type: "button", class: "x"}, "text")`; attributes and children that are null, false or empty are left out. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value === true) element.setAttribute(key, "");
    else if (value || value === 0) element.setAttribute(key, value);
  element.append(...children.flat().filter(child => child || child === 0));
  return element;
}

/** `83.4` → `1:23`. */
export function clock(seconds) {
  const whole = Math.floor(seconds), rest = String(whole % 60).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}

/** `0.934` → `93 %`, in the form of the language of the page. */
export function percent(share, digits = 0) {
  const form = {style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits};
  return share.toLocaleString(document.documentElement.lang, form);
}

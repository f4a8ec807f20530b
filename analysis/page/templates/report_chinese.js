// Translates the texts of the page: its phrases are the keys of a table, in which # stands for a number and {} for
// any text. It watches the page, since the other scripts add texts to it.

const TRANSLATED = ["aria-label", "title", "placeholder", "alt", "label"];
const NUMBER = "[+\u2212-]?[\\d.,]+(?:\\s?[%×])?";

const phrases = new Map(), patterns = [];
for (const [english, chinese] of JSON.parse(document.getElementById("phrases").textContent)) {
  phrases.set(english, chinese);
  if (!/[#{]/.test(english)) continue;
  const source = english.replace(/[.*+?^$()|[\]\\/]/g, "\\$&").replaceAll("#", `(${NUMBER})`).replaceAll("{}", "(.+?)");
  patterns.push([new RegExp(`^${source}$`), chinese]);
}

/** The Chinese of a text, or of the texts that commas separate; null if it is none of the page's phrases. */
function inChinese(text) {
  if (phrases.has(text)) return phrases.get(text);
  for (const [pattern, chinese] of patterns) {
    const match = pattern.exec(text);
    if (match) return chinese.replace(/\$(\d)/g, (_, part) => inChinese(match[part]) ?? match[part]);
  }
  const parts = text.split(", "), translated = parts.length > 1 ? parts.map(inChinese) : [null];
  return translated.some(part => part !== null) ? translated.map((part, i) => part ?? parts[i]).join("、") : null;
}

function translate(node) {
  const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
  if (!element?.closest || element.closest("script, style, code, .open, body [lang]")) return;
  if (node !== element) {
    const text = node.data.trim(), chinese = inChinese(text.replace(/\s+/g, " "));
    if (chinese) node.data = node.data.replace(text, () => chinese);
    return;
  }
  for (const name of TRANSLATED.filter(name => node.hasAttribute(name))) {
    const chinese = inChinese(node.getAttribute(name));
    if (chinese) node.setAttribute(name, chinese);
  }
  node.childNodes.forEach(translate);
}

translate(document.body);
new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(translate)))
  .observe(document.body, {childList: true, subtree: true});

/** Light or dark: the system's, unless the reader has chosen. */

import { h } from "./dom.js";
import { text } from "./words.js";

const KEPT = "theme";
const CHOICES = /** @type {const} */ (["system", "light", "dark"]);

export const chosen = () => localStorage.getItem(KEPT) ?? "system";

/** Show the page as it was chosen. */
export function applyTheme() {
  const theme = chosen();
  if (theme === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
}

/** The switch. @param {() => void} changed */
export function themeSwitch(changed) {
  const choose = (event) => {
    localStorage.setItem(KEPT, event.target.value);
    applyTheme();
    changed();
  };
  const options = CHOICES.map((choice) =>
    h("option", { value: choice, selected: choice === chosen() }, text(`page.theme.${choice}`)),
  );
  return h("label", { class: "quiet" }, text("page.theme.label"), " ", h("select", { onChange: choose }, options));
}

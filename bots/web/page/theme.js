// @ts-check
// Light or dark: the person's choice, otherwise that of the system.

const key = 'nize.theme'

/** @param {string|null} theme */
function apply(theme) {
  const root = document.documentElement
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme
  else delete root.dataset.theme
}

/** Applies the theme of the last visit until the setting is loaded. */
export function lastTheme() {
  apply(localStorage.getItem(key))
  addEventListener('storage', (e) => { if (e.key === key) apply(e.newValue) }) // changed in another tab
}

/** @param {string} theme auto, light or dark */
export function setTheme(theme) {
  apply(theme)
  if (theme !== localStorage.getItem(key)) localStorage.setItem(key, theme)
}

// @ts-check
// Light or dark: a person's own choice, or else as the browser's system is.

const key = 'nize.theme'

/** @param {string|null} theme */
function apply(theme) {
  const root = document.documentElement
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme
  else delete root.dataset.theme
}

/** The theme of the last visit, until it is known what the setting is. */
export function lastTheme() {
  apply(localStorage.getItem(key))
  addEventListener('storage', (e) => { if (e.key === key) apply(e.newValue) }) // chosen in another tab
}

/** @param {string} theme auto, light or dark */
export function setTheme(theme) {
  apply(theme)
  if (theme !== localStorage.getItem(key)) localStorage.setItem(key, theme)
}

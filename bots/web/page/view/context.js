// @ts-check
// What a view gets to know about its surroundings: colours, language, size.
import { locale } from '../words.js'

/** The names under which views expect the page's style; the page uses the same names for its own. */
const named = [
  'color-background-primary', 'color-background-secondary', 'color-background-tertiary', 'color-background-warning',
  'color-text-primary', 'color-text-secondary', 'color-text-danger', 'color-text-warning',
  'color-border-primary', 'font-sans', 'font-mono', 'border-radius-md',
]

/** Those that have another name on the page. */
const other = { 'color-background-inverse': 'color-text-primary', 'color-text-inverse': 'color-background-primary', 'color-text-info': 'color-accent', 'color-border-secondary': 'color-border-strong', 'color-ring-primary': 'color-accent', 'color-border-danger': 'color-text-danger', 'color-border-warning': 'color-text-warning' }

/** light or dark, as the page is now. */
export function theme() {
  const scheme = getComputedStyle(document.documentElement).colorScheme
  if (scheme === 'dark' || scheme === 'light') return scheme
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}

function variables() {
  const style = getComputedStyle(document.documentElement)
  /** @type {Record<string, string>} */
  const all = {}
  const put = (/** @type {string} */ name, /** @type {string} */ from) => {
    const value = style.getPropertyValue('--' + from).trim()
    if (value) all['--' + name] = value
  }
  for (const name of named) put(name, name)
  for (const [name, from] of Object.entries(other)) put(name, from)
  return all
}

/** What may change while a view is open. */
export const appearance = () => ({ theme: theme(), locale: locale(), styles: { variables: variables() } })

/** The space that a view has. @param {HTMLIFrameElement} iframe @param {string} mode */
export const room = (iframe, mode) => ({ containerDimensions: { width: iframe.clientWidth, ...mode === 'fullscreen' ? { height: iframe.clientHeight } : { maxHeight: 800 } } })

/**
 * @param {HTMLIFrameElement} iframe
 * @param {any} frame nize's description of the view
 * @param {string} mode
 */
export const context = (iframe, frame, mode) => ({
  ...appearance(),
  ...room(iframe, mode),
  toolInfo: { tool: frame.tool },
  displayMode: mode,
  availableDisplayModes: ['inline', 'fullscreen'],
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  userAgent: navigator.userAgent,
  platform: 'web',
  deviceCapabilities: { touch: matchMedia('(any-pointer: coarse)').matches, hover: matchMedia('(any-hover: hover)').matches },
  safeAreaInsets: { top: 0, right: 0, bottom: 0, left: 0 },
})

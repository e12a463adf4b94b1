// @ts-check
// Icons, drawn as lines in the text's colour. They are hidden from screen readers; the
// button's label has their meaning.
import { html } from './html.js'

const sprite = new URL('./icons.svg', import.meta.url).pathname

/** @param {string} name */
export const icon = (name) => html`<svg class="icon" aria-hidden="true" focusable="false"><use href=${sprite + '#' + name} /></svg>`

/** nize's logo. */
export const mark = () => html`<span class="avatar nize" aria-hidden="true"><svg viewBox="0 0 32 32"><path d="M9 23V10h3.4v1.8C13.4 10.3 15 9.6 17 9.6c3.7 0 6 2.3 6 6.4v7h-3.5v-6.6c0-2.3-1.1-3.6-3.2-3.6-2.2 0-3.8 1.5-3.8 4.1V23z" /></svg></span>`

/** Number of colours for people; the style sheet has them. */
const colours = 6

/** A person's initials. @param {{name: string}} props */
export function Avatar({ name }) {
  const letters = [...name.matchAll(/(?:^|[\s._-])([\p{L}\p{N}])/gu)].map((m) => m[1])
  const short = letters.length > 1 ? letters[0] + letters[letters.length - 1] : [...name][0] ?? '?'
  const colour = [...name].reduce((sum, c) => sum * 31 + (c.codePointAt(0) ?? 0) | 0, 7)
  return html`<span class=${'avatar of-' + Math.abs(colour % colours)} aria-hidden="true">${short.toUpperCase()}</span>`
}

// @ts-check
// Texts that were not sent, or sent but not accepted, per conversation: kept in the
// browser until nize has them.

/** @param {string} kind @param {string} thread */
const place = (kind, thread) => `nize.${kind}.${thread || 'new'}`

/** @param {string} kind @param {string} thread */
const read = (kind, thread) => {
  try {
    return localStorage.getItem(place(kind, thread)) ?? ''
  } catch {
    return ''
  }
}

/** @param {string} kind @param {string} thread @param {string} text */
const keep = (kind, thread, text) => {
  try {
    if (text) localStorage.setItem(place(kind, thread), text)
    else localStorage.removeItem(place(kind, thread))
  } catch {} // it is kept while the page is open
}

/** @param {string} thread */
export const readDraft = (thread) => read('draft', thread)

/** @param {string} thread @param {string} text */
export const keepDraft = (thread, text) => keep('draft', thread, text)

/** @param {string} thread */
export function forgetDraft(thread) {
  keep('draft', thread, '')
  keep('unsent', thread, '')
}

/** @typedef {{key: string, text: string, instead?: string}} Unsent */

/**
 * Returns the messages that nize may not have accepted.
 * @param {string} thread
 * @returns {Unsent[]}
 */
export function readUnsent(thread) {
  try {
    return JSON.parse(read('unsent', thread) || '[]')
  } catch {
    return []
  }
}

/** @param {string} thread @param {Unsent} unsent */
export const keepUnsent = (thread, unsent) => keep('unsent', thread, JSON.stringify([...readUnsent(thread).filter((m) => m.key !== unsent.key), unsent]))

/** @param {string} thread @param {string} key */
export function dropUnsent(thread, key) {
  const rest = readUnsent(thread).filter((m) => m.key !== key)
  keep('unsent', thread, rest.length ? JSON.stringify(rest) : '')
}

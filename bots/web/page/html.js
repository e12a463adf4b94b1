// @ts-check
// Markup as tagged templates: inserted values become text or elements, never markup.
import { h } from 'preact'
import htm from 'htm'

export const html = htm.bind(h)

// @ts-check
// Markup as tagged templates: what is put into one becomes text or an element,
// and never markup.
import { h } from 'preact'
import htm from 'htm'

export const html = htm.bind(h)

// @ts-check
// Bars by day. The table beside them has the same numbers for people who can't see them.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { html } from '../html.js'
import { t } from '../words.js'
import { dayName } from './figures.js'

const height = 160
const foot = 22
const head = 18
const widest = 36

/**
 * @param {object} props
 * @param {string} props.title
 * @param {any[]} props.rows one for each day
 * @param {(row: any) => number} props.value
 * @param {(value: number) => string} props.show
 */
export function Bars({ title, rows, value, show }) {
  const frame = useRef(/** @type {HTMLElement|null} */ (null))
  const [width, setWidth] = useState(600)
  useLayoutEffect(() => {
    const seen = new ResizeObserver(([e]) => setWidth(Math.max(160, Math.round(e.contentRect.width))))
    if (frame.current) seen.observe(frame.current)
    return () => seen.disconnect()
  }, [])
  const most = Math.max(...rows.map(value), 0)
  const sum = rows.reduce((n, r) => n + value(r), 0)
  const step = width / rows.length
  const wide = Math.max(Math.min(step - Math.min(2, step / 4), widest), .5)
  const room = height - foot - head
  return html`<figure class="bars" ref=${frame}>
    <figcaption>${title}</figcaption>
    <svg viewBox=${`0 0 ${width} ${height}`} width="100%" height=${height} role="img" aria-label=${t('{what}: {sum} in {n} days, {most} on the day with the most', { what: title, sum: show(sum), n: rows.length, most: show(most) })}>
      <line class="bars-line" x1="0" x2=${width} y1=${head} y2=${head} /><line class="bars-line" x1="0" x2=${width} y1=${height - foot} y2=${height - foot} />
      <text class="bars-text" x="0" y=${head - 5}>${show(most)}</text>
      ${rows.map((r, i) => {
        const high = most ? value(r) / most * room : 0
        return html`<g key=${r.key} class="bars-day"><title>${dayName(r.key)}: ${show(value(r))}</title>
          <rect class="bars-hit" x=${i * step} y=${head} width=${step} height=${room} />
          <rect class="bars-bar" x=${i * step + (step - wide) / 2} y=${height - foot - Math.max(high, value(r) ? 1 : 0)} width=${wide} height=${Math.max(high, value(r) ? 1 : 0)} /></g>`
      })}
      <text class="bars-text" x="0" y=${height - 6}>${dayName(rows[0].key)}</text>
      <text class="bars-text bars-end" x=${width} y=${height - 6}>${dayName(rows[rows.length - 1].key)}</text>
    </svg>
  </figure>`
}

// Screens of a terminal as an SVG that moves by CSS alone, so that a README can show it.

/** The 16 colours of a terminal with a dark background. */
const palette = ['#1d2430', '#f07178', '#a5d6a7', '#ffd479', '#82aaff', '#c792ea', '#89ddff', '#d6deeb', '#6b7a90', '#ff8a80', '#b9f6ca', '#ffe57f', '#a0c4ff', '#e1b0ff', '#a7ffeb', '#ffffff']
const background = '#10151d'
const foreground = '#d6deeb'
const [wide, high, margin] = [8.4, 18, 14]

/** @param {string} s */
const escaped = (s) => s.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c] ?? c)

/** A colour of 256. @param {number} n */
function colour(n) {
  if (n < 16) return palette[n]
  if (n > 231) { const v = 8 + (n - 232) * 10; return `rgb(${v},${v},${v})` }
  const level = (/** @type {number} */ v) => v ? 55 + v * 40 : 0
  return `rgb(${level(Math.floor((n - 16) / 36))},${level(Math.floor((n - 16) / 6) % 6)},${level((n - 16) % 6)})`
}

/** How many cells a character takes. @param {string} c */
const cells = (c) => /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(c) ? 2 : 1

/** A line with its escape sequences as elements. @param {string} line @param {number} y */
function drawn(line, y) {
  let style = { fg: '', bg: '', bold: false, dim: false, italic: false, under: false, swap: false }
  let column = 0
  let out = ''
  for (const part of line.split(/(\x1b\[[0-9;:]*m)/)) {
    const codes = /^\x1b\[([0-9;:]*)m$/.exec(part)?.[1]
    if (codes === undefined) {
      const text = part.replace(/\x1b[^a-zA-Z]*[a-zA-Z]/g, '')
      const width = [...text].reduce((n, c) => n + cells(c), 0)
      let [fg, bg] = [style.fg || foreground, style.bg]
      if (style.swap) [fg, bg] = [bg || background, fg]
      if (bg && width) out += `<rect x="${(column * wide).toFixed(1)}" y="${(y * high).toFixed(1)}" width="${(width * wide).toFixed(1)}" height="${high}" fill="${bg}"/>`
      if (text.trim()) {
        const lead = text.length - text.trimStart().length
        const more = [fg !== foreground && `fill="${fg}"`, style.bold && 'font-weight="bold"', style.dim && 'opacity=".65"', style.italic && 'font-style="italic"', style.under && 'text-decoration="underline"'].filter(Boolean).join(' ')
        const shown = text.trim()
        const length = [...shown].reduce((n, c) => n + cells(c), 0)
        out += `<text x="${((column + lead) * wide).toFixed(1)}" y="${(y * high + 13.5).toFixed(1)}" textLength="${(length * wide).toFixed(1)}"${more && ' ' + more}>${escaped(shown)}</text>`
      }
      column += width
      continue
    }
    const list = codes.split(/[;:]/).map(Number)
    for (let i = 0; i < list.length; i++) {
      const n = list[i]
      if (n === 0) style = { fg: '', bg: '', bold: false, dim: false, italic: false, under: false, swap: false }
      else if (n === 1) style.bold = true
      else if (n === 2) style.dim = true
      else if (n === 3) style.italic = true
      else if (n === 4) style.under = true
      else if (n === 7) style.swap = true
      else if (n === 22) style.bold = style.dim = false
      else if (n === 23) style.italic = false
      else if (n === 24) style.under = false
      else if (n === 27) style.swap = false
      else if (n >= 30 && n <= 37) style.fg = palette[n - 30]
      else if (n >= 90 && n <= 97) style.fg = palette[n - 82]
      else if (n >= 40 && n <= 47) style.bg = palette[n - 40]
      else if (n >= 100 && n <= 107) style.bg = palette[n - 92]
      else if (n === 39) style.fg = ''
      else if (n === 49) style.bg = ''
      else if (n === 38 || n === 48) {
        const c = list[i + 1] === 5 ? colour(list[i + 2]) : `rgb(${list.slice(i + 2, i + 5).join(',')})`
        if (n === 38) style.fg = c
        else style.bg = c
        i += list[i + 1] === 5 ? 2 : 4
      }
    }
  }
  return out
}

/**
 * Screens, each shown for so long. A line that several screens have is written once.
 * The one marked as still is what a reader sees who wants no motion.
 * @param {{screen: string, x: number, y: number, ms: number, still?: boolean}[]} frames
 * @param {number} columns
 * @param {number} rows
 */
export function recording(frames, columns, rows) {
  const whole = frames.reduce((n, f) => n + f.ms, 0)
  const [width, height] = [columns * wide + 2 * margin, rows * high + 2 * margin]
  /** @type {Map<string, string>} */
  const lines = new Map()
  let body = ''
  let css = ''
  let at = 0
  for (const [i, f] of frames.entries()) {
    let group = ''
    for (const [y, line] of f.screen.split('\n').slice(0, rows).entries()) {
      const plain = drawn(line.trimEnd(), 0)
      if (!plain) continue
      if (!lines.has(plain)) lines.set(plain, 'l' + lines.size)
      group += `<use href="#${lines.get(plain)}" y="${y * high}"/>`
    }
    group += `<rect x="${(f.x * wide).toFixed(1)}" y="${f.y * high + 1}" width="${wide}" height="${high - 2}" fill="${foreground}" opacity=".6"/>`
    const [from, to] = [at / whole * 100, (at + f.ms) / whole * 100]
    at += f.ms
    body += `<g class="f" id="f${i}">${group}</g>`
    css += `#f${i}{animation-name:k${i}}@keyframes k${i}{0%{visibility:${i ? 'hidden' : 'visible'}}${i ? from.toFixed(3) + '%{visibility:visible}' : ''}${to < 100 ? to.toFixed(3) + '%,100%{visibility:hidden}' : '100%{visibility:visible}'}}`
  }
  const defs = [...lines].map(([line, id]) => `<g id="${id}">${line}</g>`).join('')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toFixed(0)} ${height}" width="${width.toFixed(0)}" height="${height}" role="img" aria-label="A chat in the terminal: a question, the card with the call that would run, a yes, and the answer">` +
    `<style>svg{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}text{white-space:pre}` +
    `.f{visibility:hidden;animation:${(whole / 1000).toFixed(2)}s step-end infinite}` +
    `${css}@media (prefers-reduced-motion:reduce){.f{animation:none!important}#f${frames.findIndex((f) => f.still)}{visibility:visible}}</style>` +
    `<defs>${defs}</defs><rect width="100%" height="100%" rx="8" fill="${background}"/><g transform="translate(${margin} ${margin})" fill="${foreground}">${body}</g></svg>\n`
}

// @ts-check
// The table as CSV, as nizectl usage --csv writes it (RFC 4180).

const fields = ['key', 'calls', 'prompt', 'completion', 'cached', 'reasoning', 'estimated', 'micro_usd', 'unpriced', 'failed', 'took_ms']

/** @param {any} report */
export function csv(report) {
  const cell = (/** @type {any} */ v) => /[",\r\n]|^\s|\s$/.test(v) ? '"' + v.replaceAll('"', '""') + '"' : v
  // A spreadsheet may interpret such a beginning as a formula.
  const key = (/** @type {string} */ k) => /^ *[=+\-@\t\r]/.test(k) ? "'" + k : k
  const rows = report.rows.map((/** @type {any} */ r) => fields.map((f) => f === 'key' ? cell(key(r.key)) : String(r[f] ?? 0)))
  return [fields, ...rows].map((r) => r.join(',') + '\r\n').join('')
}

/** @param {any} report */
export function download(report) {
  const url = URL.createObjectURL(new Blob([csv(report)], { type: 'text/csv' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `nize-usage-by-${report.by}.csv`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000) // the browser reads it asynchronously
}

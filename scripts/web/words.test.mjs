// Times as the page writes them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setZone, time } from './page/words.js'

test('times are in the zone of the person, whose days they are', () => {
  const at = '2026-03-01T20:30:00Z'
  setZone('Asia/Taipei')
  assert.match(time(at), /^Mar 2, 2026, 04:30$/)
  setZone('America/New_York')
  assert.match(time(at), /^Mar 1, 2026, 15:30$/)
  const now = new Date()
  assert.match(time(now.toISOString()), /^\d\d:\d\d$/)
  for (const none of ['', 'auto', 'Mars/Olympus']) {
    setZone(none)
    assert.equal(time(at), new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' }).format(new Date(at)))
  }
})

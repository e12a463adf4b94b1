// Times as the page writes them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setZone, time } from './page/words.js'

test('times are in the zone of the person, whose days they are', () => {
  const at = '2026-03-01T20:30:00Z'
  setZone('Asia/Taipei')
  assert.match(time(at), /^Mar 2, 2026, 4:30\sAM$/)
  setZone('America/New_York')
  assert.match(time(at), /^Mar 1, 2026, 3:30\sPM$/)
  const now = new Date()
  assert.match(time(now.toISOString()), /^\d+:\d\d\s[AP]M$/)
  for (const none of ['', 'auto', 'Mars/Olympus']) {
    setZone(none)
    assert.equal(time(at), new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(at)))
  }
})

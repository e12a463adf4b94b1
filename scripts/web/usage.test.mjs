// The page of usage: how a period stands to the one before, names and titles, one zone.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Stand } from './stand.mjs'

const stand = new Stand()
before(() => stand.begin())
after(() => stand.close())

test('usage beside the period before, by title, in one zone', async () => {
  const id = (await stand.history('usage'))[0]
  // Far from UTC, where days begin within one of its days.
  for (const timezoneId of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
    const page = await stand.signedIn({ timezoneId })
    await page.getByRole('link', { name: 'Usage', exact: true }).click()
    await page.getByLabel('Range').selectOption('7')
    const tiles = page.locator('.totals > div')
    await tiles.filter({ hasText: 'Cost' }).getByText('$1.50').waitFor()
    await tiles.filter({ hasText: 'Cost' }).getByText('+50% vs. the 7 days before').waitFor()
    assert.match(await page.locator('.bars svg').first().getAttribute('aria-label') ?? '', /in 7 days/)
    for (const by of ['day', 'model', 'agent', 'conversation']) {
      await page.getByLabel('Table by').selectOption(by)
      await page.locator('.usage-part[aria-busy="false"] tbody tr').first().waitFor()
      await page.getByText(`Days are those of ${timezoneId}.`).waitFor()
      const costs = await page.locator('tbody tr td:nth-last-child(2)').allInnerTexts()
      assert.equal(costs.reduce((sum, text) => sum + Number(text.replace(/[^0-9.]/g, '')), 0), 1.5, by)
    }
    await page.getByRole('link', { name: '2 messages' }).and(page.locator(`.usage-table a[href="/app/c/${id}"]`)).waitFor()
    if (timezoneId.endsWith('Pago_Pago')) await stand.look(page, 'usage-trend')
    await page.context().close()
  }
  const said = await stand.both('usage', '--since', '6d', '--by', 'conversation')
  assert.match(said.stdout, new RegExp(`^2 messages \\(${id}\\) +3 `, 'm'))
  assert.match(said.stderr, /against the 7 days before: calls \+50 % \(2\), tokens \+50 % \(2200\), cost \+50 % \(\$1\.0000\)/)
})

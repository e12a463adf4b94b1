// @ts-check
// A standing answer: for whom, for which arguments and for how long an approval or a
// refusal holds. nize provides the questions, as in all chats.
import { useState } from 'preact/hooks'
import { html } from '../html.js'
import { t } from '../words.js'

/**
 * @param {object} props
 * @param {string} props.call
 * @param {{name: string, label: string, choices: {value: string, label: string, note?: string}[]}[]} props.questions each with the narrowest choice first
 * @param {boolean} props.deny
 * @param {boolean} props.off
 * @param {(e: Event, answers: Record<string, string>) => void} props.decide
 * @param {() => void} props.close
 */
export function Standing({ call, questions, deny, off, decide, close }) {
  const [chosen, setChosen] = useState(/** @type {Record<string, string>} */ (Object.fromEntries(questions.map((q) => [q.name, q.choices[0].value]))))
  return html`<div class="panel" role="group" aria-label=${deny ? t('Never') : t('Allow with limits…')}>
    <div class="panel-fields">${questions.map((q) => {
      const id = `standing-${call}-${q.name}`
      return html`<div class="field"><label for=${id}>${q.label}</label>
        <select id=${id} value=${chosen[q.name]} onChange=${(/** @type {any} */ e) => setChosen({ ...chosen, [q.name]: e.currentTarget.value })}>${q.choices.map((c) => html`<option value=${c.value}>${c.note ? t('{choice} ({note})', { choice: c.label, note: c.note }) : c.label}</option>`)}</select></div>`
    })}</div>
    <p class="dim">${deny ? t('This call is declined, and such calls are refused from now on.') : t('This call is run, and such calls run without asking from now on.')}</p>
    <div class="buttons">
      <button type="button" class="run" aria-disabled=${off} onClick=${(/** @type {Event} */ e) => decide(e, chosen)}>${deny ? t('Never') : t('Allow and run')}</button>
      <button type="button" onClick=${close}>${t('Back')}</button>
    </div>
  </div>`
}

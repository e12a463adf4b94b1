// @ts-check
// Files of a message: chosen, dropped or pasted, and as the log shows them.
import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { get, upload } from './api.js'
import { icon } from './icon.js'
import { bytes, t } from './words.js'

/** The most files that nize accepts with one message. */
export const mostFiles = 10
export const largestFile = 20 << 20

/** The text of a message that has only files. */
export const fileWords = '(file)'

/**
 * Returns what is wrong with the chosen files, '' for nothing.
 * @param {File[]} files
 */
export function wrongWith(files) {
  const large = files.find((f) => f.size > largestFile)
  if (large) return t('{name} is too large: at most {size} are taken.', { name: large.name, size: bytes(largestFile) })
  const none = files.find((f) => !f.size)
  if (none) return t('{name} is empty.', { name: none.name })
  return files.length > mostFiles ? t('At most {n} files go with one message.', { n: mostFiles }) : ''
}

/**
 * Accepts files that are dropped anywhere on the page.
 * @param {((files: File[]) => void)|null} take null accepts none
 * @returns {boolean} whether files are being dragged over the page
 */
export function useDrop(take) {
  const [over, setOver] = useState(false)
  useEffect(() => {
    if (!take) return
    /** @param {DragEvent} e */
    const hold = (e) => {
      if (!e.dataTransfer?.types.includes('Files')) return
      e.preventDefault()
      setOver(true)
    }
    /** @param {DragEvent} e */
    const leave = (e) => e.relatedTarget === null && setOver(false)
    /** @param {DragEvent} e */
    const drop = (e) => {
      setOver(false)
      if (!e.dataTransfer?.files.length) return
      e.preventDefault()
      take([...e.dataTransfer.files])
    }
    document.addEventListener('dragover', hold)
    document.addEventListener('dragleave', leave)
    document.addEventListener('drop', drop)
    return () => {
      document.removeEventListener('dragover', hold)
      document.removeEventListener('dragleave', leave)
      document.removeEventListener('drop', drop)
    }
  }, [take])
  return over
}

/** What nize can read of chosen files, asked once per file. @type {WeakMap<File, Promise<{kind: string, note?: string}>>} */
const looked = new WeakMap()

/** Shows before sending that a file can't be read, or that the model doesn't see it. @param {{file: File, pictures: boolean}} props */
function Readable({ file, pictures }) {
  const [found, setFound] = useState({ kind: '', note: '' })
  useEffect(() => {
    let left = false
    if (!file.size || file.size > largestFile) return
    const asked = looked.get(file) ?? upload('chat/files?name=' + encodeURIComponent(file.name), file)
    looked.set(file, asked)
    asked.then((is) => left || setFound({ note: '', ...is }), () => looked.delete(file)) // the error appears when it is sent
    return () => { left = true }
  }, [file])
  const blind = found.kind === 'image' && !pictures ? t('The model can’t see pictures: it is told the name only.') : ''
  return found.note || blind ? html`<span class="problem" role="alert">${found.note || blind}</span>` : ''
}

/** The files that will be sent with the message. @param {{files: File[], pictures: boolean, drop: (file: File) => void}} props */
export function Chosen({ files, pictures, drop }) {
  if (!files.length) return null
  return html`<ul class="files" aria-label=${t('Files that go with the message')}>${files.map((f) => html`<li key=${f.name + f.size + f.lastModified}>${icon('file')} <bdi>${f.name}</bdi> <span class="dim">${bytes(f.size)}</span> <button type="button" class="quiet" aria-label=${t('Leave out {name}', { name: f.name })} onClick=${() => drop(f)}>${icon('x')}</button><${Readable} file=${f} pictures=${pictures} /></li>`)}</ul>`
}

/** The files of a message. @param {{files: any[], thread: string}} props */
export function Files({ files, thread }) {
  return html`<ul class="files">${files.map((f) => html`<li key=${f.id} class=${f.kind}>${f.kind === 'image' && f.turn ? html`<${Picture} file=${f} thread=${thread} />` : ''}<span><bdi>${f.name}</bdi>${f.size ? html` <span class="dim">${bytes(f.size)}</span>` : ''}</span>${f.note ? html`<span class="problem">${f.note}</span>` : ''}</li>`)}</ul>`
}

/** @param {{file: any, thread: string}} props */
function Picture({ file, thread }) {
  const [data, setData] = useState('')
  useEffect(() => {
    let left = false
    const turn = file.turn.slice(file.turn.lastIndexOf('/') + 1)
    get(`chat/threads/${thread}/files/${encodeURIComponent(file.id)}?turn=${turn}`).then((f) => left || setData(`data:${f.type};base64,${f.data}`), () => {})
    return () => { left = true }
  }, [file.id, file.turn])
  return data ? html`<img src=${data} alt=${file.name} />` : null
}

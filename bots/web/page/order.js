// @ts-check
// Answers that arrive in another order than their requests were made in.

/**
 * Returns a function that sends requests one after the other, so that nize gets the
 * person's last change last. It resolves to the answer and whether no request followed it.
 */
export function inOrder() {
  let last = Promise.resolve()
  let n = 0
  return async (/** @type {() => Promise<any>} */ ask) => {
    const mine = ++n
    const asked = last.then(ask)
    last = asked.then(() => {}, () => {})
    return { answer: await asked, newest: mine === n }
  }
}

/**
 * Returns a function that sends a request at once and ignores its answer, or its failure,
 * if another request was made meanwhile: the promise then never settles.
 */
export function newestOnly() {
  let n = 0
  return (/** @type {() => Promise<any>} */ ask) => {
    const mine = ++n
    return new Promise((done, failed) => { ask().then((answer) => mine === n && done(answer), (err) => mine === n && failed(err)) })
  }
}

// @ts-check
// A view can't take the keyboard focus: it would get what a person types elsewhere on the
// page. It gets the focus when the person presses in the view or moves to it by Tab. A
// view that is hidden because it is leaving is stopped at the first attempt: no browser
// keeps the scripts of a hidden or inert frame from focusing.

/** How long a person's press counts as recent, in ms: the same as in browsers. */
const press = 5000

/** How often a view may take the focus before it is stopped. */
const patience = 3

/**
 * @param {HTMLIFrameElement} frame
 * @param {() => void} stop
 * @returns {() => void} ends it
 */
export function keepFocus(frame, stop) {
  /** @type {Element|null} */
  let last = document.activeElement
  let over = false
  let tabbed = -press
  let typed = -press
  let pressed = performance.now() // on the page; earlier presses are unknown
  let taken = 0
  const moved = () => {
    if (document.activeElement !== frame) last = document.activeElement
  }
  const key = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'Tab') tabbed = performance.now()
    else typed = performance.now()
    moved()
  }
  const down = () => { pressed = performance.now() }
  const enter = () => { over = true }
  const leave = () => { over = false }
  // Touch sends no enter event, and presses in a frame are events of the frame only. But
  // the page can see that the person has pressed something in any of its frames.
  const came = () => {
    const now = performance.now()
    return now - tabbed < 500 || over && now - typed > 1000 ||
      Math.min(now - typed, now - pressed, now - tabbed) > press && navigator.userActivation?.isActive
  }
  const back = () => {
    if (document.activeElement !== frame || !frame.hidden && came()) return
    frame.blur()
    if (last instanceof HTMLElement && last.isConnected) last.focus({ preventScroll: true })
    else window.focus()
    if (frame.hidden || ++taken === patience) stop()
  }
  const lost = () => {
    if (frame.hidden) back() // before the next key
    setTimeout(back)
  }
  document.addEventListener('focusin', moved)
  document.addEventListener('keydown', key, true)
  document.addEventListener('pointerdown', down, true)
  frame.addEventListener('pointerenter', enter)
  frame.addEventListener('pointerleave', leave)
  addEventListener('blur', lost)
  return () => {
    document.removeEventListener('focusin', moved)
    document.removeEventListener('keydown', key, true)
    document.removeEventListener('pointerdown', down, true)
    frame.removeEventListener('pointerenter', enter)
    frame.removeEventListener('pointerleave', leave)
    removeEventListener('blur', lost)
  }
}

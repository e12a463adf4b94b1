// @ts-check
// A view does not take the keyboard: what somebody types elsewhere on the page would
// go to it. It has it when they press into the view, or come to it by Tab. One that is
// hidden since it leaves is stopped the first time: no browser keeps a frame's scripts
// from the keyboard, be it hidden or inert.

/** How long a person's press counts as one, in milliseconds: as long as browsers let it. */
const press = 5000

/** How often a view may take the keyboard from a page before it is stopped. */
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
  let pressed = performance.now() // on the page; what was before nobody has heard
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
  // A finger enters nothing, and what is pressed in a frame is heard by the frame alone;
  // but that a person has pressed something, the page knows of all its frames.
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
    if (frame.hidden) back() // before another key comes
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

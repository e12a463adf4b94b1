// @ts-check
// A view does not take the keyboard: what somebody types elsewhere on the page would
// go to it. It has it when they press into the view, or come to it by Tab.

/**
 * @param {HTMLIFrameElement} frame
 * @returns {() => void} ends it
 */
export function keepFocus(frame) {
  /** @type {Element|null} */
  let last = document.activeElement
  let over = false
  let tabbed = 0
  const moved = () => {
    if (document.activeElement !== frame) last = document.activeElement
  }
  const key = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'Tab') tabbed = performance.now()
    moved()
  }
  const enter = () => { over = true }
  const leave = () => { over = false }
  const taken = () => setTimeout(() => {
    if (document.activeElement !== frame || over || performance.now() - tabbed < 500) return
    frame.blur()
    if (last instanceof HTMLElement && last.isConnected) last.focus({ preventScroll: true })
    else window.focus()
  })
  document.addEventListener('focusin', moved)
  document.addEventListener('keydown', key, true)
  frame.addEventListener('pointerenter', enter)
  frame.addEventListener('pointerleave', leave)
  addEventListener('blur', taken)
  return () => {
    document.removeEventListener('focusin', moved)
    document.removeEventListener('keydown', key, true)
    frame.removeEventListener('pointerenter', enter)
    frame.removeEventListener('pointerleave', leave)
    removeEventListener('blur', taken)
  }
}

// @ts-check
// The reader of the page.

/** The user id. */
export const self = { id: '' }

/**
 * Returns what a message would do to the reader's own pending calls: it withdraws those
 * that only they decide, and waits for those that others decide. The store decides this
 * again when the message is read.
 * @param {import('./conversation.js').Conversation} conversation
 */
export function heldBy(conversation) {
  const held = { withdraws: 0, waits: 0 }
  for (const { kind, card } of conversation.messages) {
    if (kind !== 'card' || card.state !== 'pending' || card.approved || card.requester !== self.id) continue
    if (conversation.waiting.includes(card.call) && (card.need ?? 1) <= 1) held.withdraws++
    else held.waits++
  }
  return held
}

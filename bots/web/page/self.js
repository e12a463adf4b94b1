// @ts-check
// Who reads the page.

/** The user id. */
export const self = { id: '' }

/**
 * What a message would do to the reader's own calls that wait: withdraw those that they
 * decide alone, and wait behind those that others decide. The store decides so again
 * when the message is read.
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

// Package retention forgets: what is older than it is to be kept, a conversation, a
// person. It has no bucket of its own, and knows those of all other nouns.
package retention

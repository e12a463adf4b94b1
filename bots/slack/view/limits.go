package view

// Slack's limits, and some of nize's that keep the sum below the one that Slack
// does not document.
const (
	maxBlocks      = 50
	MaxSection     = 3000
	maxHeader      = 150
	maxContext     = 1900
	maxButton      = 75
	MaxValue       = 64 // of a button: a verb, a call's id and the head of its digest
	MaxTitle       = 24 // of a dialog
	maxInput       = 3000
	MaxOptions     = 100
	maxOption      = 75
	maxPlaceholder = 150
	maxHint        = 500
	MaxViewBlocks  = 100
	MaxMetadata    = 3000
	maxNamedValue  = 300 // of a button that names what has no id
	maxAlt         = 2000
	MaxFileAlt     = 1000
	MaxURL         = 3000
	// MaxFallback is how much of the plain form goes with a message; Slack cuts
	// above 40,000, and escapes count.
	MaxFallback = 36_000
	// maxEdited is how much of it an edit takes; Slack refuses what is longer.
	maxEdited = 4_000
	// maxShownArgs is how much of the arguments stands on a card itself. All
	// text of all blocks together must stay below 13,200.
	maxShownArgs = 5_000
	// maxClaim is how much of somebody else's words stands on a card, each.
	maxClaim = 1_000
	// pageSize is how much of long arguments one page of a dialog shows.
	pageSize = 12_000
)

package view

// Slack's limits, and some of nize's own that keep the total below the limit that Slack
// doesn't document.
const (
	maxBlocks      = 50
	MaxSection     = 3000
	maxHeader      = 150
	maxContext     = 1900
	maxButton      = 75
	MaxValue       = 64 // of a button: a verb, a call's id and the beginning of its digest
	MaxTitle       = 24 // of a dialog
	maxInput       = 3000
	MaxOptions     = 100
	maxOption      = 75
	maxPlaceholder = 150
	maxHint        = 500
	MaxViewBlocks  = 100
	MaxMetadata    = 3000
	maxNamedValue  = 300 // of a button for something that has a name instead of an id
	maxAlt         = 2000
	MaxFileAlt     = 1000
	MaxURL         = 3000
	// MaxFallback is the maximum length of a message's plain form; Slack truncates above
	// 40,000, counted with escapes.
	MaxFallback = 36_000
	// maxEdited is the maximum length of the plain form in an edit; Slack refuses longer
	// ones.
	maxEdited = 4_000
	// maxShownArgs is the maximum length of the arguments on a card. The text of all blocks
	// together must stay below 13,200.
	maxShownArgs = 5_000
	// maxClaim is the maximum length of each outside text on a card.
	maxClaim = 1_000
	// pageSize is how much of long arguments one page of a dialog shows.
	pageSize = 12_000
)

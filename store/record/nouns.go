package record

import "nize/store/kv"

// Nouns are all stores of this package over one database. An engine embeds them.
type Nouns struct {
	Agents
	Prices
	Examples
	Hooks
	Projects
	Sweeps
	Settings
	Feedback
	SignIns
	UnmetRequests
	Views
}

// Over returns the stores over db.
func Over(db kv.DB) Nouns {
	return Nouns{Agents{db}, Prices{db}, Examples{db}, Hooks{db}, Projects{db}, Sweeps{db}, Settings{db}, Feedback{db}, SignIns{db}, UnmetRequests{db}, Views{db}}
}

package index

import "time"

// State is the state of the vectors.
type State struct {
	Model    string // model of the active vectors
	Wanted   string // configured model; equals Model when all vectors are computed
	Phase    Phase
	Computed int // vectors computed since the start
	Failures int // consecutive failures of the wanted model since its last success
	LastErr  string
	FailedAt time.Time
	Servers  []ServerState // by name
}

// Phase is the progress of a State.
type Phase string

// Phases.
const (
	Complete  Phase = "complete"  // every tool that can have a vector has one
	Embedding Phase = "embedding" // vectors are being computed; the old ones are used
	Failing   Phase = "failing"   // the wanted model does not respond; it is retried
)

// ServerState is the state of one server's vectors.
type ServerState struct {
	Name     string
	Tools    int
	Embedded int       // tools with a vector of the active model
	Without  int       // tools whose text has no usable vector: found by words only
	Pending  int       // tools that the wanted model has not embedded yet
	Taken    time.Time // time of the last Replace of its tools
	Filled   time.Time // time of the newest vector of its tools
}

// State returns the current state of the vectors.
func (x *Index) State() State {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := &x.vectors
	k.mu.Lock()
	defer k.mu.Unlock()
	snap := x.now.Load()
	done := snap.space == k.want && (k.want.embedder == nil || snap.live == 0 || k.full.Load() == snap)
	st := State{Model: snap.space.model(), Wanted: k.want.model(), Phase: Embedding, Computed: int(k.computed.Load()), Failures: k.fails.n, LastErr: k.fails.last, FailedAt: k.fails.at}
	switch {
	case done:
		st.Phase = Complete
	case k.failed.Load():
		st.Phase = Failing
	}
	for _, sv := range snap.servers {
		one := ServerState{Name: sv.about.name, Tools: len(sv.docs), Taken: x.taken[sv.about.name], Filled: x.taken[sv.about.name]}
		if snap.space.embedder != nil {
			one.Filled = k.filled[sv.about.name]
		}
		for _, n := range sv.docs {
			has := snap.hasVector(n)
			if has {
				one.Embedded++
			}
			switch {
			case done && !has:
				one.Without++
			case !done && (snap.space != k.want || !has):
				one.Pending++
			}
		}
		st.Servers = append(st.Servers, one)
	}
	return st
}

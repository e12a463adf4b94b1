package index

import "time"

// State is what is embedded, and by what.
type State struct {
	Model    string // whose vectors serve
	Wanted   string // whose will; the same when all is done
	Phase    Phase
	Computed int // vectors since the start
	Failures int // of the wanted model in a row, since it answered last
	LastErr  string
	FailedAt time.Time
	Servers  []ServerState // by name
}

// Phase is how far a State is.
type Phase string

// Phases.
const (
	Complete  Phase = "complete"  // each tool has the vector that it can have
	Embedding Phase = "embedding" // vectors are being made; the old ones serve
	Failing   Phase = "failing"   // the wanted model does not answer; it is asked again
)

// ServerState is what is embedded of one server.
type ServerState struct {
	Name     string
	Tools    int
	Embedded int       // by the model that serves
	Without  int       // whose text has no usable vector: words alone find them
	Pending  int       // that the wanted model has not embedded yet
	Taken    time.Time // when its tools were taken in last
	Filled   time.Time // when the newest vector of its tools came
}

// State says what is embedded now.
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
			has := snap.vector(n) != nil
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

package index

import (
	"math"
	"slices"
	"sync"

	"nize/store"
)

// The rule of this file: what was learned from use stays beside the index. It
// moves tools that are in the running already, and shows nowhere else: no word
// of one request can be found, corrected to, or seen in a score by another.
//
// A request votes for the tool of the most similar request before it, and a
// little for that tool's server. Pooling the learned words into a field of the
// tool, as with any other text, was tried first: requests for the tools beside
// it have most of the same words, and those that were never used lost up to
// twenty points of R@1 (eval: "Learning from use"). So only a request that is
// much the same counts for the tool; what is merely alike speaks for the server,
// whose never-used tools gain by it as much as the others.
const (
	// sameRequest is the likeness from which on a request counts as the same in
	// other words.
	sameRequest = 0.6
	// valueDiffers is what one value more or less leaves of the likeness: "show
	// the secrets in V" and "show the secret S in V" differ in nothing else.
	valueDiffers = 0.8
)

// feedback is one request that led to a call, or one that a model wrote.
type feedback struct {
	source
	server string
	words  []string // stems
	values int
}

// source says where feedback comes from: the use of a tool, or a model that was
// shown its definition.
type source struct {
	tool    string
	written bool
}

// memory is what was learned. Searches hold its lock for as long as the vote
// takes, updates for one tool's feedback.
type memory struct {
	mu       sync.RWMutex // guards what follows
	feedback []*feedback  // nil where a number is free
	free     []int
	of       map[source][]int
	says     map[string][]int // by word
}

// FeedbackWords returns what can be learned from a request: the stems of its words
// that some tool's definition has, and the number of values beside them. Values
// (what is quoted, ids, paths, addresses), numbers, names and what looks like a
// key are a person's business and say nothing about the tool.
func (x *Index) FeedbackWords(text string) (words []string, values int) {
	r := parse(store.RedactText(text))
	words = x.now.Load().wantedStems(&r)
	return words[:min(len(words), store.MaxFeedbackWords)], r.values
}

// wantedStems are the stems of a request's words, without values, that some tool has.
func (s *snapshot) wantedStems(r *request) []string {
	var out []string
	note := func(stem string) {
		if t, ok := s.words.stems.find(stem); ok && s.df(t) > 0 && !slices.Contains(out, stem) {
			out = append(out, stem)
		}
	}
	for i := range r.words {
		a := &r.words[i]
		if a.literal || hasDigit(a.word) || isStop(a.word) {
			continue
		}
		note(stem(a.word))
		for _, e := range a.english {
			note(stem(e))
		}
	}
	return out
}

// SetFeedback makes learned what is known of the tool's use, in the place of what
// was known before. The tool need not be indexed.
func (x *Index) SetFeedback(tool string, learned []store.Feedback) {
	list := make([]*feedback, 0, len(learned))
	for _, l := range learned[:min(len(learned), store.MaxFeedback)] {
		list = append(list, &feedback{words: l.Words, values: l.Values})
	}
	x.memory.replace(source{tool: tool}, list)
}

// SetExamples makes requests the example requests of the tool that a model wrote,
// in the place of those before; none forgets them. Words are read as those of
// any request are, by the words that the index has now.
//
// A definition may have told the model what to write. So an example counts half
// as much as a request that led to a call, nothing for the server, and only as
// far as the tool's own words go (votes): with them it can be found anyhow.
func (x *Index) SetExamples(tool string, requests []string) {
	list := make([]*feedback, 0, len(requests))
	for _, r := range requests[:min(len(requests), store.MaxExamples)] {
		if words, values := x.FeedbackWords(r[:min(len(r), store.MaxExampleBytes)]); len(words) > 0 {
			list = append(list, &feedback{words: words, values: values})
		}
	}
	x.memory.replace(source{tool, true}, list)
}

// replace makes list the feedback from src.
func (m *memory) replace(src source, list []*feedback) {
	server, _, ok := store.SplitToolID(src.tool)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of, m.says = map[source][]int{}, map[string][]int{}
	}
	m.dropLocked(src)
	for _, l := range list {
		l.source, l.server = src, server
		m.addLocked(l)
	}
}

// dropLocked takes away the feedback from src; the caller holds m.mu.
func (m *memory) dropLocked(src source) {
	for _, n := range m.of[src] {
		for _, w := range m.feedback[n].words {
			m.says[w] = slices.DeleteFunc(m.says[w], func(o int) bool { return o == n })
			if len(m.says[w]) == 0 {
				delete(m.says, w)
			}
		}
		m.feedback[n] = nil
		m.free = append(m.free, n)
	}
	delete(m.of, src)
}

// addLocked adds the feedback of one request; the caller holds m.mu.
func (m *memory) addLocked(l *feedback) {
	n := len(m.feedback)
	if last := len(m.free) - 1; last >= 0 {
		n, m.free = m.free[last], m.free[:last]
		m.feedback[n] = l
	} else {
		m.feedback = append(m.feedback, l)
	}
	m.of[l.source] = append(m.of[l.source], n)
	for i, w := range l.words {
		if !slices.Contains(l.words[:i], w) {
			m.says[w] = append(m.says[w], n)
		}
	}
}

// ClearFeedback takes away everything that was learned from use.
func (x *Index) ClearFeedback() {
	m := &x.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for src := range m.of {
		if !src.written {
			m.dropLocked(src)
		}
	}
}

// votes fills in, for the tools in the running, how much their most similar feedback
// and that of their server are the request in other words.
func (s *search) votes(m *memory, learned bool) {
	if s.w.use <= 0 {
		return
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.of) == 0 {
		return
	}
	asked := s.snap.wantedStems(&s.req)
	total := 0.0
	shared := make(map[int]float64)
	for _, w := range asked {
		x := s.weightOf(w)
		total += x
		for _, n := range m.says[w] {
			shared[n] += x
		}
	}
	running := make(map[uint32]*candidate, len(s.sc.cands))
	for i := range s.sc.cands {
		running[s.sc.cands[i].num] = &s.sc.cands[i]
	}
	servers := make(map[string]float64)
	tools := make(map[string]float64)
	used := make(map[uint32]float64)
	for n, both := range shared {
		l := m.feedback[n]
		if !learned && !l.written {
			continue
		}
		worth := 1.0
		if l.written {
			worth = useOfExample
		}
		if best := both / total; (l.written || best <= servers[l.server]) && (best <= sameRequest || worth*same(best) <= tools[l.tool]) {
			continue // however little else the feedback says
		}
		either := total - both
		for _, w := range l.words {
			either += s.weightOf(w)
		}
		like := both / either
		if !l.written {
			servers[l.server] = max(servers[l.server], like)
		}
		like *= math.Pow(valueDiffers, math.Abs(float64(l.values-s.req.values)))
		num, ok := s.snap.find(l.tool)
		c := running[num]
		if !ok || c == nil || like <= sameRequest || worth*same(like) <= tools[l.tool] || s.wantedMore(l, c.doc, asked) || l.written && !s.ownWords(l, c.doc) {
			continue
		}
		tools[l.tool] = worth * same(like)
		used[num] = tools[l.tool]
	}
	for i := range s.sc.cands {
		c := &s.sc.cands[i]
		c.parts[byUse] = used[c.num] + useOfServer*servers[c.doc.about.name]
	}
}

// same is how much a request counts that is so like another one.
func same(like float64) float64 { return (like - sameRequest) / (1 - sameRequest) }

// ownWords says whether at least half of an example is what its tool says of
// itself.
func (s *search) ownWords(l *feedback, d *doc) bool {
	own, all := 0.0, 0.0
	for _, w := range l.words {
		x := s.weightOf(w)
		all += x
		if t, ok := s.snap.words.stems.find(w); ok && d.has(t) {
			own += x
		}
	}
	return own >= all/2
}

// What the likest request for a server, and an example that a model wrote,
// count against the same request for a tool.
const (
	useOfServer  = 0.4
	useOfExample = 0.5
)

// weightOf is how rare a stem is among the tools, 0 where none has it any more.
func (s *search) weightOf(stem string) float64 {
	t, ok := s.snap.words.stems.find(stem)
	if !ok || s.snap.df(t) == 0 {
		return 0
	}
	return s.idf(s.snap.df(t))
}

// wantedMore says whether the feedback has a word of the tool's name that the
// request lacks: who said "items in the container" then and says "containers"
// now wants another tool, however alike the rest.
func (s *search) wantedMore(l *feedback, d *doc, asked []string) bool {
	for _, w := range l.words {
		if slices.Contains(asked, w) {
			continue
		}
		if t, ok := s.snap.words.stems.find(w); ok && s.sc.factor[t] == 0 && d.inName(t) {
			return true
		}
	}
	return false
}

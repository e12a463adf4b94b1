package index

import (
	"math"
	"slices"
	"sync"

	"nize/store"
)

// The rule of this file: what was learned from use stays beside the index. It
// moves tools that are in the running already, and shows nowhere else: no word
// of one request can be found, mended to, or seen in a score by another.
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

// lesson is one request that led to a call.
type lesson struct {
	tool, server string
	words        []string // stems
	values       int
}

// memory is what was learned. Searches hold its lock for as long as the vote
// takes, updates for one tool's lessons.
type memory struct {
	mu      sync.RWMutex // guards what follows
	lessons []*lesson    // nil where a number is free
	free    []int
	of      map[string][]int // by tool
	says    map[string][]int // by word
}

// Learnable returns what can be learned from a request: the stems of its wishes
// that some tool's definition has, and the number of values beside them. Values
// (what is quoted, ids, paths, addresses), numbers, names and what looks like a
// key are a person's business and say nothing about the tool.
func (x *Index) Learnable(text string) (words []string, values int) {
	r := parse(store.RedactText(text))
	words = x.now.Load().wishes(&r)
	return words[:min(len(words), store.MaxLessonWords)], r.values
}

// wishes are the stems of a request's words, without values, that some tool has.
func (s *snapshot) wishes(r *request) []string {
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

// Learn makes lessons what was learned for the tool, in the place of what was
// known before. The tool need not be indexed.
func (x *Index) Learn(tool string, lessons []store.Lesson) {
	server, _, ok := store.SplitToolID(tool)
	if !ok {
		return
	}
	m := &x.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of, m.says = map[string][]int{}, map[string][]int{}
	}
	for _, n := range m.of[tool] {
		for _, w := range m.lessons[n].words {
			m.says[w] = slices.DeleteFunc(m.says[w], func(o int) bool { return o == n })
			if len(m.says[w]) == 0 {
				delete(m.says, w)
			}
		}
		m.lessons[n] = nil
		m.free = append(m.free, n)
	}
	delete(m.of, tool)
	for _, l := range lessons[:min(len(lessons), store.MaxLessons)] {
		m.addLocked(&lesson{tool, server, l.Words, l.Values})
	}
}

// addLocked adds one lesson; the caller holds m.mu.
func (m *memory) addLocked(l *lesson) {
	n := len(m.lessons)
	if last := len(m.free) - 1; last >= 0 {
		n, m.free = m.free[last], m.free[:last]
		m.lessons[n] = l
	} else {
		m.lessons = append(m.lessons, l)
	}
	m.of[l.tool] = append(m.of[l.tool], n)
	for i, w := range l.words {
		if !slices.Contains(l.words[:i], w) {
			m.says[w] = append(m.says[w], n)
		}
	}
}

// Forget takes away everything that was learned.
func (x *Index) Forget() {
	m := &x.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lessons, m.free, m.of, m.says = nil, nil, nil, nil
}

// votes fills in, for the tools in the running, how much their likest lesson
// and that of their server are the request in other words.
func (s *search) votes(m *memory) {
	if s.w.use <= 0 {
		return
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.of) == 0 {
		return
	}
	asked := s.snap.wishes(&s.req)
	total := 0.0
	shared := make(map[int]float64)
	for _, w := range asked {
		x := s.weightOf(w)
		total += x
		for _, n := range m.says[w] {
			shared[n] += x
		}
	}
	running := make(map[string]*candidate, len(s.sc.cands))
	for i := range s.sc.cands {
		running[s.sc.cands[i].doc.id] = &s.sc.cands[i]
	}
	servers := make(map[string]float64)
	tools := make(map[string]float64)
	for n, both := range shared {
		l := m.lessons[n]
		if best := both / total; best <= servers[l.server] && (best <= sameRequest || best <= tools[l.tool]) {
			continue // however little else the lesson says
		}
		either := total - both
		for _, w := range l.words {
			either += s.weightOf(w)
		}
		like := both / either
		servers[l.server] = max(servers[l.server], like)
		like *= math.Pow(valueDiffers, math.Abs(float64(l.values-s.req.values)))
		if c := running[l.tool]; c != nil && like > sameRequest && like > tools[l.tool] && !s.wantedMore(l, c.doc, asked) {
			tools[l.tool] = like
		}
	}
	for i := range s.sc.cands {
		c := &s.sc.cands[i]
		c.parts[byUse] = useOfServer * servers[c.doc.about.name]
		if like := tools[c.doc.id]; like > 0 {
			c.parts[byUse] += (like - sameRequest) / (1 - sameRequest)
		}
	}
}

// useOfServer is what the likest request for a server counts against the same
// request for a tool.
const useOfServer = 0.4

// weightOf is how rare a stem is among the tools, 0 where none has it any more.
func (s *search) weightOf(stem string) float64 {
	t, ok := s.snap.words.stems.find(stem)
	if !ok || s.snap.df(t) == 0 {
		return 0
	}
	return s.idf(s.snap.df(t))
}

// wantedMore says whether the lesson has a word of the tool's name that the
// request lacks: who said "items in the container" then and says "containers"
// now wants another tool, however alike the rest.
func (s *search) wantedMore(l *lesson, d *doc, asked []string) bool {
	for _, w := range l.words {
		if slices.Contains(asked, w) {
			continue
		}
		if t, ok := s.snap.words.stems.find(w); ok && s.sc.factor[t] == 0 && slices.Contains(d.name, t) {
			return true
		}
	}
	return false
}

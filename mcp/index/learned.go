package index

import (
	"math"
	"slices"
	"sync"

	"nize/store"
)

// The rule of this file: learned requests are stored beside the index. They re-rank tools
// that are already candidates, and have no other effect: no word of a request can be found
// by, used to correct, or seen in a score of another request.
//
// A request votes for the tool of the most similar earlier request, and a little for that
// tool's server. Adding the learned words to a field of the tool, like any other text, was
// tried first: requests for neighbouring tools share most words, and tools that were never
// used lost up to twenty points of R@1 (eval: "Learning from use"). So only a nearly
// identical request counts for the tool; a merely similar one counts for the server, whose
// unused tools gain as much from it as the others.
const (
	// sameRequest is the similarity from which on a request counts as the same in other
	// words.
	sameRequest = 0.6
	// valueDiffers is the factor on the similarity for each value more or less: "show the
	// secrets in V" and "show the secret S in V" differ in nothing else.
	valueDiffers = 0.8
)

// feedback is one request that led to a call, or one that a model wrote.
type feedback struct {
	source
	server string
	words  []string // stems
	values int
}

// source identifies where feedback comes from: the use of a tool, or a model that read its
// definition.
type source struct {
	tool    string
	written bool
}

// memory holds the feedback. A search holds its lock during the vote, an update while it
// changes one tool's feedback.
type memory struct {
	mu       sync.RWMutex // guards the fields below
	feedback []*feedback  // nil for a free number
	free     []int
	of       map[source][]int
	says     map[string][]int // by word
}

// FeedbackWords returns the parts of a request that can be learned: the stems of its words
// that some tool's definition contains, and the number of values. Values (quoted text, ids,
// paths, addresses), numbers, names and possible keys are private to the user and say
// nothing about the tool.
func (x *Index) FeedbackWords(text string) (words []string, values int) {
	r := parse(store.RedactText(text))
	words = x.now.Load().wantedStems(&r)
	return words[:min(len(words), store.MaxFeedbackWords)], r.values
}

// wantedStems returns the stems of a request's words, without values, that some tool has.
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

// SetFeedback replaces the feedback from the use of a tool. The tool need not be indexed.
func (x *Index) SetFeedback(tool string, learned []store.Feedback) {
	list := make([]*feedback, 0, len(learned))
	for _, l := range learned[:min(len(learned), store.MaxFeedback)] {
		list = append(list, &feedback{words: l.Words, values: l.Values})
	}
	x.memory.replace(source{tool: tool}, list)
}

// SetExamples replaces the example requests that a model wrote for the tool; an empty list
// removes them. Their words are read like those of any request, with the index's current
// vocabulary.
//
// A definition may have told the model what to write. So an example counts half as much as
// a request that led to a call, doesn't count for the server, and counts only if enough of
// its words are the tool's own (ownWords): those would find the tool anyway.
func (x *Index) SetExamples(tool string, requests []string) {
	list := make([]*feedback, 0, len(requests))
	for _, r := range requests[:min(len(requests), store.MaxExamples)] {
		if words, values := x.FeedbackWords(r[:min(len(r), store.MaxExampleBytes)]); len(words) > 0 {
			list = append(list, &feedback{words: words, values: values})
		}
	}
	x.memory.replace(source{tool, true}, list)
}

// replace replaces the feedback from src with list.
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

// dropLocked removes the feedback from src. m.mu must be held.
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

// addLocked adds the feedback of one request. m.mu must be held.
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

// ClearFeedback removes all feedback from use.
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

// votes sets, for each candidate, how much the most similar feedback of the tool and of its
// server is the same request in other words.
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
			continue // however short the rest of the feedback is
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

// same returns the vote of a request with this similarity.
func same(like float64) float64 { return (like - sameRequest) / (1 - sameRequest) }

// ownWords reports whether at least half of an example consists of its tool's own words.
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

// The votes of the most similar request for a server, and of an example that a model wrote,
// relative to the same request for a tool.
const (
	useOfServer  = 0.4
	useOfExample = 0.5
)

// weightOf returns the rarity of a stem among the tools, or 0 if no tool has it any more.
func (s *search) weightOf(stem string) float64 {
	t, ok := s.snap.words.stems.find(stem)
	if !ok || s.snap.df(t) == 0 {
		return 0
	}
	return s.idf(s.snap.df(t))
}

// wantedMore reports whether the feedback contains a word of the tool's name that the
// request lacks: a user who wrote "items in the container" then and writes "containers" now
// wants another tool, however similar the rest is.
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

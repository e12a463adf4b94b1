package index

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"

	"nize/store"
)

// posting is one tool in the list of a term: its number in the upper 24 bits, the term's
// weight in the tool in the lower 8.
type posting uint32

const (
	maxDocs     = 1 << 24
	impactSteps = 255
)

func (p posting) doc() uint32    { return uint32(p) >> 8 }
func (p posting) impact() uint32 { return uint32(p) & impactSteps }

// list holds the postings of one term. Removed tools stay in it until the next compaction;
// live excludes them.
type list struct {
	posts []posting
	live  int32
}

// doc is one tool as it was read. It is immutable.
type doc struct {
	name, title, description string // the original strings
	about                    *about
	sum                      uint64    // checksum of the definition, to detect changes
	words                    []posting // terms followed by nameTerms, because a separate slice costs as much as its words
	named                    uint8     // how many of them are nameTerms
	action                   action
	number                   number
	subject                  uint16 // of its embedded vector
}

// terms returns every term (instead of the doc number) with its weight, sorted.
func (d *doc) terms() []posting { return d.words[:len(d.words)-int(d.named)] }

// nameTerms returns the distinct terms of its name, in order.
func (d *doc) nameTerms() []posting { return d.words[len(d.words)-int(d.named):] }

// inName reports whether its name contains the term.
func (d *doc) inName(t term) bool { return slices.Contains(d.nameTerms(), posting(t)) }

// tool returns the fields of the tool that a search returns.
func (d *doc) tool() store.Tool {
	return store.Tool{Server: d.about.name, Name: d.name, Title: d.title, Description: d.description}
}

// compareDocs orders docs by server and name.
func compareDocs(a, b *doc) int {
	return cmp.Or(strings.Compare(a.about.name, b.about.name), strings.Compare(a.name, b.name))
}

// about holds the texts that a server provides about itself. It is immutable.
type about struct {
	name, domain, description string
	terms                     []term // of all three texts, sorted
}

// server is one server's part of a snapshot.
type server struct {
	about *about
	docs  []uint32 // by name
}

// snapshot is the state of the index at one moment.
type snapshot struct {
	words   words
	lists   []*list  // by term
	docs    []*doc   // by number; removed ones stay until the next compaction
	gone    []uint64 // a bit for each removed doc
	live    int
	servers []*server // by name

	embedded embedded
	space    *space      // of the active vectors
	model    *collection // vectors of a configured embedder; nil if there are none
	has      []uint64    // a bit for each doc with a vector in model
}

func (s *snapshot) alive(d uint32) bool { return s.gone[d/64]>>(d%64)&1 == 0 }

// server returns the server with that name, or nil.
func (s *snapshot) server(name string) *server {
	if i, ok := s.findServer(name); ok {
		return s.servers[i]
	}
	return nil
}

func (s *snapshot) findServer(name string) (int, bool) {
	return slices.BinarySearchFunc(s.servers, name, func(sv *server, n string) int { return strings.Compare(sv.about.name, n) })
}

// find returns the number of a tool.
func (s *snapshot) find(id string) (uint32, bool) {
	name, tool, _ := store.SplitToolID(id)
	sv := s.server(name)
	if sv == nil {
		return 0, false
	}
	return s.tool(sv, tool)
}

// tool returns the number of a server's tool.
func (s *snapshot) tool(sv *server, name string) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(sv.docs, name, func(n uint32, name string) int { return strings.Compare(s.docs[n].name, name) })
	if !ok {
		return 0, false
	}
	return sv.docs[i], true
}

// hasVector reports whether the doc with that number has a vector of the active model.
func (s *snapshot) hasVector(n uint32) bool {
	if s.space.embedder == nil {
		return s.docs[n].subject != noSubject
	}
	return s.has[n/64]>>(n%64)&1 == 1
}

// df returns the number of tools that have the term.
func (s *snapshot) df(t term) int {
	if int(t) < len(s.lists) && s.lists[t] != nil {
		return int(s.lists[t].live)
	}
	return 0
}

// update is the next snapshot under construction. It may write to memory that it has
// cloned, and append to memory that it shares with older snapshots.
type update struct {
	snapshot
	old   *snapshot
	vocab *vocabulary
	read  *reader
}

// beginLocked starts an update. x.mu must be held.
func (x *Index) beginLocked() *update {
	old := x.now.Load()
	u := &update{snapshot: *old, old: old, vocab: x.vocab, read: &x.read}
	u.lists = slices.Clone(old.lists)
	u.gone, u.has = slices.Clone(old.gone), slices.Clone(old.has)
	u.servers = slices.Clone(old.servers)
	u.read.vocab = x.vocab
	return u
}

// publishLocked makes the update visible to searches. x.mu must be held.
func (x *Index) publishLocked(u *update) {
	if dead := len(u.docs) - u.live; dead > 64 && dead > u.live/2 {
		u.compact()
	}
	u.divide()
	x.vocab = u.vocab
	u.words = u.vocab.view()
	next := u.snapshot
	x.now.Store(&next)
}

// replace replaces the server's tools.
func (u *update) replace(sv store.Server, tools []store.Tool) {
	i, known := u.findServer(sv.Name)
	next := &server{docs: make([]uint32, 0, len(tools))}
	old := make(map[string]uint32)
	if known {
		prev := u.servers[i]
		next.about = prev.about
		for _, d := range prev.docs {
			old[u.docs[d].name] = d
		}
	}
	if a := next.about; a == nil || a.domain != sv.Domain || a.description != sv.Description {
		next.about = u.read.about(sv)
	}
	seen := make(map[string]struct{}, len(tools))
	for _, t := range tools {
		if _, again := seen[t.Name]; again {
			continue
		}
		seen[t.Name] = struct{}{}
		t.Server = sv.Name
		sum := checksum(&t)
		d, had := old[t.Name]
		switch {
		case had && u.docs[d].sum == sum && u.docs[d].about == next.about:
			next.docs = append(next.docs, d)
		case had && u.docs[d].sum == sum: // the server's own texts changed, but not the tool's words
			doc := *u.docs[d]
			doc.about = next.about
			u.drop(d)
			n := u.add(&doc, u.embedded.vector(&doc, d))
			u.setVector(n, u.model.vector(d))
			next.docs = append(next.docs, n)
		default:
			if had {
				u.drop(d)
			}
			if u.live >= maxDocs-1 {
				continue
			}
			doc, vector := u.read.tool(t, next.about, sum)
			next.docs = append(next.docs, u.add(doc, vector))
		}
		delete(old, t.Name)
	}
	for _, d := range old {
		u.drop(d)
	}
	slices.SortFunc(next.docs, func(a, b uint32) int { return strings.Compare(u.docs[a].name, u.docs[b].name) })
	if known {
		u.servers[i] = next
	} else {
		u.servers = slices.Insert(u.servers, i, next)
	}
}

// remove removes a server.
func (u *update) remove(name string) {
	i, ok := u.findServer(name)
	if !ok {
		return
	}
	for _, d := range u.servers[i].docs {
		u.drop(d)
	}
	u.servers = slices.Delete(u.servers, i, i+1)
}

// add adds the doc with its embedded vector and returns its number.
func (u *update) add(d *doc, v []float32) uint32 {
	n := uint32(len(u.docs))
	u.docs = append(u.docs, d)
	if int(n/64) == len(u.gone) {
		u.gone, u.has = append(u.gone, 0), append(u.has, 0)
	}
	u.embedded.add(d, n, v)
	for _, p := range d.terms() {
		l := u.own(p.doc())
		if n := len(l.posts); n == cap(l.posts) { // append would leave a quarter of all lists unused
			l.posts = append(make([]posting, 0, n+n/32+1), l.posts...)
		}
		l.posts = append(l.posts, posting(n<<8|p.impact()))
		l.live++
	}
	u.live++
	return n
}

// setVector adds the vector of a configured embedder, if it is not nil.
func (s *snapshot) setVector(n uint32, v []float32) {
	if v == nil {
		return
	}
	var ok bool
	if s.model, ok = s.model.with(n, v); ok {
		s.has[n/64] |= 1 << (n % 64)
	}
}

// drop marks the doc with that number as removed.
func (u *update) drop(n uint32) {
	u.gone[n/64] |= 1 << (n % 64)
	for _, p := range u.docs[n].terms() {
		u.own(p.doc()).live--
	}
	u.live--
}

// own returns the list of a term for writing.
func (u *update) own(t term) *list {
	for int(t) >= len(u.lists) {
		u.lists = append(u.lists, nil)
	}
	switch {
	case u.lists[t] == nil:
		u.lists[t] = new(list)
	case int(t) < len(u.old.lists) && u.lists[t] == u.old.lists[t]:
		l := *u.lists[t]
		u.lists[t] = &l
	}
	return u.lists[t]
}

// compact rewrites the index without removed tools: the vocabulary, the numbers of the
// docs, the lists. It reads no tool again.
func (u *update) compact() {
	from := u.snapshot
	old := u.vocab
	u.vocab = new(vocabulary)
	renamed := make([]term, len(old.stems.texts))
	for n, w := range old.surfaces.texts {
		if t := old.termOf[n]; from.df(t) > 0 {
			renamed[t] = u.vocab.term(w)
		}
	}
	rename := func(ts []term) []term {
		out := make([]term, 0, len(ts))
		for _, t := range ts {
			// A server's own texts may contain words that no tool has.
			if from.df(t) == 0 {
				renamed[t] = u.vocab.stems.add(old.stems.texts[t])
			}
			out = append(out, renamed[t])
		}
		return out
	}
	u.snapshot = snapshot{space: from.space, embedded: newEmbedded(from.live > undivided)}
	u.old = new(snapshot) // no memory is shared with it
	for _, s := range from.servers {
		a := *s.about
		a.terms = rename(a.terms)
		slices.Sort(a.terms)
		next := &server{about: &a}
		for _, n := range s.docs {
			d := *from.docs[n]
			d.about = &a
			d.words = slices.Clone(d.words)
			for i, p := range d.terms() {
				d.words[i] = posting(renamed[p.doc()]<<8 | p.impact())
			}
			slices.Sort(d.terms())
			for i, p := range d.nameTerms() {
				d.nameTerms()[i] = posting(renamed[p])
			}
			m := u.add(&d, from.embedded.vector(&d, n))
			u.setVector(m, from.model.vector(n))
			next.docs = append(next.docs, m)
		}
		u.servers = append(u.servers, next)
	}
}

// checksum returns a hash of the definition, to detect changes.
func checksum(t *store.Tool) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	part := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.WriteString(s)
	}
	hint := func(b *bool) {
		switch {
		case b == nil:
			h.WriteByte(0)
		case *b:
			h.WriteByte(1)
		default:
			h.WriteByte(2)
		}
	}
	for _, s := range []string{t.Server, t.Name, t.Title, t.Description, string(t.State), t.Pin, t.Accepted, t.Annotations.Title} {
		part(s)
	}
	for _, f := range t.Findings {
		part(f)
	}
	part("")
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(t.InputSchema)))
	h.Write(n[:])
	h.Write(t.InputSchema)
	hint(t.Annotations.ReadOnly)
	hint(t.Annotations.Destructive)
	hint(t.Annotations.Idempotent)
	hint(t.Annotations.OpenWorld)
	return h.Sum64()
}

package index

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// seed is shared by the process: the hash affects no visible order.
var seed = maphash.MakeSeed()

// table numbers strings from 0. It has one writer; readers need no lock: they use a
// [tableView], which sees the strings that existed when it was taken. Strings are never
// removed: compaction starts a new table.
type table struct {
	slots []atomic.Uint32 // number+1 of the string, 0 if empty; its length is a power of two
	texts []string
}

// tableView is the state of a table at one moment. Slots that were filled later contain
// numbers beyond texts; at that moment they were empty, so they end a probe like an empty
// slot.
type tableView struct {
	slots []atomic.Uint32
	texts []string
}

func (t *table) view() tableView { return tableView(*t) }

// find returns the number of s.
func (v tableView) find(s string) (uint32, bool) {
	if len(v.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(v.slots) - 1)
	for h := maphash.String(seed, s) & mask; ; h = (h + 1) & mask {
		n := v.slots[h].Load()
		if n == 0 || int(n) > len(v.texts) {
			return 0, false
		}
		if v.texts[n-1] == s {
			return n - 1, true
		}
	}
}

// add returns the number of s, and adds s if it is new.
func (t *table) add(s string) uint32 {
	if n, ok := t.view().find(s); ok {
		return n
	}
	if 2*(len(t.texts)+1) > len(t.slots) {
		t.grow()
	}
	t.texts = append(t.texts, s)
	t.place(uint32(len(t.texts)))
	return uint32(len(t.texts) - 1)
}

// grow moves to a new slot array; views continue to read the old one.
func (t *table) grow() {
	t.slots = make([]atomic.Uint32, max(1024, 2*len(t.slots)))
	for n := range t.texts {
		t.place(uint32(n + 1))
	}
}

// place puts number n into the first free slot of its string.
func (t *table) place(n uint32) {
	mask := uint64(len(t.slots) - 1)
	h := maphash.String(seed, t.texts[n-1]) & mask
	for t.slots[h].Load() != 0 {
		h = (h + 1) & mask
	}
	t.slots[h].Store(n)
}

// term is the number of a stem.
type term = uint32

// vocabulary holds the words of all tools as written (surfaces) and their stems (terms).
// Keeping the surfaces makes reading a tool cheap, because each word is stemmed once, and
// lets typos be compared with words instead of stems.
type vocabulary struct {
	surfaces table
	stems    table
	termOf   []term                          // by surface
	shelf    [shelves][maxShelfWord][]uint32 // surfaces by first letter and length, for spelling correction
}

const (
	shelves      = 26
	maxShelfWord = 24
)

// term returns the number of the stem of w, and adds it if it is new.
func (v *vocabulary) term(w string) term {
	if n, ok := v.surfaces.view().find(w); ok {
		return v.termOf[n]
	}
	w = strings.Clone(w) // don't keep the whole source text in memory
	n, t := v.surfaces.add(w), v.stems.add(stem(w))
	v.termOf = append(v.termOf, t)
	if len(w) < maxShelfWord && lower(w[0]) {
		s := &v.shelf[w[0]-'a'][len(w)]
		*s = append(*s, n)
	}
	return t
}

// words is the vocabulary of one snapshot.
type words struct {
	surfaces tableView
	stems    tableView
	termOf   []term
	shelf    [shelves][maxShelfWord][]uint32
}

func (v *vocabulary) view() words {
	return words{v.surfaces.view(), v.stems.view(), v.termOf, v.shelf}
}

// find returns the term of w, if any tool has a word with that stem.
func (v *words) find(w string) (term, bool) {
	if n, ok := v.surfaces.find(w); ok {
		return v.termOf[n], true
	}
	return v.stems.find(stem(w))
}

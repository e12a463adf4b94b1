package index

import "strings"

const (
	minMended   = 5 // letters; shorter words have too many neighbours
	minTwoEdits = 9
)

// correctSpelling adds probable corrections of the word to c: the known words one edit away
// (two for long words) that start with the same letter, or two known words that were
// written as one. Among the nearest, the most common wins.
func (s *snapshot) correctSpelling(a *asked, c *concept, w *weights) {
	if len(a.word) < minMended || len(a.word) >= maxShelfWord || !letters(a.word) {
		return
	}
	limit := 1
	if len(a.word) >= minTwoEdits {
		limit = 2
	}
	best, bestEdits, bestDF := term(0), limit+1, 0
	for n := len(a.word) - limit; n <= len(a.word)+limit && n < maxShelfWord; n++ {
		for _, id := range s.words.shelf[a.word[0]-'a'][n] {
			t := s.words.termOf[id]
			df := s.df(t)
			if df == 0 {
				continue
			}
			e := edits(a.word, s.words.surfaces.texts[id], min(limit, bestEdits))
			if e < bestEdits || e == bestEdits && e <= limit && (df > bestDF || df == bestDF && s.words.stems.texts[t] < s.words.stems.texts[best]) {
				best, bestEdits, bestDF = t, e, df
			}
		}
	}
	if bestEdits <= limit {
		c.add(s, best, w.mended, Words)
		return
	}
	for i := 3; i <= len(a.word)-3; i++ {
		left, ok := s.words.find(a.word[:i])
		if !ok || s.df(left) == 0 {
			continue
		}
		if right, ok := s.words.find(a.word[i:]); ok && s.df(right) > 0 {
			c.add(s, left, w.mended, Words)
			c.add(s, right, w.mended, Words)
			return
		}
	}
}

func letters(w string) bool {
	return strings.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// edits returns the number of letters to insert, delete, replace or swap with the neighbour
// to get from a to b, or limit+1 if it exceeds limit.
func edits(a, b string, limit int) int {
	if limit == 1 {
		return oneEdit(a, b)
	}
	var rows [3][maxShelfWord + 1]int
	before, last, cur := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		lowest := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			n := min(last[j]+1, cur[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, before[j-2]+1)
			}
			cur[j] = n
			lowest = min(lowest, n)
		}
		if lowest > limit {
			return limit + 1
		}
		before, last, cur = last, cur, before
	}
	return min(last[len(b)], limit+1)
}

// oneEdit is edits with a limit of 1, without a table.
func oneEdit(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return 0
	}
	ra, rb := a[i:], b[i:]
	switch {
	case len(ra) == len(rb):
		if ra[1:] == rb[1:] || len(ra) > 1 && ra[0] == rb[1] && ra[1] == rb[0] && ra[2:] == rb[2:] {
			return 1
		}
	case len(ra) == len(rb)+1:
		if ra[1:] == rb {
			return 1
		}
	case len(ra)+1 == len(rb):
		if ra == rb[1:] {
			return 1
		}
	}
	return 2
}

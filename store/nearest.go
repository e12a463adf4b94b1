package store

import (
	"strings"
)

// Nearest returns the name most similar to the given one, or "" if none is similar enough
// to be a typo: at most a third of its letters differ, or one contains the other.
func Nearest(name string, names []string) string {
	best, bestCost := "", len(name)/3+1
	for _, n := range names {
		cost := distance(strings.ToLower(name), strings.ToLower(n))
		if len(name) >= 3 && cost > 1 && strings.Contains(strings.ToLower(n), strings.ToLower(name)) {
			cost = 1
		}
		if cost <= bestCost && (best == "" || cost < bestCost) {
			best, bestCost = n, cost
		}
	}
	return best
}

// Unknown returns the error for a name that doesn't exist. It wraps ErrNotFound and
// suggests the nearest existing name.
func Unknown(what, name string, names []string) error {
	if near := Nearest(name, names); near != "" {
		return Errorf("%s %q %w; did you mean %s?", Text{what}, name, ErrNotFound, near)
	}
	return Errorf("%s %q %w", Text{what}, name, ErrNotFound)
}

// distance returns the optimal string alignment distance: edits and transpositions of
// adjacent letters.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		cur[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(y)]
}

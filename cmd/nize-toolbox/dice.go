package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of one throw.
const (
	maxDice  = 1000
	maxSides = 1_000_000
	maxTerms = 20
)

// dieTerm is one term without its sign: 2d6, d20, 4d6kh3, d%, or 3.
var dieTerm = regexp.MustCompile(`^(?:(\d{0,5})d(\d{1,8}|%)(?:k([hl])(\d{1,4}))?|(\d{1,9}))$`)

type term struct {
	text  string
	sign  int
	dice  int // 0 for a plain number
	sides int // or the number
	keep  int // how many count, 0 for all
	low   bool
}

// parseDice reads "2d6+3".
func parseDice(s string) ([]term, error) {
	s = strings.ToLower(strings.Join(strings.Fields(s), ""))
	if s == "" || len(s) > 200 {
		return nil, fmt.Errorf("dice are written like 2d6+3, d20 or 4d6kh3, at most 200 characters")
	}
	var terms []term
	total := 0
	for s != "" {
		t := term{sign: 1}
		if s[0] == '+' || s[0] == '-' {
			if s[0] == '-' {
				t.sign = -1
			}
			s = s[1:]
		} else if len(terms) > 0 {
			break // cannot happen: a term ends at a sign
		}
		end := strings.IndexAny(s, "+-")
		if end < 0 {
			end = len(s)
		}
		t.text, s = s[:end], s[end:]
		if err := t.read(); err != nil {
			return nil, err
		}
		if total += t.dice; total > maxDice {
			return nil, fmt.Errorf("more than %d dice", maxDice)
		}
		if terms = append(terms, t); len(terms) > maxTerms {
			return nil, fmt.Errorf("more than %d terms", maxTerms)
		}
	}
	return terms, nil
}

func (t *term) read() error {
	m := dieTerm.FindStringSubmatch(t.text)
	if m == nil {
		return fmt.Errorf("can't read %q: dice are written like 2d6+3, d20, d%% or 4d6kh3 (keep the highest 3)", t.text)
	}
	if m[5] != "" {
		t.sides, _ = strconv.Atoi(m[5]) // at most 9 digits, by the expression
		return nil
	}
	t.dice, t.sides = 1, 100
	if m[1] != "" {
		t.dice, _ = strconv.Atoi(m[1])
	}
	if m[2] != "%" {
		t.sides, _ = strconv.Atoi(m[2])
	}
	if t.dice < 1 || t.sides < 1 || t.sides > maxSides {
		return fmt.Errorf("%q: at least one die, of 1 to %d sides", t.text, maxSides)
	}
	if m[4] != "" {
		t.keep, _ = strconv.Atoi(m[4])
		t.low = m[3] == "l"
		if t.keep < 1 || t.keep > t.dice {
			return fmt.Errorf("%q: keep 1 to %d of the dice", t.text, t.dice)
		}
	}
	return nil
}

type diceArgs struct {
	Dice string `json:"dice"`
}

type rollOut struct {
	Term  string `json:"term"`
	Rolls []int  `json:"rolls,omitempty"`
	Kept  []int  `json:"kept,omitempty"`
	Sum   int    `json:"sum"`
}

type diceOut struct {
	Dice  string    `json:"dice"`
	Total int       `json:"total"`
	Terms []rollOut `json:"terms"`
	Min   int       `json:"min"`
	Max   int       `json:"max"`
}

func (b *toolbox) rollDice(in diceArgs) (diceOut, string, error) {
	terms, err := parseDice(in.Dice)
	if err != nil {
		return diceOut{}, "", err
	}
	out := diceOut{Dice: strings.Join(strings.Fields(in.Dice), "")}
	var shown []string
	for _, t := range terms {
		r, text := b.throw(t)
		low, high := t.bounds()
		out.Total, out.Min, out.Max = out.Total+r.Sum, out.Min+low, out.Max+high
		out.Terms = append(out.Terms, r)
		shown = append(shown, text)
	}
	return out, fmt.Sprintf("%s: %d (%s)", out.Dice, out.Total, strings.Join(shown, ", ")), nil
}

func (b *toolbox) throw(t term) (rollOut, string) {
	r := rollOut{Term: t.text}
	if t.sign < 0 {
		r.Term = "-" + t.text
	}
	if t.dice == 0 {
		r.Sum = t.sign * t.sides
		return r, r.Term
	}
	for range t.dice {
		r.Rolls = append(r.Rolls, b.random(t.sides)+1)
	}
	counted := r.Rolls
	if t.keep > 0 {
		r.Kept = slices.Clone(r.Rolls)
		slices.Sort(r.Kept)
		if t.low {
			r.Kept = r.Kept[:t.keep]
		} else {
			r.Kept = r.Kept[t.dice-t.keep:]
		}
		counted = r.Kept
	}
	for _, n := range counted {
		r.Sum += t.sign * n
	}
	shown := strings.Trim(fmt.Sprint(r.Rolls[:min(len(r.Rolls), 100)]), "[]")
	if len(r.Rolls) > 100 {
		shown += " …"
	}
	return r, r.Term + ": " + shown
}

// bounds is the least and the greatest that the term can give.
func (t term) bounds() (low, high int) {
	if t.dice == 0 {
		return t.sign * t.sides, t.sign * t.sides
	}
	n := t.dice
	if t.keep > 0 {
		n = t.keep
	}
	if t.sign < 0 {
		return -n * t.sides, -n
	}
	return n, n * t.sides
}

type pickArgs struct {
	Items []string `json:"items"`
	Count integer  `json:"count"`
}

type pickOut struct {
	Picked []string `json:"picked"`
	Of     int      `json:"of"`
}

// randomPick draws without putting back.
func (b *toolbox) randomPick(in pickArgs) (pickOut, string, error) {
	n := max(1, int(in.Count))
	if n > len(in.Items) {
		return pickOut{}, "", fmt.Errorf("can't pick %d of %d items: give more items or a smaller count", n, len(in.Items))
	}
	items := slices.Clone(in.Items)
	for i := range n {
		j := i + b.random(len(items)-i)
		items[i], items[j] = items[j], items[i]
	}
	out := pickOut{Picked: items[:n], Of: len(items)}
	return out, "Picked: " + strings.Join(out.Picked, ", "), nil
}

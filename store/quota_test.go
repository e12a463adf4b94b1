package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestMakeRoom(t *testing.T) {
	q := Quota{Each: 50, All: 100, Limit: "limits.one", LimitAll: "limits.all"}
	kept := func(text string) (list []Kept) { // a30 is ann's of 30, b5? one of bob's that is spare
		for word := range strings.FieldsSeq(text) {
			k := Kept{Owner: word[:1], Spare: strings.HasSuffix(word, "?")}
			fmt.Sscan(strings.TrimSuffix(word[1:], "?"), &k.Size)
			list = append(list, k)
		}
		return list
	}
	for _, c := range []struct {
		name, list, owner string
		size              int64
		drop              []int
		refused           string
	}{
		{"there is room", "a20 b20", "c", 50, nil, ""},
		{"one's own oldest goes", "b10 a20 a20", "a", 20, []int{1}, ""},
		{"what was never sent goes first", "a20 a20 a10?", "a", 10, []int{2}, ""},
		{"and then the oldest", "a20 a20 a10?", "a", 15, []int{2, 0}, ""},
		{"another's never goes for one's own quota", "b50 a30 a20", "a", 10, []int{1}, ""},
		{"who keeps the most makes room", "a20 b50 c30", "d", 10, []int{1}, ""},
		{"with what they never sent", "b30 b20? c50", "d", 10, []int{1}, ""},
		{"nobody makes room for who keeps more", "a40 b30 c30", "a", 10, []int{0}, ""},
		{"of equals who comes loses", "a30 b30 c40", "b", 10, []int{1}, ""},
		{"nobody has more", "a25 b25 c25 d25", "e", 30, nil, "limits.all"},
		{"too large for one person", "", "a", 51, nil, "limits.one"},
	} {
		drop, err := q.MakeRoom(kept(c.list), c.owner, c.size)
		if (err != nil) != (c.refused != "") || err != nil && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused)) || err == nil && !slices.Equal(drop, c.drop) {
			t.Errorf("%s: drops %v, %v; want %v, %q", c.name, drop, err, c.drop, c.refused)
		}
	}
	small := Quota{Each: 50, All: 100, Least: 20}
	if drop, err := small.MakeRoom(kept("a1 a1 b1 b1"), "a", 1); err != nil || !slices.Equal(drop, []int{0}) {
		t.Errorf("small things: drops %v, %v", drop, err)
	}
	small.Each, small.All = 5, 5 // less than what one counts for
	if drop, err := small.MakeRoom(kept("a1"), "a", 1); err != nil || !slices.Equal(drop, []int{0}) {
		t.Errorf("a small quota: drops %v, %v", drop, err)
	}
	if _, err := (Quota{Each: 50, All: 10, LimitAll: "limits.all"}).MakeRoom(nil, "a", 20); err == nil || !strings.Contains(err.Error(), "limits.all") {
		t.Errorf("too large for everybody: %v", err)
	}
}

// TestMakeRoomIsFair: whatever people keep, one keeps at most their quota, everybody
// the whole one, and nobody loses to somebody who keeps as much or more.
func TestMakeRoomIsFair(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := Quota{Each: 10 + r.Int64N(50), All: 20 + r.Int64N(100)}
		var list []Kept
		for range 60 {
			owner, size := string(rune('a'+r.IntN(6))), 1+r.Int64N(30)
			drop, err := q.MakeRoom(list, owner, size)
			if err != nil {
				continue
			}
			use := map[string]int64{}
			for i, k := range list {
				if !slices.Contains(drop, i) {
					use[k.Owner] += k.Size
				}
			}
			for _, i := range slices.Backward(drop) { // each loss at its time
				k := list[i]
				if use[k.Owner] += k.Size; k.Owner != owner && use[k.Owner] <= use[owner]+size {
					t.Fatalf("seed %d: %s keeps %d and loses %d to %s, who keeps %d", seed, k.Owner, use[k.Owner], k.Size, owner, use[owner]+size)
				}
			}
			for i := len(list) - 1; i >= 0; i-- {
				if slices.Contains(drop, i) {
					list = slices.Delete(list, i, i+1)
				}
			}
			list = append(list, Kept{owner, size, r.IntN(3) == 0})
			total := int64(0)
			use = map[string]int64{}
			for _, k := range list {
				total, use[k.Owner] = total+k.Size, use[k.Owner]+k.Size
			}
			if total > q.All || use[owner] > q.Each {
				t.Fatalf("seed %d: %s keeps %d of %d, all keep %d of %d", seed, owner, use[owner], q.Each, total, q.All)
			}
		}
	}
}
